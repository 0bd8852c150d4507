"""A request as a turn to journal: a diff against the head that it continues, behind what the provider holds of it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from palimpsest.core.caller.client_table import Asides
from palimpsest.core.conversation import Rules
from palimpsest.core.decision import Decision
from palimpsest.core.history.link_keys import flags_of, request_links
from palimpsest.core.prefix_cache import change_of
from palimpsest.core.recall.diagnosis import newest_human, newly_lost
from palimpsest.core.recall.human_text import is_unspoken, typed_behind
from palimpsest.domain import (
    TOOL_ROLES,
    Cost,
    HeadFlag,
    LinkKind,
    Message,
    NewCut,
    NewMessage,
    ParentListing,
    Role,
    Turn,
)
from palimpsest.wire.message import bytes_of
from palimpsest.wire.storage_codec import storable
from palimpsest.wire.values import chars_of


def turn_of(
    decision: Decision,
    rules: Rules,
    *,
    id: str,
    upstream: str,
    created_at: float,
    request: str = "",
    traceparent: str = "",
    stages_ms: Mapping[str, float] = MappingProxyType({}),
) -> Turn:
    """
    Build the turn that the journal stores for a request.

    Args:
        id: unique text.
        upstream: name of the one that the request is for; "" unknown.
        created_at: Unix seconds.
        request: its id.
        traceparent: W3C trace context of the request; "" where it is not traced.
        stages_ms: how long memory took, by stage; what `decide` took includes recall.
    """
    explain = decision.explain
    if stages_ms:
        took = {stage: round(ms, 2) for stage, ms in stages_ms.items()}
        explain["elapsed_ms"] = took | explain.get("elapsed_ms", {})
    reading, lineage, diagnosis = decision.reading, decision.lineage, decision.diagnosis
    head, speaker, places = lineage.head, diagnosis.speaker, reading.places
    held = [head.occurrences[index] for index in lineage.held] if head else []
    whole = _whole_listing(decision)
    kept = _kept_occurrences(decision) if whole is None else {}
    first = range(len(reading.chat.messages))
    added = (
        [at for at in first if at not in kept] if whole is None else [*first[: whole.position], *first[whole.stop :]]
    )
    prints = reading.history_prints
    behind = prints[-1].full if prints else head.fulls[lineage.held[-1]] if head and held else 0
    new = _new(decision, added, len(held), rules.signals.asides)
    return Turn(
        id=id,
        tenant=speaker.tenant,
        conversation=decision.conversation,
        role=lineage.role,
        event=lineage.event,
        kept=(*enumerate(held), *((len(held) + at, occurrence) for at, occurrence in kept.items())),
        new=new,
        parent_turn=head.turn if head else lineage.repeats[0].turn if lineage.repeats else None,
        parent_conversation=lineage.parent,
        shape=decision.shape,
        links=_links(decision, _in_history(places, added), rules),
        model=storable(decision.shape.model),
        user=speaker.user,
        scope=speaker.scope,
        created_at=created_at,
        block=decision.block if rules.policy.memory.placement == "user" else None,
        anchor=len(held) + decision.client_anchor if decision.anchor >= 0 else -1,
        replaces_blocks=decision.drops_blocks or (diagnosis.sheds and decision.block is not None),
        compactions=(head.compactions if head else 0) + lineage.event.is_compaction,
        lost=(*(head.lost if head and held else ()), *newly_lost(lineage)),
        restored_at=_restored_at(decision, len(held)),
        is_untold=decision.is_untold,
        summarises=lineage.summarises,
        last_full=behind,
        tokens=decision.added.own_tokens + decision.added.tokens,
        upstream=upstream,
        explain=explain,
        chars=sum(chars_of(message.message.raw) for message in new),
        request=request,
        traceparent=traceparent,
        size_bytes=sum(bytes_of(message.message) for message in new),
        whole=whole,
        policy=rules.generation,
        cost=_cost(decision),
        reminders=decision.reminders,
        cut=decision.window_cut,
        is_named=speaker.names_conversation or (head is not None and head.is_named),
        folder=speaker.folder if speaker.folder >= 0 or _uses_tools(decision) else 0,
    )


def bare_turn(turn: Turn, bare: Decision) -> Turn:
    """The turn of a request that was sent again with nothing added; `bare` is the decision on that."""
    turn = replace(turn, block=None, reminders=(), tokens=bare.own_tokens, is_bare=True, explain=bare.explain)
    return replace(turn, cost=_cost(bare), cut=bare.window_cut)


def unsent_turn(turn: Turn, bare: Decision) -> Turn:
    """The turn of a request that was forwarded before anything could be added; `bare` is the decision on that."""
    tokens, cost = bare.own_tokens, _cost(bare)
    turn = replace(turn, block=None, reminders=(), anchor=-1, replaces_blocks=False, cut=NewCut())
    return replace(turn, tokens=tokens, explain=bare.explain, cost=cost, is_untold=bare.lineage.restores)


def _uses_tools(decision: Decision) -> bool:
    """Whether tools were used so far: a chat that only declares some is no agent's work."""
    return any(message.role in TOOL_ROLES for message in decision.reading.chat.messages)


def _cost(decision: Decision) -> Cost:
    """The cost of a request, as far as it is known before the answer."""
    return Cost(decision.billed, change_of(decision))


def _whole_listing(decision: Decision) -> ParentListing | None:
    """The whole listing of the head, if the request continues it and inserts nothing into it; else None."""
    lineage, places = decision.lineage, decision.reading.places
    if lineage.head is None or not lineage.goes_on:
        return None
    last = len(lineage.head.occurrences) - 1
    is_row = places[last] - places[0] == last
    return ParentListing(places[0], lineage.head.occurrences) if is_row else None


def _restored_at(decision: Decision, held: int) -> int:
    """Position of the message in which the newest compaction is answered; -1: none is, or it is not there any more."""
    lineage, reading = decision.lineage, decision.reading
    if lineage.restores or (decision.view is not None and decision.view.is_new):
        newest = newest_human(reading.chat)
        return held + newest if newest >= 0 else -1
    head = lineage.head
    index = head.index_of(head.restored_at) if head is not None and head.restored_at else None
    if index is None:
        return -1
    if index in lineage.held:
        return lineage.held.index(index)
    at = lineage.kept.index(index) if index in lineage.kept else -1
    return held + reading.places[at] if at >= 0 and at not in lineage.changed else -1


def _in_history(places: Sequence[int], added: Sequence[int]) -> list[int]:
    """Of indexes into `chat.messages`, those of the history, as indexes into that."""
    found = ((bisect_left(places, at), at) for at in added)
    return [index for index, at in found if index < len(places) and places[index] == at]


def _kept_occurrences(decision: Decision) -> dict[int, int]:
    """Index into `chat.messages` to occurrence, for messages that stand in the head with the same text."""
    lineage, places = decision.lineage, decision.reading.places
    head, kept = lineage.repeats or (lineage.head, lineage.kept)
    if head is None:
        return {}
    changed = set(lineage.changed)
    return {places[at]: head.occurrences[index] for at, index in enumerate(kept) if index >= 0 and at not in changed}


def _new(decision: Decision, added: Sequence[int], held: int, asides: Asides) -> tuple[NewMessage, ...]:
    """The messages at these indexes; `held` is how many the provider puts in front of them."""
    reading = decision.reading
    summaries = {reading.places[at] for at in decision.lineage.summary_at if 0 <= at < len(reading.places)}
    messages = ((at, reading.chat.messages[at]) for at in added)

    def flags(at: int, message: Message) -> int:
        found = flags_of(message) | (HeadFlag.ASIDE if is_unspoken(message, asides) else 0)
        if at not in summaries:
            return found
        return found | HeadFlag.SUMMARY | (HeadFlag.TYPED if typed_behind(message, asides) else 0)

    return tuple(NewMessage(message, reading.prints[at], held + at, flags(at, message)) for at, message in messages)


def _links(decision: Decision, new: Sequence[int], rules: Rules) -> tuple[tuple[LinkKind, int], ...]:
    """What leads later requests back to this one; `new` are indexes into its history."""
    if decision.lineage.role is Role.SIDE:
        return ()
    speaker, reading = decision.diagnosis.speaker, decision.reading
    return request_links(reading.history, reading.history_prints, new, speaker, rules.key(speaker.tenant))
