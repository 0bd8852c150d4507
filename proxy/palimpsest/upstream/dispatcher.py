"""The dispatcher: sends a request to its upstream, as it is or through LiteLLM."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import cached_property
from typing import TYPE_CHECKING, Self
from urllib.parse import unquote

from palimpsest.core.caller.proxy_keys import ProxyKeys
from palimpsest.domain import RawHeaders
from palimpsest.domain.errors import NotServed
from palimpsest.domain.ports import Body, Tracer, UpstreamAnswer
from palimpsest.settings.policy import UpstreamPolicy
from palimpsest.telemetry.tracing import NO_TRACER
from palimpsest.upstream.passthrough import Passthrough
from palimpsest.upstream.routing import at_login, choose, login_headers, login_of, taking
from palimpsest.wire.refusal import api_of

if TYPE_CHECKING:
    from palimpsest.upstream.listing import ModelList
    from palimpsest.upstream.litellm_library import LiteLLMThread
    from palimpsest.upstream.via_litellm import ViaLitellm

LIST_PATH = "/v1/models"
LOGIN_NOT_SERVED = "login_not_served"  # code of the error


class Upstreams:
    """All upstreams of a proxy; implements `Sender`. An async context manager."""

    def __init__(
        self,
        upstreams: Sequence[UpstreamPolicy],  # their names differ
        environment: Mapping[str, str],  # holds the keys of those with `auth: held`
        keyring: ProxyKeys | None = None,  # the keys that clients present to us; they are never forwarded
        # gives the thread of LiteLLM, shared with the upstreams of other policies; called where one needs it. None: it
        # runs where it has to
        litellm_thread: Callable[[], LiteLLMThread] | None = None,
        tracer: Tracer = NO_TRACER,
    ) -> None:
        self._upstreams = tuple(upstreams)
        self._passthrough = Passthrough([u for u in upstreams if not u.litellm], environment, keyring)
        self._litellm: ViaLitellm | None = None
        if translated := [upstream for upstream in upstreams if upstream.litellm]:
            from palimpsest.upstream.via_litellm import ViaLitellm

            self._litellm = ViaLitellm(translated, environment, keyring, litellm_thread and litellm_thread())
        self._login_headers = login_headers(upstreams)
        self._opened = AsyncExitStack()
        self._tracer = tracer

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as opened:
            await opened.enter_async_context(self._passthrough)
            if self._litellm is not None:
                await opened.enter_async_context(self._litellm)
            self._opened = opened.pop_all()
        return self

    async def __aexit__(self, *failure: object) -> None:
        await self._opened.aclose()

    @cached_property
    def _models(self) -> ModelList:
        from palimpsest.upstream.listing import ModelList  # late: with the first request for a list

        return ModelList(self._upstreams)

    async def send(self, model: str, method: str, target: str, headers: RawHeaders, body: Body) -> UpstreamAnswer:
        """Choose the upstream of a request, and ask it; see `Sender`."""
        path = target.partition("?")[0]
        api = api_of(path, headers)
        login = login_of(headers, self._login_headers)
        candidates = taking(self._upstreams, login) if login else self._upstreams
        is_listing = method == "GET" and path.startswith(LIST_PATH) and self._models.merges(api) and not login
        if is_listing and path == LIST_PATH:
            return await self._models.answer(
                api, headers, lambda upstream, asking: self._passthrough.send(upstream, method, target, asking, body)
            )
        if is_listing:
            model = unquote(path[len(LIST_PATH) :].strip("/"))
        upstream = choose(candidates, model, api)
        if upstream is None and choose(self._upstreams, model, api) is not None:
            raise NotServed(
                f"a login named by the header {login} is valid at its own provider only, and this request goes to "
                f"another upstream: use an API key, or set the address for such logins in upstreams.logins",
                LOGIN_NOT_SERVED,
            )
        if upstream is None:
            raise NotServed(
                f"no upstream serves {model or path!r}; the proxy's upstreams.models and upstreams.wire say "
                "which are served"
            )
        if upstream.litellm and is_listing:
            return self._models.entry_of(model)

        whom, below = at_login(upstream, login, target)

        def ask(headers: RawHeaders) -> Awaitable[UpstreamAnswer]:
            if self._litellm is not None and upstream.litellm:
                return self._litellm.send(upstream, method, path, headers, body)
            return self._passthrough.send(whom, method, below, headers, body)

        if not self._tracer.is_on:
            return await ask(headers)
        from palimpsest.upstream.traced import ask_traced

        return await ask_traced(self._tracer, whom, method, path, headers, body, ask)
