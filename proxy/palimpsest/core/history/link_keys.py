"""
Link keys: fingerprints of requests and answers, by which later requests are linked to them.

Most clients send no id. What the proxy handed out itself comes back: texts of answers, ids of tool calls, their
arguments as a sub-agent's task, runs of words inside a transcript or a summary. Everything is a keyed hash.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice

import orjson

from palimpsest.core.history.shingles import shingles
from palimpsest.domain import (
    Chat,
    Clues,
    Fingerprint,
    Head,
    HeadFlag,
    Lineage,
    LinkKind,
    Message,
    Role,
    Shape,
    Speaker,
    Turn,
)
from palimpsest.wire.pieces import squeezed
from palimpsest.wire.storage_codec import storable

LONG_CHARS = 60  # shorter texts recur in other conversations: "Ok.", "Thanks!", "continue"
TASK_CHARS = 20  # a sub-agent's task is a sentence; shorter arguments are names and numbers
TASK_MESSAGES = 4  # a sub-agent's task stands first, or behind a preamble and its acknowledgement
ASIDES = 4  # in front of a task: tags further down are its own
NEWEST_CLUES = 24  # messages: they lead back; looking up more costs time and finds the same conversation
CLUE_MESSAGES = 400  # where they lead nowhere: a client may have put many new ones behind what we know
ECHO_CHARS = 120_000  # shingled at most per request: a transcript repeats its evidence many times over
ECHO_PRINTS = 4000  # looked up at most
KEPT_PHRASES = 8  # shingles remembered of one message: a transcript quotes many messages
KEPT_OPENINGS = 4  # ... and of a person's first words, some twenty: a client's own summary quotes how a task began
KEPT_ECHOES = 24  # ... of one summary: clients cut it, and keep as little as a fifth of it
RANDOM_CHARS = 6  # in a row without a sign between them, from which on they may be random
_RUN = re.compile(rf"[A-Za-z0-9]{{{RANDOM_CHARS},}}")
_COUNTED = re.compile(r"[A-Za-z]*\d{0,4}")  # a word, a number, or a word with a number behind it
_CLOSING = re.compile(r"</[\w-]+>[ \t]*\n")


def flags_of(message: Message) -> int:
    """The `HeadFlag` bits of a message, as far as the message alone tells."""
    role = {"user": HeadFlag.USER, "assistant": HeadFlag.ASSISTANT, "tool": HeadFlag.TOOL, "function": HeadFlag.TOOL}
    flags = role.get(message.role, 0)
    if len(message.text) >= LONG_CHARS:
        flags |= HeadFlag.LONG
    if message.calls:
        flags |= HeadFlag.CALLS
    if message.opaque:
        flags |= HeadFlag.COMPACTED
    return flags


def id_print(key: bytes, kind: str, value: str) -> int:
    """A keyed 63-bit fingerprint of an id."""
    digest = hashlib.blake2b(
        value.encode("utf-8", "surrogatepass"), digest_size=8, key=key[:64], person=kind.encode()[:16]
    )
    return int.from_bytes(digest.digest(), "big") >> 1


def is_unique(call_id: str) -> bool:
    """
    Whether the id of a call tells it from all others: it holds a random part.

    Some models count instead, anew in every conversation: `functions.read_file:0`, `call_1`.
    """
    return any(_COUNTED.fullmatch(run) is None for run in _RUN.findall(call_id))


def counted_calls(history: Sequence[Message], key: bytes) -> set[int]:
    """Fingerprints of the ids of calls that other conversations may have as well: `is_unique` says which."""
    ids = {id for message in history for id in (message.answers_call, *(call.id for call in message.calls)) if id}
    return {id_print(key, "call", id) for id in ids if not is_unique(id)}


def answer_links(
    message: Message, fingerprint: Fingerprint, turn: Turn, key: bytes
) -> tuple[tuple[LinkKind, int], ...]:
    """
    The keys by which later requests lead back to an answer.

    Args:
        turn: the request that it answers. Of side answers only summaries are known again, by their echo; a short
            answer is known only together with what it answered.
    """
    opaque = tuple((LinkKind.ECHO, value) for value in opaque_prints(message, key))
    if turn.role is Role.SIDE:
        echo = _sample(message.text, KEPT_ECHOES, key) if turn.summarises else ()
        return (*opaque, *((LinkKind.ECHO, value) for value in echo))
    links = [*opaque]
    if message.text or message.calls:
        links.append((LinkKind.ANSWER, _answer_print(fingerprint.full, len(message.text), turn.last_full, key)))
    for call in message.calls:
        if call.id:
            links.append((LinkKind.CALL, id_print(key, "call", call.id)))
        links += [(LinkKind.TASK, id_print(key, "task", squeezed(value))) for value in _sentences(call.arguments)]
    links += [(LinkKind.PHRASE, value) for value in _sample(message.text, KEPT_PHRASES, key)]
    return tuple(dict.fromkeys(links))


def reply_links(ids: Iterable[str], key: bytes) -> tuple[tuple[LinkKind, int], ...]:
    """How later requests may name an answer, or a part of it; an id that is empty names nothing."""
    return tuple((LinkKind.REPLY, id_print(key, "reply", id)) for id in ids if id)


def opaque_prints(message: Message, key: bytes) -> tuple[int, ...]:
    """Fingerprints of the parts of a message that only the provider can read."""
    return tuple(id_print(key, "opaque", reference) for reference in message.opaque)


def request_links(
    history: Sequence[Message], prints: Sequence[Fingerprint], new: Sequence[int], speaker: Speaker, key: bytes
) -> tuple[tuple[LinkKind, int], ...]:
    """
    What the new messages of a main request will be known by: the client's ids, its long messages, and what people said
    where it may be quoted (an answer that only calls tools leaves nothing else to quote).

    Assistant messages that did not pass here are the client's own: it may open every conversation with the same ones.
    """
    links = [(LinkKind.CLIENT_ID, id_print(key, "client", value)) for value in speaker.client_ids]
    for at in new:
        message = history[at]
        if message.role == "user":
            links += [(LinkKind.PHRASE, value) for value in _sample(message.text, KEPT_PHRASES, key, KEPT_OPENINGS)]
        if message.role in ("user", "assistant") and len(message.text) >= LONG_CHARS:
            links.append((LinkKind.MESSAGE, prints[at].full))
        links += [(LinkKind.CALL, id_print(key, "call", call.id)) for call in message.calls if call.id]
    return tuple(dict.fromkeys(links))


def shape_of(
    chat: Chat,
    instructions: Sequence[Fingerprint],
    user_agent: str,
    named: Callable[[str], str] = str,
    tools_tokens: int = 0,
) -> Shape:
    """
    The shape of a request: model, tools, instructions and client, as hashes and stored names.

    Args:
        named: makes of a name what is stored of it, where any database takes that.
        tools_tokens: of all that is said of the tools.
    """

    def stored(name: str) -> str:
        return storable(named(name))

    return Shape(
        model=stored(chat.model),
        tool_names=tuple(map(stored, chat.tool_names)),
        instructions=tuple(fingerprint.full for fingerprint in instructions),
        opens=instructions[0].opening if instructions else 0,
        stream=chat.stream,
        user_agent=stored(user_agent),
        capped=chat.max_reply_tokens is not None,
        tools_tokens=tools_tokens,
    )


def inherited(chat: Chat, shape: Shape, head: Head | None) -> Shape:
    """The shape of a request, with the instructions and tools of the head that it need not repeat."""
    if head is None or not chat.held or shape.instructions:
        return shape
    before = head.shape
    return replace(
        shape,
        tool_names=shape.tool_names or before.tool_names,
        tools_tokens=shape.tools_tokens or before.tools_tokens,
        instructions=before.instructions,
        opens=before.opens,
    )


def clues(chat: Chat, prints: Sequence[Fingerprint], speaker: Speaker, key: bytes, newest: int = NEWEST_CLUES) -> Clues:
    """The first look-up: what in the newest messages leads this request back to a conversation."""
    history = chat.history
    found: dict[LinkKind, list[int]] = defaultdict(list)
    found[LinkKind.REPLY] = [fingerprint for _, fingerprint in reply_links([chat.follows], key)]
    found[LinkKind.ECHO] = [
        fingerprint for message in history if message.opaque for fingerprint in opaque_prints(message, key)
    ]
    found[LinkKind.ECHO] += found[LinkKind.REPLY]
    found[LinkKind.CLIENT_ID] = [id_print(key, "client", value) for value in speaker.client_ids]
    for at in range(max(0, len(history) - newest), len(history)):
        message = history[at]
        if message.role == "assistant" and (message.text or message.calls):
            found[LinkKind.ANSWER].append(_answer_at(history, prints, at, key))
        if message.role in ("user", "assistant") and len(message.text) >= LONG_CHARS:
            found[LinkKind.MESSAGE].append(prints[at].full)
        found[LinkKind.CALL] += [id_print(key, "call", call.id) for call in message.calls if call.id]
        if message.answers_call:
            found[LinkKind.CALL].append(id_print(key, "call", message.answers_call))
    wanted = {kind: tuple(dict.fromkeys(values)) for kind, values in found.items() if values}
    return _clues(wanted, speaker)


def further_clues(chat: Chat, lineage: Lineage, speaker: Speaker, key: bytes) -> Clues | None:
    """The second look-up: echoes, transcripts, tasks; None: `lineage`, from the first alone, shows all there is."""
    if _is_settled(chat, lineage):
        return None
    history = chat.history
    unknown = (*lineage.fresh, *lineage.changed)
    echoes: list[int] = []
    room = ECHO_CHARS
    candidates = [history[at] for at in unknown if history[at].role != "tool"]
    for message in [m for m in chat.messages if m.is_instruction] + candidates:
        if room > 0 and len(message.text) >= LONG_CHARS:
            echoes += shingles(message.text[:room], key)
            room -= len(message.text)
    echoes = list(dict.fromkeys(echoes))[:ECHO_PRINTS]
    texts = [text for m in history[:TASK_MESSAGES] if m.role == "user" for text in _behind_asides(m.text)]
    tasks = [id_print(key, "task", squeezed(text)) for text in texts]
    parents = [id_print(key, "client", value) for value in speaker.parent_ids]
    found = {LinkKind.ECHO: echoes, LinkKind.TASK: tasks, LinkKind.CLIENT_ID: parents}
    if lineage.head is None:
        found[LinkKind.PHRASE] = echoes
    return _clues({kind: values for kind, values in found.items() if values}, speaker)


def _clues(wanted: Mapping[LinkKind, Sequence[int]], speaker: Speaker) -> Clues:
    """Clues, limited to conversations that the speaker may continue."""
    scope = speaker.scope if speaker.scope or speaker.is_of_scopes else None
    user = None if speaker.is_anybody and not (speaker.user or speaker.is_of_users) else speaker.user
    return Clues(speaker.tenant, wanted, user, speaker.is_of_users, scope, speaker.is_of_scopes)


def _is_settled(chat: Chat, lineage: Lineage) -> bool:
    """Whether it is known what the request belongs to, and nothing is gone that something else may stand for."""
    if lineage.role is Role.SIDE:
        return bool(lineage.parent)
    return lineage.head is not None and (chat.held or not lineage.dropped)


def _answer_at(history: Sequence[Message], prints: Sequence[Fingerprint], at: int, key: bytes) -> int:
    return _answer_print(prints[at].full, len(history[at].text), prints[at - 1].full if at else 0, key)


def _answer_print(full: int, chars: int, last_full: int, key: bytes) -> int:
    return full if chars >= LONG_CHARS else id_print(key, "short", f"{last_full}:{full}")


def _sample(text: str, kept: int, key: bytes, openings: int = 0) -> list[int]:
    """
    A few shingles of a text, chosen by value, so that a quotation that is cut still holds some of them.

    Args:
        kept: of all, chosen by their value.
        openings: of the first ones besides: of a long text, none of the others need stand in its beginning.
    """
    found = shingles(text, key)
    return [*dict.fromkeys((*found[:openings], *sorted(found)[:kept]))]


def _behind_asides(text: str) -> list[str]:
    """The text, and what is left of it behind reminders that a client put in front, between tags."""
    ends = islice(_CLOSING.finditer(text), ASIDES)
    return [text, *(text[end.end() :] for end in ends)]


def _sentences(arguments: str) -> list[str]:
    """String values of a call's arguments that could be a task for somebody."""
    try:
        value = orjson.loads(arguments)
    except orjson.JSONDecodeError:
        return []
    texts = value.values() if isinstance(value, dict) else ()
    return [text for text in texts if isinstance(text, str) and len(text) >= TASK_CHARS]
