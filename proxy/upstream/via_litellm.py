"""
How does a request reach a provider that does not speak the client's wire? Through LiteLLM, which translates it.

The only file that imports litellm, and only where an upstream names one of its models: at the start, as that takes
seconds. It runs apart from everything else, asks nobody but the provider, keeps no record and writes no line.
"""

from __future__ import annotations

import asyncio
import functools
import os
import re
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any, NamedTuple, Self

import orjson
import structlog

from proxy.core.identity import credential_of
from proxy.core.keyring import Keyring
from proxy.domain import Json, RawHeaders
from proxy.errors import NotServed, WireError
from proxy.logs import silence
from proxy.policy import ENVIRON, UpstreamPolicy
from proxy.ports import Answer, Body
from proxy.upstream.apart import Apart
from proxy.upstream.bridged import (
    CHAT_FIELDS,
    HINTS,
    MESSAGES_FIELDS,
    RESPONSES_FIELDS,
    Bridge,
    Frames,
    ask_chat,
    ask_responses,
    begun,
    closed,
    responses_broken,
)
from proxy.upstream.failures import is_broken, refused, summary, unreachable
from proxy.upstream.whole import JSON, WholeAnswer
from proxy.wire.body import read_object
from proxy.wire.encoding import decoded
from proxy.wire.refusal import Refusal, refusal_of

OFFLINE = (  # what LiteLLM would fetch from the network when it is imported or first used
    *("LITELLM_LOCAL_MODEL_COST_MAP", "LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS", "LITELLM_LOCAL_BLOG_POSTS"),
    *("LITELLM_LOCAL_POLICY_TEMPLATES", "LITELLM_LOCAL_AUTOROUTER_PRESETS"),
)
LOGGERS = ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy")  # their lines quote what passes
OF_THE_ROUTER = ("num_retries", "retry_after", "retry_policy")  # its other settings are those of a model
HELD = ("previous_response_id", "conversation")  # fields of Responses that stand for what is not sent
BODY_BYTES = 256 * 1024 * 1024  # of a compressed request, once it is not
STREAM = ((b"content-type", b"text/event-stream; charset=utf-8"), (b"cache-control", b"no-cache"))
_MODEL_NAME = re.compile(r"[\w.:@+-]+(/[\w.:@+-]+)*")  # no URL: some providers of LiteLLM's would go there

log = structlog.get_logger()


class LitellmAnswer:
    """A streamed `Answer`; its first event is here already, so that a provider's refusal still has its status."""

    def __init__(self, first: bytes, rest: Frames, upstream: UpstreamPolicy, bridge: Bridge, apart: Apart) -> None:
        """
        Args:
            rest: lives `apart`.
        """
        self.status = 200
        self.headers: RawHeaders = STREAM
        self._first, self._rest = first, rest
        self._upstream, self._bridge, self._apart = upstream, bridge, apart

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._first
        try:
            while (event := await _step(self._apart, self._rest, self._upstream)) is not None:
                yield event
        except Exception as failure:  # whatever the provider's library raises
            broken = unreachable(self._upstream, failure)
            if event := self._bridge.broken(str(broken)):
                yield event
            raise broken from failure

    async def aclose(self) -> None:
        await self._apart.close(self._rest)


class ViaLitellm:
    """The way to all LiteLLM models, one router of LiteLLM's for each; open between `async with`."""

    def __init__(
        self, upstreams: Iterable[UpstreamPolicy], environment: Mapping[str, str], keyring: Keyring | None = None
    ) -> None:
        """
        Args:
            upstreams: those with `litellm`; their names differ.
            environment: holds the keys and secrets that they name.
            keyring: the keys that clients present to us; they are never forwarded.
        """
        self._upstreams = tuple(upstreams)
        self._environment = environment
        self._keyring = keyring or Keyring({})
        self._apart = Apart("litellm")
        self._opened = AsyncExitStack()
        self._litellm: Any = None
        self._routers: dict[str, Any] = {}
        self._timeouts: dict[str, Any] = {}
        self._bridges: dict[str, Bridge] = {}

    async def __aenter__(self) -> Self:
        if self._upstreams:
            async with AsyncExitStack() as opened:
                await opened.enter_async_context(self._apart)
                await self._apart.run(self._open())
                opened.push_async_callback(self._close)
                self._opened = opened.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._opened.aclose()

    async def send(self, upstream: UpstreamPolicy, method: str, path: str, headers: RawHeaders, body: Body) -> Answer:
        """
        Ask a model.

        Args:
            path: without its query.

        Raises:
            NotServed: the path or the model is none that LiteLLM could be asked for.
            UpstreamUnreachable: there is no answer.
        """
        bridge = self._bridges.get(path[path.find("/v1/") :]) if method == "POST" else None
        if bridge is None:
            raise NotServed(
                f"upstream {upstream.name!r} is a LiteLLM model and serves POST {', '.join(self._bridges)}; "
                f"it does not serve {method} {path}"
            )
        refusal = functools.partial(_refusal, refusal_of(path, headers))
        try:
            raw = await _read(body, headers)
        except WireError as unread:
            return refusal(400, "invalid_request_error", str(unread))
        access: Json = {"model": _filled(upstream, raw.get("model"))}
        if upstream.name in self._timeouts:
            access["timeout"] = self._timeouts[upstream.name]
        if upstream.auth == "forward":
            access["api_key"] = self._credential(headers)
            if not access["api_key"]:  # else LiteLLM would look for one of ours
                return refusal(
                    401, "invalid_api_key", f"upstream {upstream.name!r} takes the client's own key: send it"
                )
        asked = {name: value for name, value in raw.items() if name in bridge.fields}
        if (
            "input" in bridge.fields
            and any(raw.get(name) for name in HELD)
            and not self._holds_history(access["model"], raw)
        ):
            text = f"{upstream.litellm} holds no history behind an id: send all of it in input, and none of {HELD}"
            return refusal(400, "previous_response_not_found", text)
        try:
            async with asyncio.timeout(_patience(upstream)):
                result = await self._apart.run(self._ask(bridge, upstream, asked | access))
            if isinstance(result, bytes):
                return WholeAnswer(200, result)
            first = await _step(self._apart, result, upstream)
            return LitellmAnswer(first or b"", result, upstream, bridge, self._apart)
        except Exception as failure:  # LiteLLM raises whatever its providers' libraries raise
            if (no := refused(failure)) is not None:
                return refusal(no.status, no.code, no.text, no.headers)
            if is_broken(failure):
                raise unreachable(upstream, failure) from failure
            log.warning("a request could not be translated", upstream=upstream.name, exc_info=failure)
            return refusal(
                400, "invalid_request_error", f"LiteLLM cannot ask {upstream.litellm} for this: {summary(failure)}"
            )

    async def _open(self) -> None:
        library = _imported()
        self._litellm = library.litellm
        self._timeouts = {
            u.name: library.timeout(u.silence_timeout_seconds, connect=u.connect_timeout_seconds)
            for u in self._upstreams
            if "timeout" not in u.settings
        }
        self._routers = {u.name: _router(library.litellm, u, self._environment) for u in self._upstreams}
        self._bridges = {
            "/v1/chat/completions": Bridge(CHAT_FIELDS, ask_chat),
            "/v1/responses": Bridge(RESPONSES_FIELDS, ask_responses, responses_broken),
            "/v1/messages": Bridge(MESSAGES_FIELDS, functools.partial(_ask_messages, library.adapter, self._supported)),
        }

    async def _close(self) -> None:
        await self._apart.run(self._litellm.close_litellm_async_clients())

    async def _ask(self, bridge: Bridge, upstream: UpstreamPolicy, asked: Json) -> bytes | Frames:
        return await bridge.ask(self._routers[upstream.name], self._supported(asked))

    def _supported(self, asked: Json) -> Json:
        """Without hints that the provider does not know."""
        supported = self._litellm.get_supported_openai_params(asked["model"]) or ()
        return {name: value for name, value in asked.items() if name not in HINTS or name in supported}

    def _holds_history(self, model: str, raw: Json) -> bool:
        """Whether the provider itself has Responses; where LiteLLM translates them, what came before would be lost."""
        _, provider, *_ = self._litellm.get_llm_provider(model)
        manager = self._litellm.utils.ProviderConfigManager
        kind = self._litellm.LlmProviders(provider)
        native = manager.get_provider_responses_api_config(provider=kind, model=model.partition("/")[2])
        return native is not None and not raw.get("conversation")  # this LiteLLM does not know

    def _credential(self, headers: RawHeaders) -> str:
        key = credential_of({name.decode("latin-1"): value.decode("latin-1") for name, value in headers})
        return "" if self._keyring.opens(key.encode()) else key


class Library(NamedTuple):
    """What is used of LiteLLM."""

    litellm: Any
    adapter: Any  # Messages to chat completions, and back
    timeout: Any  # of httpx


def _imported() -> Library:
    """The library, quiet and offline."""
    os.environ.update(dict.fromkeys(OFFLINE, "True"))
    import httpx
    import litellm
    from litellm.llms.anthropic.pass_through.adapters.transformation import AnthropicAdapter

    litellm.suppress_debug_info = True  # else it prints hints
    litellm.expose_router_debug_in_errors = False  # clients know nothing of its routers
    litellm.telemetry = False
    silence(*LOGGERS)
    return Library(litellm, AnthropicAdapter(), httpx.Timeout)


def _router(litellm: Any, upstream: UpstreamPolicy, environment: Mapping[str, str]) -> Any:
    """One model, and those that stand in for it, with LiteLLM's own retries and nothing else of its router's."""
    settings = _resolved(upstream.settings, environment)
    routing = {"num_retries": 0} | {name: settings.pop(name) for name in OF_THE_ROUTER if name in settings}
    fallbacks = [{"model": one} if isinstance(one, str) else one for one in settings.pop("fallbacks", ())]
    access = {"api_key": environment.get(upstream.key_env, ""), "api_base": upstream.url}
    main = {"model": upstream.litellm} | {name: value for name, value in access.items() if value} | settings
    models = {upstream.litellm: main} | {f"fallback {number}": one for number, one in enumerate(fallbacks)}
    return litellm.Router(
        model_list=[{"model_name": name, "litellm_params": {"max_retries": 0} | one} for name, one in models.items()],
        default_fallbacks=[name for name in models if name != upstream.litellm],
        disable_cooldowns=True,
        **routing,
    )


def _resolved(value: Any, environment: Mapping[str, str]) -> Any:
    """A copy of settings in which every variable has become what it holds."""
    if isinstance(value, dict):
        return {name: _resolved(inner, environment) for name, inner in value.items()}
    if isinstance(value, list):
        return [_resolved(inner, environment) for inner in value]
    if isinstance(value, str) and value.startswith(ENVIRON):
        return environment[value.removeprefix(ENVIRON)]
    return value


async def _ask_messages(adapter: Any, supported: Callable[[Json], Json], router: Any, asked: Json) -> bytes | Frames:
    """Messages, translated to chat completions and back: LiteLLM's own way needs its whole proxy where it streams."""
    access = {name: asked[name] for name in ("model", "api_key", "timeout") if name in asked}
    given = {name: value for name, value in asked.items() if name not in ("api_key", "timeout")}
    told, names = adapter.translate_completion_input_params_with_tool_mapping(given)
    chat = supported({name: value for name, value in told.items() if name in CHAT_FIELDS} | access)
    if not asked.get("stream"):
        return orjson.dumps(adapter.translate_completion_output_params(await router.acompletion(**chat), names))
    stream = await router.acompletion(**chat, stream_options={"include_usage": True})  # here it is always told
    return _messages_events(adapter, stream, asked["model"].partition("/")[2], names)


async def _messages_events(adapter: Any, stream: Any, model: str, names: Any) -> Frames:
    """Events as the translation has them; the one that says that the stream is broken is no end."""
    async with closed(stream):
        events = adapter.translate_completion_output_params_streaming(await begun(stream), model, names)
        async with closed(events):
            async for event in events:
                yield event
                if event.startswith(b"event: error"):
                    raise ConnectionError


async def _read(body: Body, headers: RawHeaders) -> Json:
    whole = body if isinstance(body, bytes) else b"".join([data async for data in body])
    encoding = next((value for name, value in headers if name == b"content-encoding"), b"").decode("latin-1")
    return read_object(decoded(whole, encoding, BODY_BYTES) if encoding else whole)


def _filled(upstream: UpstreamPolicy, model: Any) -> str:
    """
    What LiteLLM calls the model that a client asks for.

    Raises:
        NotServed: the client's name is none of a model.
    """
    start, star, _ = upstream.litellm.partition("*")
    if not star:
        return upstream.litellm
    if not isinstance(model, str) or not _MODEL_NAME.fullmatch(model):
        raise NotServed(f"upstream {upstream.name!r} needs the name of a model, and {model!r} is none")
    return start + model.removeprefix(start)


def _refusal(shape: Refusal, status: int, code: str, text: str, headers: RawHeaders = ()) -> Answer:
    return WholeAnswer(status, shape(status, code, text), [(b"content-type", JSON), *headers])


async def _step(apart: Apart, events: Frames, upstream: UpstreamPolicy) -> bytes | None:
    """The next event, in time: some of LiteLLM's providers know no timeout where they stream."""
    async with asyncio.timeout(None if "timeout" in upstream.settings else upstream.silence_timeout_seconds):
        return await apart.step(events)


def _patience(upstream: UpstreamPolicy) -> float | None:
    """Seconds until an answer begins, at most; None: LiteLLM's own settings say it."""
    if {"timeout", *OF_THE_ROUTER, "fallbacks"} & upstream.settings.keys():
        return None
    return upstream.silence_timeout_seconds
