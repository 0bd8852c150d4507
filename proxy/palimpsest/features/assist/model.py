"""
The client of one model in one role: asks, tries again, checks what comes back, and counts what it used.

It asks by chat completions, with a credential of the proxy's own, and past everything that reads or archives requests.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from contextlib import nullcontext, suppress
from itertools import count
from time import perf_counter

import orjson
import structlog

from palimpsest import __version__
from palimpsest.domain import AssistRole, Json, frozen
from palimpsest.domain.errors import AssistFailure, AssistFault, MemoryFault, NotServed, UpstreamUnreachable
from palimpsest.domain.ports import AssistCounts, Prompt, Sender
from palimpsest.features.assist import request
from palimpsest.features.assist.budget import Booking, Budget
from palimpsest.settings.policy import AssistantPolicy

TARGET = "/v1/chat/completions"
HEADERS = (
    (b"content-type", b"application/json"),
    (b"accept", b"application/json"),
    (b"accept-encoding", b"identity"),
    (b"user-agent", f"palimpsest/{__version__}".encode()),
)
ANSWER_BYTES = 1 << 20  # of a whole answer; the longest that is asked for has a hundredth of it
REPEATED_CHARS = 4000  # of an answer that is no good, when it is asked for once more

OK, TOO_MANY, TIMED_OUT = 200, 429, 504
REFUSES_FORM = (400, 404, 422)  # what providers say to a parameter that they do not know
LATER = (408, 409, 425, TOO_MANY, 500, 502, 503, TIMED_OUT, 529)  # worth another attempt

FIRST_PAUSE_SECONDS = 0.5  # between attempts; doubled each time, less a random part, so that workers do not go in step
LONGEST_PAUSE_SECONDS = 3600.0  # that a provider may ask for
FAILURES_TO_REST = 3  # in a row: by then it is no accident, and recall would wait for it each time
REST_SECONDS = 5.0  # doubled with each further failure
LONGEST_REST_SECONDS = 300.0

log = structlog.get_logger()


@frozen
class _Refusal:
    """An answer with another status than 200."""

    status: int
    retry_seconds: float | None  # as the provider asks


class RoleModel:
    """Implements `palimpsest.domain.ports.Assistant`."""

    def __init__(
        self, role: AssistRole, policy: AssistantPolicy, sender: Sender, budget: Budget, counts: AssistCounts
    ) -> None:
        self._role: AssistRole = role
        self._policy = policy
        self._sender = sender
        self._budget = budget
        self._counts = counts
        self._form = 0  # of `FORMS`
        self._form_is_known = False
        self._failures = 0  # in a row
        self._rests_until = 0.0  # by the event loop's clock
        self._rests_for: AssistFailure = "unreachable"
        self.running = 0  # calls under way
        waits = role in ("writer", "consolidator")  # requests wait for the others
        self._room = asyncio.Semaphore(policy.calls_at_once) if waits else nullcontext()

    @property
    def trouble(self) -> str:
        """The cap that is reached today, in words; "": none."""
        return self._budget.trouble

    async def answer(self, prompt: Prompt, tenant: str) -> Json:
        """Ask the model for a JSON object by the prompt's schema; raises AssistFault."""
        async with self._room:
            return await self._answer_in_time(prompt, tenant)

    async def _answer_in_time(self, prompt: Prompt, tenant: str) -> Json:
        """Ask the model within its time limit, and count how it ended."""
        self._refuse_while_resting()
        started, outcome = perf_counter(), "cancelled"
        self.running += 1
        try:
            async with asyncio.timeout(self._policy.timeout_seconds):
                found = await self._answer(prompt, tenant)
            outcome = "answered"
            return found
        except AssistFault as fault:
            outcome = fault.outcome
            raise
        except TimeoutError:
            outcome = "timeout"
            raise self._fault(f"no answer within {self._policy.timeout_seconds:g} s", "timeout") from None
        except Exception as bug:  # memory goes on without a model, whatever is wrong with what asks it
            outcome = "failed"
            log.error("asking a model failed", role=self._role, exc_info=bug)
            raise self._fault(type(bug).__name__, "failed") from bug
        finally:
            self.running -= 1
            self._counts.assisted(self._role, outcome, perf_counter() - started)
            self._learn(outcome)

    async def _answer(self, prompt: Prompt, tenant: str) -> Json:
        """Ask for an object, and a second time if the first answer is something else."""
        messages = request.messages_of(prompt)
        said = await self._said(prompt, messages, tenant)
        try:
            try:
                return request.checked(said, prompt.schema)
            except request.Unusable as fault:
                messages = request.retry_messages(messages, said.text[:REPEATED_CHARS], str(fault))
            return request.checked(await self._said(prompt, messages, tenant), prompt.schema)
        except request.Unusable as fault:
            text = f"its answer to {prompt.name} is not what was asked for, not even the second time: {fault}"
            raise self._fault(text, "malformed") from None
        except request.Refused:
            raise self._fault("it refuses", "refused") from None

    async def _said(self, prompt: Prompt, messages: list[Json], tenant: str) -> request.ModelAnswer:
        """One answer, after as many attempts as are allowed."""
        for attempt in count():
            is_last = attempt >= self._policy.retries
            try:
                answer = await self._accepted(prompt, messages, tenant)
            except UpstreamUnreachable as failure:
                if is_last:
                    outcome: AssistFailure = "timeout" if failure.http_status == TIMED_OUT else "unreachable"
                    raise self._fault(str(failure), outcome) from failure
                seconds = None
            else:
                if isinstance(answer, request.ModelAnswer):
                    return answer
                seconds = answer.retry_seconds
                if is_last or answer.status not in LATER or (seconds or 0) > self._policy.timeout_seconds:
                    raise self._refusal(answer)
            await asyncio.sleep(_pause_seconds(attempt) if seconds is None else seconds)
        raise AssertionError("unreachable")

    async def _accepted(self, prompt: Prompt, messages: list[Json], tenant: str) -> request.ModelAnswer | _Refusal:
        """Ask in each form until the provider takes one, which is kept for later calls."""
        while True:
            answer = await self._asked(prompt, messages, tenant)
            if isinstance(answer, request.ModelAnswer):
                self._form_is_known = True
                return answer
            has_other = not self._form_is_known and self._form + 1 < len(request.FORMS)
            if answer.status not in REFUSES_FORM or not has_other:
                if not self._form_is_known:
                    self._form = 0
                return answer
            self._form += 1

    async def _asked(self, prompt: Prompt, messages: list[Json], tenant: str) -> request.ModelAnswer | _Refusal:
        """Send one request, and count its cost; a cancelled one stays booked in full."""
        body = orjson.dumps({"model": self._policy.model, "messages": messages} | request.FORMS[self._form](prompt))
        booking = await self._budget.reserve(tenant, request.estimated_tokens(messages), prompt.most_tokens)
        try:
            answer = await self._sent(body)
        except UpstreamUnreachable as failure:
            # who was too slow may charge for what it read; who was not there will not
            late = failure.http_status == TIMED_OUT
            await self._settle(booking, booking.usage.prompt_tokens if late else 0, 0, failed=True)
            raise
        if isinstance(answer, _Refusal):
            await self._settle(booking, 0, 0, failed=True)
            return answer
        said = request.parse_completion(answer)
        prompt_tokens, completion_tokens = said.prompt_tokens, said.completion_tokens
        await self._settle(
            booking,
            booking.usage.prompt_tokens if prompt_tokens is None else prompt_tokens,
            request.tokens_of(said.text) if completion_tokens is None else completion_tokens,
            failed=False,
        )
        return said

    async def _sent(self, body: bytes) -> bytes | _Refusal:
        """Send a request: the whole body of the answer, or how the provider refused."""
        try:
            answer = await self._sender.send(self._policy.model, "POST", TARGET, HEADERS, body)
        except NotServed as cause:
            raise self._fault(str(cause), "refused") from cause
        heard = bytearray()
        try:
            if answer.status != OK:
                return _Refusal(answer.status, _retry_seconds({name.lower(): value for name, value in answer.headers}))
            async for data in answer:
                heard += data
                if len(heard) > ANSWER_BYTES:
                    raise self._fault(f"its answer has more than {ANSWER_BYTES:,} bytes", "malformed")
        finally:
            await answer.aclose()
        return bytes(heard)

    async def _settle(self, booking: Booking, prompt_tokens: int, completion_tokens: int, *, failed: bool) -> None:
        with suppress(MemoryFault):  # then it stays as it was booked, which is no less
            dollars = await self._budget.settle(booking, prompt_tokens, completion_tokens, failed=failed)
            self._counts.assist_used(self._role, prompt_tokens, completion_tokens, dollars)

    def _refusal(self, answer: _Refusal) -> AssistFault:
        if answer.retry_seconds:
            self._rest("rate_limited", answer.retry_seconds)
        text = f"the provider answers with status {answer.status}"
        if answer.status == TOO_MANY:
            return self._fault(text, "rate_limited")
        return self._fault(text, "unreachable" if answer.status in LATER else "refused")

    def _fault(self, text: str, outcome: AssistFailure) -> AssistFault:
        return AssistFault(f"asking {self._policy.model} as {self._role}: {text}", outcome)

    def _refuse_while_resting(self) -> None:
        """Refuse calls, by `AssistFault`, while a provider rests, after repeated failures or at its request."""
        seconds = self._rests_until - asyncio.get_running_loop().time()
        if seconds > 0:
            raise self._fault(f"it is not asked for {seconds:.0f} s more, because it failed", self._rests_for)

    def _learn(self, outcome: str) -> None:
        """Count failures in a row, cancelled calls among them, and pause after too many."""
        if outcome not in ("timeout", "unreachable", "rate_limited", "cancelled"):
            self._failures = 0
            return
        self._failures += 1
        if (more := self._failures - FAILURES_TO_REST) >= 0:
            failure: AssistFailure = "rate_limited" if outcome == "rate_limited" else "unreachable"
            self._rest(
                "timeout" if outcome == "cancelled" else failure, min(REST_SECONDS * 2**more, LONGEST_REST_SECONDS)
            )

    def _rest(self, why: AssistFailure, seconds: float) -> None:
        """Do not ask the model for so long, unless a longer pause goes on already."""
        until = asyncio.get_running_loop().time() + min(seconds, LONGEST_PAUSE_SECONDS)
        if until > self._rests_until:
            self._rests_until, self._rests_for = until, why
            log.warning("a model is not asked for some time", role=self._role, outcome=why, seconds=round(seconds))


def _pause_seconds(attempt: int) -> float:
    return FIRST_PAUSE_SECONDS * float(2**attempt) * random.uniform(0.5, 1.0)


def _retry_seconds(headers: Mapping[bytes, bytes]) -> float | None:
    """How long a provider asks to wait; None: it does not say, or by a date, which few do."""
    for name, unit in ((b"retry-after-ms", 0.001), (b"retry-after", 1.0)):
        try:
            seconds = float(headers.get(name, b"")) * unit
        except ValueError:
            continue
        if 0 <= seconds < float("inf"):
            return seconds
    return None
