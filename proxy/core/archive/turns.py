"""
A request as a turn to journal: a diff against the head that it continues, behind what the provider holds of it.
"""

from __future__ import annotations

from dataclasses import replace

from proxy.core.conversation import Rules
from proxy.core.decision import Decision
from proxy.core.history.link_keys import flags_of, request_links
from proxy.core.recall.diagnosis import newly_lost
from proxy.domain import HeadFlag, LinkKind, NewMessage, Role, Turn
from proxy.wire.message import bytes_of
from proxy.wire.values import chars_of


def turn_of(
    decision: Decision,
    rules: Rules,
    *,
    id: str,
    upstream: str,
    created_at: float,
    request: str = "",
    traceparent: str = "",
) -> Turn:
    """
    The turn of one request.

    Args:
        id: unique text.
        upstream: name of the one that the request is for; "" unknown.
        created_at: Unix seconds.
        request: its id.
        traceparent: W3C trace context of the request; "" where it is not traced.
    """
    reading, lineage, diagnosis = decision.reading, decision.lineage, decision.diagnosis
    head, speaker, places = lineage.head, diagnosis.speaker, reading.places
    held = [head.occurrences[index] for index in lineage.held] if head else []
    kept = _kept(decision)
    prints = reading.history_prints
    behind = prints[-1].full if prints else head.fulls[lineage.held[-1]] if head and held else 0
    new = _new(decision, kept, len(held))
    return Turn(
        id=id,
        tenant=speaker.tenant,
        conversation=decision.conversation,
        role=lineage.role,
        event=lineage.event,
        kept=(*enumerate(held), *((len(held) + at, occurrence) for at, occurrence in kept.items())),
        new=new,
        parent_turn=head.turn if head else None,
        parent_conversation=lineage.parent,
        shape=decision.shape,
        links=_links(decision, [at for at, place in enumerate(places) if place not in kept], rules),
        model=rules.named(reading.chat.model),
        user=speaker.user,
        scope=speaker.scope,
        created_at=created_at,
        block=decision.block if rules.policy.memory.placement == "user" else None,
        anchor=len(held) + decision.anchor if decision.anchor >= 0 else -1,
        replaces_blocks=decision.drops_blocks or (diagnosis.sheds and decision.block is not None),
        compactions=(head.compactions if head else 0) + lineage.event.is_compaction,
        lost=(*(head.lost if head and held else ()), *newly_lost(lineage)),
        summarises=lineage.summarises,
        last_full=behind,
        tokens=decision.added.own_tokens + decision.added.tokens,
        upstream=upstream,
        explain=decision.explain,
        chars=sum(chars_of(message.message.raw) for message in new),
        request=request,
        traceparent=traceparent,
        size_bytes=sum(bytes_of(message.message) for message in new),
    )


def bare_turn(turn: Turn, bare: Decision) -> Turn:
    """The turn where its request was sent once more with nothing added; `bare` is the decision on that."""
    return replace(turn, block=None, tokens=bare.own_tokens, is_bare=True, explain=bare.explain)


def unsent_turn(turn: Turn, bare: Decision) -> Turn:
    """The turn where its request was forwarded before anything could be added; `bare` is the decision on that."""
    return replace(turn, block=None, anchor=-1, replaces_blocks=False, tokens=bare.own_tokens, explain=bare.explain)


def _kept(decision: Decision) -> dict[int, int]:
    """Index into `chat.messages` to occurrence, for messages that stand in the head with the same text."""
    lineage, places = decision.lineage, decision.reading.places
    if lineage.head is None:
        return {}
    changed = set(lineage.changed)
    return {
        places[at]: lineage.head.occurrences[index]
        for at, index in enumerate(lineage.kept)
        if index >= 0 and at not in changed
    }


def _new(decision: Decision, kept: dict[int, int], held: int) -> tuple[NewMessage, ...]:
    """All other messages; `held` is how many the provider puts in front of them."""
    reading = decision.reading
    summaries = {reading.places[at] for at in decision.lineage.summary_at if 0 <= at < len(reading.places)}
    return tuple(
        NewMessage(
            message, reading.prints[at], held + at, flags_of(message) | (HeadFlag.SUMMARY if at in summaries else 0)
        )
        for at, message in enumerate(reading.chat.messages)
        if at not in kept
    )


def _links(decision: Decision, new: list[int], rules: Rules) -> tuple[tuple[LinkKind, int], ...]:
    """What leads later requests back to this one; `new` are indexes into its history."""
    if decision.lineage.role is Role.SIDE:
        return ()
    speaker, reading = decision.diagnosis.speaker, decision.reading
    return request_links(reading.history, reading.history_prints, new, speaker, rules.key(speaker.tenant))
