"""The records of a turn as they reach the disk: redacted, media by reference, cut into passages."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import orjson

from palimpsest.core.archive.chunking import split_into_passages
from palimpsest.core.archive.tombstones import scope_prints
from palimpsest.core.block.explanation import UNCLEANED
from palimpsest.core.caller.client_table import Asides
from palimpsest.core.history.link_keys import answer_links, flags_of, reply_links
from palimpsest.core.recall.human_text import behind_longest
from palimpsest.domain import (
    Answer,
    AnswerRecord,
    Completion,
    Ending,
    Entry,
    HeadFlag,
    Json,
    LinkKind,
    NewMessage,
    Passage,
    Record,
    ResentTurn,
    Role,
    Turn,
    Usage,
)
from palimpsest.domain.word_cache import word_cache
from palimpsest.wire.fingerprint import fingerprint_of
from palimpsest.wire.message import read_message
from palimpsest.wire.storage_codec import ROLES, Clean, cleaned, from_stored, to_stored
from palimpsest.wire.values import dumps

NOT_COUNTED = Usage()
DIGEST_BYTES = 16  # of a tenant's messages: no two ever share one
TRACE_ID = slice(3, 35)  # of a W3C traceparent
REMEMBERED_INSTRUCTIONS = 64  # system prompts are long and come with every request; at most some megabytes


def record_of(turn: Turn, key: bytes, clean: Clean) -> Record:
    """A request, ready to commit, by the tenant's key (at most 64 bytes) and without credentials (`clean`)."""
    said = replace(turn, explain=_explained(turn, clean))
    entries = tuple(entry_of(new, turn.role, key, clean) for new in turn.new)
    return Record(said, entries, scope_prints(turn, key))


def answer_record(
    turn: Turn, completion: Completion, ending: Ending, now: float, key: bytes, clean: Clean, usage: Usage = NOT_COUNTED
) -> AnswerRecord:
    """The recorded answer to a turn, ready to commit; `usage` is what its provider counted."""
    message, prompt_tokens = completion.message, completion.prompt_tokens
    named = reply_links((completion.id, *completion.part_ids), key)
    bare = ResentTurn(turn.tokens, _explained(turn, clean), turn.cut) if turn.is_bare else None
    cost = replace(turn.cost, usage=usage) if turn.cost else None
    if message is None:
        nothing = Answer(
            turn.id, ending, links=named, prompt_tokens=prompt_tokens, created_at=now, bare=bare, cost=cost
        )
        return AnswerRecord(nothing, None, turn.tenant)
    fingerprint = fingerprint_of(message, key)
    flags = flags_of(message) | HeadFlag.OURS
    links = (*named, *answer_links(message, fingerprint, turn, key))
    if message.opaque and turn.role is Role.SIDE:  # a compaction comes back by its name, too
        links += tuple((LinkKind.ECHO, name) for _, name in named)
    answer = Answer(turn.id, ending, message, fingerprint, flags, links, prompt_tokens, now, bare, cost)
    shown = turn.block.text if turn.block else ""
    entry = entry_of(NewMessage(message, fingerprint, turn.length, flags), turn.role, key, clean, shown)
    return AnswerRecord(answer, entry, turn.tenant)


def entry_of(new: NewMessage, request: Role, key: bytes, clean: Clean, block: str = "") -> Entry:
    """
    One message in the form that reaches the disk.

    Args:
        request: role of the request that brings it.
        block: of ours that this request carried, where the message answers it.
    """
    message = new.message
    sent = dumps(message.raw)
    text, rest = _instruction(sent, clean) if message.is_instruction else to_stored(message, clean)
    if message.role not in ROLES:
        new = replace(new, message=replace(message, role=clean(message.role)))
    return Entry(
        new=new,
        digest=hashlib.blake2b(sent.encode("utf-8", "surrogatepass"), key=key, digest_size=DIGEST_BYTES).digest(),
        text=text,
        rest=rest,
        passages=passages_of(request, message.role, new.flags, text, rest, block),
    )


def passages_of(request: Role, role: str, flags: int, text: str, rest: str, block: str = "") -> tuple[Passage, ...]:
    """The passages of a stored message; of one with a client's summary, those of what a person wrote behind it."""
    if not is_findable(request, role, flags & ~HeadFlag.SUMMARY if flags & HeadFlag.TYPED else flags):
        return ()
    if not flags & HeadFlag.TYPED:
        return split_into_passages(text, role, block=block)
    typed = "\n".join(behind_longest(read_message(from_stored(text, rest)), Asides()))
    at = len(text) - len(typed)
    found = split_into_passages(typed, role) if text.endswith(typed) else ()
    return tuple(replace(passage, start=at + passage.start, stop=at + passage.stop) for passage in found)


def is_findable(request: Role, role: str, flags: int) -> bool:
    """
    Whether a message is cut into passages, all of it.

    Instructions, summaries, side requests, what clients write in the user's role, and what is retired are only
    journalled.
    """
    is_said = request is not Role.SIDE and role not in ("system", "developer")
    return is_said and not flags & (HeadFlag.SUMMARY | HeadFlag.ASIDE | HeadFlag.RETIRED)


def _explained(turn: Turn, clean: Clean) -> Json:
    """Why it was decided so, by which policy, and by which ids the request is known elsewhere."""
    known = {"request": turn.request, "trace": turn.traceparent[TRACE_ID], "policy": turn.policy}
    explained: Json = cleaned({name: value for name, value in turn.explain.items() if name != UNCLEANED}, clean)
    if UNCLEANED in turn.explain:
        explained[UNCLEANED] = turn.explain[UNCLEANED]
    return {name: value for name, value in known.items() if value} | explained


@word_cache(REMEMBERED_INSTRUCTIONS)
def _instruction(sent: str, clean: Clean) -> tuple[str, str]:
    return to_stored(read_message(orjson.loads(sent)), clean)
