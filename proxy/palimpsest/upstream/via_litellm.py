"""
LiteLLM as an upstream, for providers that do not speak the client's API.

It runs apart from everything else (`upstream/litellm_library.py`), asks nobody but the provider, keeps no record and
writes no line.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterable, Mapping
from functools import partial
from typing import Any, Self

import structlog

from palimpsest.core.caller.credentials import forwarded_secrets
from palimpsest.core.caller.proxy_keys import ProxyKeys
from palimpsest.domain import Json, RawHeaders
from palimpsest.domain.errors import NotServed, WireError
from palimpsest.domain.ports import Body, UpstreamAnswer
from palimpsest.settings.policy import ENVIRON, UpstreamPolicy
from palimpsest.upstream.failures import is_broken, refused, summary, unreachable
from palimpsest.upstream.listing import JSON, StaticAnswer
from palimpsest.upstream.litellm_bridge import (
    CHAT_FIELDS,
    HINTS,
    MESSAGES_FIELDS,
    RESPONSES_FIELDS,
    Bridge,
    Frames,
    ask_chat,
    ask_messages,
    ask_responses,
    responses_broken,
)
from palimpsest.upstream.litellm_library import Library, LiteLLMThread, LoopThread
from palimpsest.wire.encoding import decoded
from palimpsest.wire.json_body import read_object
from palimpsest.wire.refusal import Refusal, refusal_of
from palimpsest.wire.responses import is_trigger
from palimpsest.wire.values import changed

HELD = ("previous_response_id", "conversation")  # fields of Responses that stand for what is not sent
BODY_BYTES = 256 * 1024 * 1024  # of a compressed request, once it is not
STREAM = ((b"content-type", b"text/event-stream; charset=utf-8"), (b"cache-control", b"no-cache"))

log = structlog.get_logger()

OF_THE_ROUTER = ("num_retries", "retry_after", "retry_policy")  # its other settings are those of a model
_MODEL_NAME = re.compile(r"[\w.:@+-]+(/[\w.:@+-]+)*")  # no URL: some providers of LiteLLM's would go there


class LitellmAnswer:
    """A streamed `UpstreamAnswer`, begun after its first event, so that a provider's refusal still has its status."""

    def __init__(
        self, first: bytes, rest: Frames, upstream: UpstreamPolicy, bridge: Bridge, thread: LoopThread
    ) -> None:
        self.status = 200
        self.headers: RawHeaders = STREAM
        self._first, self._rest = first, rest
        self._upstream, self._bridge, self._thread = upstream, bridge, thread

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._first
        try:
            while (event := await _step(self._thread, self._rest, self._upstream)) is not None:
                yield event
        except Exception as failure:  # whatever the provider's library raises
            broken = unreachable(self._upstream, failure)
            if event := self._bridge.broken(str(broken)):
                yield event
            raise broken from failure

    async def aclose(self) -> None:
        await self._thread.close(self._rest)


class ViaLitellm:
    """All LiteLLM upstreams, each with a router of LiteLLM's. An async context manager."""

    def __init__(
        self,
        upstreams: Iterable[UpstreamPolicy],  # those with `litellm`; their names differ
        environment: Mapping[str, str],  # holds the keys and secrets that they name
        keyring: ProxyKeys | None = None,  # the keys that clients present to us; they are never forwarded
        # shared with others, and closed by its owner; None: one of its own
        litellm_thread: LiteLLMThread | None = None,
    ) -> None:
        self._upstreams = tuple(upstreams)
        self._environment = environment
        self._keyring = keyring or ProxyKeys({})
        self._library = litellm_thread or LiteLLMThread()
        self._is_shared = litellm_thread is not None
        self._thread = self._library.thread
        self._litellm: Any = None
        self._routers: dict[str, Any] = {}
        self._timeouts: dict[str, Any] = {}
        self._bridges: dict[str, Bridge] = {}

    async def __aenter__(self) -> Self:
        if self._upstreams:
            try:
                library = await self._library.open()
                await self._thread.run(self._open(library))
            except BaseException:
                await self.__aexit__(None, None, None)
                raise
        return self

    async def __aexit__(self, *failure: object) -> None:
        if not self._is_shared:
            await self._library.close()

    async def send(
        self, upstream: UpstreamPolicy, method: str, path: str, headers: RawHeaders, body: Body
    ) -> UpstreamAnswer:
        """
        Ask a model through LiteLLM.

        Args:
            path: without its query.

        Raises:
            NotServed: LiteLLM does not serve the path or the model.
            UpstreamUnreachable: no answer.
        """
        bridge = self._bridges.get(path[path.find("/v1/") :]) if method == "POST" else None
        if bridge is None:
            raise NotServed(
                f"upstream {upstream.name!r} is a LiteLLM model: it serves POST {', '.join(self._bridges)}; "
                f"it does not serve {method} {path}"
            )
        refusal = partial(_refusal, refusal_of(path, headers))
        try:
            whole = body if isinstance(body, bytes) else b"".join([data async for data in body])
            raw = await self._thread.run(_read(whole, headers))
        except WireError as unread:
            return refusal(400, "invalid_request_error", str(unread))
        if not isinstance(raw.get(bridge.said), list | str):
            return refusal(400, "invalid_request_error", f"{bridge.said} is missing or not a list")
        access: Json = {"model": filled(upstream, raw.get("model"))}
        if upstream.name in self._timeouts:
            access["timeout"] = self._timeouts[upstream.name]
        if upstream.auth == "forward":
            access["api_key"] = self._credential(headers)
            if not access["api_key"]:  # else LiteLLM would look for one of ours
                text = f"upstream {upstream.name!r} takes the client's own key: send it"
                return refusal(401, "invalid_api_key", text)
        asked = {name: value for name, value in raw.items() if name in bridge.fields}
        if bridge.said == "input" and not self._holds(access["model"], raw):
            text = f"{upstream.litellm} keeps no history behind an id: send all of it in input, without {HELD}"
            return refusal(400, "previous_response_not_found", text)
        if bridge.said == "input" and any(map(is_trigger, raw["input"])) and not self._has_responses(access["model"]):
            return refusal(400, "compaction_not_supported", f"{upstream.litellm} has no compaction")
        try:
            async with asyncio.timeout(start_timeout_seconds(upstream)):
                result = await self._thread.run(self._ask(bridge, upstream, asked | access))
            if isinstance(result, bytes):
                return StaticAnswer(200, result)
            first = await _step(self._thread, result, upstream)
            return LitellmAnswer(first or b"", result, upstream, bridge, self._thread)
        except Exception as failure:  # LiteLLM raises whatever its providers' libraries raise
            if (no := refused(failure)) is not None:
                return refusal(no.status, no.code, no.text, no.headers)
            if is_broken(failure):
                raise unreachable(upstream, failure) from failure
            log.warning("LiteLLM failed", upstream=upstream.name, exc_info=failure)
            return refusal(500, "upstream_error", f"LiteLLM failed to ask {upstream.litellm}: {summary(failure)}")

    async def _open(self, library: Library) -> None:
        """Make routers, timeouts and bridges, once the library is loaded."""
        self._litellm = library.litellm
        self._timeouts = {
            u.name: library.timeout(u.silence_timeout_seconds, connect=u.connect_timeout_seconds)
            for u in self._upstreams
            if "timeout" not in u.settings
        }
        self._routers = {u.name: router(library.litellm, u, self._environment) for u in self._upstreams}
        self._bridges = {
            "/v1/chat/completions": Bridge("messages", CHAT_FIELDS, ask_chat),
            "/v1/responses": Bridge("input", RESPONSES_FIELDS, ask_responses, responses_broken),
            "/v1/messages": Bridge(
                "messages", MESSAGES_FIELDS, partial(ask_messages, library.adapter, self._supported)
            ),
        }

    async def _ask(self, bridge: Bridge, upstream: UpstreamPolicy, asked: Json) -> bytes | Frames:
        return await bridge.ask(self._routers[upstream.name], self._supported(asked))

    def _supported(self, asked: Json) -> Json:
        supported = self._litellm.get_supported_openai_params(asked["model"]) or ()
        return {name: value for name, value in asked.items() if name not in HINTS or name in supported}

    def _holds(self, model: str, raw: Json) -> bool:
        """Whether the provider can know the history behind an id: only one with a Responses API of its own does."""
        if not any(raw.get(name) for name in HELD):
            return True
        return self._has_responses(model) and not raw.get("conversation")  # this LiteLLM does not know

    def _has_responses(self, model: str) -> bool:
        """Whether the provider has a Responses API of its own, which LiteLLM need not translate."""
        _, provider, *_ = self._litellm.get_llm_provider(model)
        manager = self._litellm.utils.ProviderConfigManager
        kind = self._litellm.LlmProviders(provider)
        return manager.get_provider_responses_api_config(provider=kind, model=model.partition("/")[2]) is not None

    def _credential(self, headers: RawHeaders) -> str:
        own = (secret for secret in forwarded_secrets(headers) if not self._keyring.is_ours(secret))
        return next(own, b"").decode("latin-1")


def _refusal(shape: Refusal, status: int, code: str, text: str, headers: RawHeaders = ()) -> UpstreamAnswer:
    return StaticAnswer(status, shape(status, code, text), [(b"content-type", JSON), *headers])


async def _step(thread: LoopThread, events: Frames, upstream: UpstreamPolicy) -> bytes | None:
    """Wait for the next event within a time limit; None: the stream has ended."""
    async with asyncio.timeout(None if "timeout" in upstream.settings else upstream.silence_timeout_seconds):
        return await thread.step(events)


async def _read(body: bytes, headers: RawHeaders) -> Json:
    encoding = next((value for name, value in headers if name == b"content-encoding"), b"").decode("latin-1")
    return read_object(decoded(body, encoding, BODY_BYTES) if encoding else body)


def router(litellm: Any, upstream: UpstreamPolicy, environment: Mapping[str, str]) -> Any:
    """A router of LiteLLM's for one model and its fallbacks, with what the settings name of the environment."""

    def resolved(text: str, _name: str, _owner: Json) -> str:
        return environment[text.removeprefix(ENVIRON)] if text.startswith(ENVIRON) else text

    settings = changed(upstream.settings, resolved, on_name=lambda name: name)
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


def filled(upstream: UpstreamPolicy, model: Any) -> str:
    """LiteLLM's name of the model that a client asks for; `NotServed`: it names none."""
    start, star, _ = upstream.litellm.partition("*")
    if not star:
        return upstream.litellm
    if not isinstance(model, str) or not _MODEL_NAME.fullmatch(model):
        raise NotServed(f"upstream {upstream.name!r} needs a model name, and {model!r} is not one")
    return start + model.removeprefix(start)


def start_timeout_seconds(upstream: UpstreamPolicy) -> float | None:
    """Timeout for the start of an answer, in seconds; None: LiteLLM's own settings decide."""
    if {"timeout", *OF_THE_ROUTER, "fallbacks"} & upstream.settings.keys():
        return None
    return upstream.silence_timeout_seconds
