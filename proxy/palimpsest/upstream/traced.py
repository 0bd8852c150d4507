"""
The client span of a request to a provider, by the GenAI conventions of OpenTelemetry (semantic-conventions-genai).

It is the parent of what the provider traces, and ends where the answer ends. What the answer tells of itself is read
afterwards.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from time import perf_counter
from urllib.parse import urlsplit

import orjson

from palimpsest.core.redaction.redaction import redact
from palimpsest.domain import Json, Message, RawHeaders
from palimpsest.domain.errors import NotServed, UpstreamUnreachable, WireError
from palimpsest.domain.ports import Attributes, AttributeValue, Body, Tracer, UpstreamAnswer, Wire
from palimpsest.settings.policy import UpstreamPolicy
from palimpsest.telemetry.tracing import TRACEPARENT
from palimpsest.upstream.upgraded import UpgradedAnswer
from palimpsest.wire.account import account_of
from palimpsest.wire.json_body import read_object
from palimpsest.wire.registry import wire_of
from palimpsest.wire.response_tap import ResponseTap

ANSWER_BYTES = 8 * 1024 * 1024  # of an answer that is looked at; of a longer one only its beginning
FIRST_ERROR_STATUS = 400
TIMEOUT_STATUS = 504
GONE = "cancelled"  # the answer was given up: the client, or we, did not want the rest

# Names of providers that the conventions know, by the end of their hosts; and of LiteLLM's prefixes that differ.
HOSTS = (
    *(("api.openai.com", "openai"), ("api.anthropic.com", "anthropic"), ("openai.azure.com", "azure.ai.openai")),
    *(("generativelanguage.googleapis.com", "gcp.gemini"), ("aiplatform.googleapis.com", "gcp.vertex_ai")),
    *(("api.mistral.ai", "mistral_ai"), ("api.groq.com", "groq"), ("api.deepseek.com", "deepseek")),
    *(("api.x.ai", "x_ai"), ("api.perplexity.ai", "perplexity"), ("api.cohere.com", "cohere")),
)
LITELLM = {
    "azure": "azure.ai.openai",
    "bedrock": "aws.bedrock",
    "gemini": "gcp.gemini",
    "mistral": "mistral_ai",
    "vertex_ai": "gcp.vertex_ai",
    "watsonx": "ibm.watsonx.ai",
    "xai": "x_ai",
}
ASKED = {
    "temperature": "gen_ai.request.temperature",
    "top_p": "gen_ai.request.top_p",
    "max_tokens": "gen_ai.request.max_tokens",
    "max_completion_tokens": "gen_ai.request.max_tokens",
    "max_output_tokens": "gen_ai.request.max_tokens",
    "stream": "gen_ai.request.stream",
}


async def ask_traced(
    tracer: Tracer,
    upstream: UpstreamPolicy,
    method: str,
    path: str,
    headers: RawHeaders,
    body: Body,
    ask: Callable[[RawHeaders], Awaitable[UpstreamAnswer]],
) -> UpstreamAnswer:
    """
    Ask an upstream within a span, which ends with the answer.

    Args:
        path: without its query.
        headers: whose `traceparent` is the parent of the span.
        ask: sends the request with these headers; raises what `Sender.send` does.
    """
    call = _Call(tracer, upstream, method, path, headers, body)
    context = (TRACEPARENT, call.span.traceparent.encode())
    try:
        answer = await ask([*(header for header in headers if header[0] != TRACEPARENT), context])
    except BaseException as failure:
        call.end(_error_type(failure))
        raise
    call.begin(answer)
    if isinstance(answer, UpgradedAnswer):
        call.end("")
        return answer
    return TracedAnswer(answer, call)


class TracedAnswer:
    """An `UpstreamAnswer` whose span ends with it."""

    def __init__(self, answer: UpstreamAnswer, call: _Call) -> None:
        self.status = answer.status
        self.headers = answer.headers
        self._answer = answer
        self._call = call

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for data in self._answer:
                self._call.feed(data)
                yield data
        except UpstreamUnreachable as failure:
            self._call.end(_error_type(failure))
            raise
        self._call.end("")

    async def aclose(self) -> None:
        try:
            await self._answer.aclose()
        finally:
            self._call.end("" if self._call.is_complete else GONE)


class _Call:
    """One request to a provider, as it is traced."""

    def __init__(
        self, tracer: Tracer, upstream: UpstreamPolicy, method: str, path: str, headers: RawHeaders, body: Body
    ) -> None:
        self._tracer = tracer
        self._wire = wire_of(method, path)
        self._provider = _provider(upstream)
        self._started = perf_counter()
        self._tap: ResponseTap | None = None
        self._status = 0
        self._bytes = 0  # of the answer, so far
        self._told: dict[str, AttributeValue] = {}  # set at the end, all at once: each setting takes a lock
        self._ended_ns: int | None = None
        self._has_ended = False
        parent = next((value.decode("latin-1") for name, value in headers if name == TRACEPARENT), "")
        name = method if self._wire is None else "chat"
        self.span = tracer.span("client", name, parent, self._request_attributes(upstream, method))
        self._asked_bytes = len(body) if isinstance(body, bytes) else 0
        if self._wire is not None and self.span.is_recording and isinstance(body, bytes):
            tracer.complete(partial(self._tell_request, self._wire, body), len(body))

    def _request_attributes(self, upstream: UpstreamPolicy, method: str) -> Attributes:
        place = urlsplit(upstream.url)
        return {
            "server.address": place.hostname,
            "server.port": place.port or (443 if place.scheme == "https" else 80 if place.scheme else None),
            "http.request.method": method if self._wire is None else None,
            "gen_ai.operation.name": "chat" if self._wire is not None else None,
            "gen_ai.provider.name": self._provider if self._wire is not None else None,
            "palimpsest.upstream": upstream.name,
        }

    @property
    def is_complete(self) -> bool:
        """Whether the answer was heard to its end, though perhaps not its connection's."""
        return self._ended_ns is not None

    def begin(self, answer: UpstreamAnswer) -> None:
        self._status = answer.status
        if self._wire is not None and self.span.is_recording:
            self._tap = ResponseTap(answer.headers, ANSWER_BYTES)

    def feed(self, data: bytes) -> None:
        """Take in a piece of the answer, and note when the first came."""
        if not self._bytes and self._wire is not None:
            self._told["gen_ai.response.time_to_first_chunk"] = perf_counter() - self._started
        self._bytes += len(data)
        if self._tap is not None and self._tap.feed(data) < len(data):
            self._ended_ns = time.time_ns()

    def end(self, failure: str) -> None:
        """End the span, once, with what the answer told or how it failed (`error.type`, "": as the status says)."""
        if self._has_ended:
            return
        self._has_ended = True
        at_ns = self._ended_ns or time.time_ns()
        self._told["http.response.status_code"] = self._status or None
        if failure or self._status >= FIRST_ERROR_STATUS:
            self.span.fail(failure or str(self._status))
        if self.span.is_recording and self._wire is not None:
            # behind what is still being read of the request, if that is on the thread
            self._tracer.complete(partial(self._complete, at_ns), max(self._bytes, self._asked_bytes))
        else:
            self.span.set(self._told)
            self.span.end(at_ns)

    def _complete(self, at_ns: int) -> None:
        try:
            if self._tap is not None:
                self._tell_answer(self._tap)
        finally:
            self.span.set(self._told)
            self.span.end(at_ns)
            self._tap = None

    def _tell_request(self, wire: Wire, body: bytes) -> None:
        try:
            raw = read_object(body)
        except WireError:
            return
        if isinstance(model := raw.get("model"), str) and model:
            self.span.rename(f"chat {model}")
            self._told["gen_ai.request.model"] = model
        self._told |= {
            known: raw[name] for name, known in ASKED.items() if isinstance(raw.get(name), bool | int | float)
        }
        if self._tracer.captures_content:
            self._told["gen_ai.input.messages"] = _content(wire.parse(body).messages)

    def _tell_answer(self, tap: ResponseTap) -> None:
        payloads, streamed = tap.payloads()
        account = account_of(payloads, streamed)
        self._told |= {
            "gen_ai.response.id": account.id or None,
            "gen_ai.response.model": account.model or None,
            "gen_ai.response.finish_reasons": account.finish_reasons or None,
            "gen_ai.usage.input_tokens": account.input_tokens,
            "gen_ai.usage.output_tokens": account.output_tokens,
            "gen_ai.usage.cache_read.input_tokens": account.cache_read_tokens,
            "gen_ai.usage.cache_creation.input_tokens": account.cache_write_tokens,
            "gen_ai.usage.reasoning.output_tokens": account.reasoning_tokens,
        }
        if self._tracer.captures_content and self._wire is not None:
            message = self._wire.reply(payloads, streamed).message
            said = () if message is None else (message,)
            self._told["gen_ai.output.messages"] = _content(said, account.finish_reasons)


def _content(messages: Sequence[Message], reasons: tuple[str, ...] = ()) -> str:
    """Messages as JSON of the conventions, without credentials."""
    end = {"finish_reason": reasons[0]} if reasons else {}
    return orjson.dumps([_message(message) | end for message in messages]).decode()


def _message(message: Message) -> Json:
    """A message in the form of OpenTelemetry, without credentials."""
    text = redact(message.text)
    if message.answers_call:
        return {
            "role": message.role,
            "parts": [{"type": "tool_call_response", "id": message.answers_call, "response": text}],
        }
    calls = [
        {"type": "tool_call", "id": call.id, "name": call.name, "arguments": redact(call.arguments)}
        for call in message.calls
    ]
    return {"role": message.role, "parts": [*([{"type": "text", "content": text}] if text else []), *calls]}


def _provider(upstream: UpstreamPolicy) -> str:
    """The provider's name in the conventions where they have one, else what the operator calls it."""
    if upstream.litellm:
        prefix = upstream.litellm.partition("/")[0]
        return LITELLM.get(prefix, prefix)
    host = urlsplit(upstream.url).hostname or ""
    return next((name for end, name in HOSTS if host == end or host.endswith("." + end)), upstream.name)


def _error_type(failure: BaseException) -> str:
    if isinstance(failure, UpstreamUnreachable):
        return "timeout" if failure.http_status == TIMEOUT_STATUS else "unreachable"
    return "not_served" if isinstance(failure, NotServed) else GONE if not isinstance(failure, Exception) else "_OTHER"
