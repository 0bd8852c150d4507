"""Requests that an upstream refuses for their length: what is sent instead, and what that teaches of the window."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import structlog

from palimpsest.core.archive.turns import bare_turn
from palimpsest.core.conversation import Request
from palimpsest.core.decision import Decision
from palimpsest.domain import Note, RawHeaders, TooLong, Turn, frozen
from palimpsest.domain.ports import Listener, Prepared, Wire
from palimpsest.memory.request.decider import Decider
from palimpsest.memory.request.forwarding import prepared, render_decision
from palimpsest.memory.request.model_windows import MISCOUNT, ModelWindows
from palimpsest.telemetry.metrics import Metrics

log = structlog.get_logger()


@frozen
class SentRequest:
    """A request as it was sent."""

    request: Request
    decision: Decision
    wire: Wire
    upstream: str
    turn: Turn | None
    has_changed: bool  # it is not what the client sent


@dataclass(slots=True)
class Refusals:
    """Sends refused requests once more with less; one per policy."""

    trims: bool  # the policy leaves old messages out of what is too long
    windows: ModelWindows
    decider: Decider
    metrics: Metrics
    listen: Callable[[Turn, Wire, int, RawHeaders], Listener]  # to the answer to a turn, by its status and headers
    learn: Callable[[str, int, int, float], None]  # the ratio of a model's tokens: `TokenCounter.learn`

    async def shorter(self, sent: SentRequest, refusal: TooLong) -> Prepared | None:
        """What to send instead; None: nothing. Raises `WireError`, `MemoryFault`: the rest cannot be followed."""
        decision, model = sent.decision, sent.request.reading.chat.model
        own_tokens, added_tokens = decision.own_tokens, decision.added.tokens
        wanted = decision.reply_tokens or sent.request.reading.chat.max_reply_tokens or 0
        prompt_tokens, sent_tokens = own_tokens + added_tokens, own_tokens + added_tokens + wanted
        window = self.windows.note_refused(sent.upstream, model, refusal, own_tokens, sent_tokens)
        stated, named = refusal.prompt_tokens or 0, refusal.window_tokens or 0
        if prompt_tokens / MISCOUNT <= stated <= prompt_tokens * MISCOUNT:  # else of something that the error quotes
            self.learn(model, prompt_tokens, stated, 1.0)  # of this very prompt: the next one must fit
        else:
            stated = 0
        again = decision.bare(Note.TOO_LONG, window)
        if self.trims:
            # Where our count does not explain the refusal, the provider counts more: the next must be shorter by ours
            if refusal.is_of_model and (stated or sent_tokens <= named or not named):
                most = window * prompt_tokens / stated if stated else sent_tokens / MISCOUNT
                window = max(1, min(window, int(most)))
            request = replace(sent.request, window_tokens=window, is_window_shown=True)
            decided = await self.decider.decide_bare(request, math.inf, decision)
            again = again if isinstance(decided, Note) else decided
        body = b"" if again.view is None and again.reply_tokens is None else render_decision(sent.wire, again)
        is_shorter = again.own_tokens < prompt_tokens or (again.reply_tokens or wanted) < wanted
        if not (body or sent.has_changed) or not is_shorter:
            return None
        self.metrics.too_long(added_tokens)
        count_overflow(again, self.metrics)
        log.warning(
            "refused for its length; sent again with less",
            upstream=sent.upstream,
            added_tokens=added_tokens,
            own_tokens=own_tokens,
            trimmed_tokens=again.view.trimmed_tokens if again.view else 0,
            window_tokens=window,
        )
        turn = sent.turn and bare_turn(sent.turn, again)
        listen = partial(self.listen, turn, sent.wire) if turn else None
        return prepared(body, again, turn, Note.TOO_LONG, listen)


def count_overflow(decision: Decision, metrics: Metrics) -> None:
    """Count what stays behind of a request that is sent."""
    view = decision.view
    if view is not None:
        metrics.add("overflow", 1, "cut" if view.first_new >= 0 else "repeated")
        metrics.add("trimmed_tokens", view.trimmed_tokens)
    if decision.reply_tokens is not None:
        metrics.add("overflow", 1, "answer")
    if decision.would_trim_tokens:
        metrics.add("overflow", 1, "observed")
