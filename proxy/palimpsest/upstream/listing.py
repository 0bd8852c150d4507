"""
The list of models: the lists of all upstreams in one, each model as the upstream has it that serves it.

Entries and list carry the fields of OpenAI's form and of Anthropic's, so that the SDKs of both read them.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import aclosing

import orjson
import structlog

from palimpsest.domain import Api, Json, RawHeaders
from palimpsest.domain.errors import UpstreamUnreachable
from palimpsest.domain.ports import UpstreamAnswer
from palimpsest.settings.policy import UpstreamPolicy
from palimpsest.upstream.routing import choose, serving
from palimpsest.wire.json_body import object_in

TIMEOUT_SECONDS = 10.0  # a picker of models waits for this list, and one slow upstream must not keep the others' away
OK = 200
OWNER = "palimpsest"
NO_DATE = "1970-01-01T00:00:00Z"  # Anthropic's own word for a model whose date is not known

# The upstreams' lists are read here, and compared with none that the client has: it gets no answer of theirs.
_NOT_ASKED = frozenset({b"accept-encoding", b"if-none-match", b"if-modified-since", b"range"})
_PATTERN = re.compile(r"[*?\[]")

Ask = Callable[[UpstreamPolicy, RawHeaders], Awaitable[UpstreamAnswer]]

log = structlog.get_logger()

JSON = b"application/json"


class ModelList:
    """The list at `/v1/models`, and the upstream of each model in it."""

    def __init__(self, upstreams: Sequence[UpstreamPolicy]) -> None:
        self._upstreams = tuple(upstreams)

    def merges(self, api: Api) -> bool:
        """Whether several upstreams have to be asked."""
        those = serving(self._upstreams, api)
        return len(those) > 1 or any(upstream.litellm for upstream in those)

    async def answer(self, api: Api, headers: RawHeaders, ask: Ask) -> UpstreamAnswer:
        """The lists of all upstreams as one, without those that fail; if all do, the first one's answer or failure."""
        those = serving(self._upstreams, api)
        plain = [header for header in headers if header[0] not in _NOT_ASKED]
        answers = await asyncio.gather(*(_models_of(ask, upstream, plain) for upstream in those))
        found: dict[str, Json] = {}
        for upstream, said in zip(those, answers, strict=True):
            for entry in [*(said if isinstance(said, list) else ()), *_named_models(upstream)]:
                if choose(self._upstreams, entry["id"], api) is upstream:
                    found.setdefault(entry["id"], entry)
        failure = next((said for said in answers if not isinstance(said, list)), None)
        if failure is None or found:
            return StaticAnswer(OK, _list(list(found.values())))
        if isinstance(failure, UpstreamUnreachable):
            raise failure
        return failure

    @staticmethod
    def entry_of(model: str) -> StaticAnswer:
        """The entry at `GET /v1/models/{model}` of a model of which only the name is known."""
        return StaticAnswer(OK, orjson.dumps(_entry({"id": model})))


async def _models_of(
    ask: Ask, upstream: UpstreamPolicy, headers: RawHeaders
) -> list[Json] | StaticAnswer | UpstreamUnreachable:
    if upstream.litellm:
        return []
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS), aclosing(await ask(upstream, headers)) as answer:
            body = b"".join([data async for data in answer])
    except (UpstreamUnreachable, TimeoutError) as cause:
        slow = f"listing the models of upstream {upstream.name!r}: no answer within {TIMEOUT_SECONDS:.0f} s"
        failure = UpstreamUnreachable(slow, timed_out=True) if isinstance(cause, TimeoutError) else cause
        log.warning("models left out of the list", upstream=upstream.name, reason=str(failure))
        return failure
    entries = _entries(body)
    if answer.status == OK and entries is not None:
        return entries
    log.warning("models left out of the list", upstream=upstream.name, status=answer.status)
    return StaticAnswer(answer.status, body, [h for h in answer.headers if h[0].lower() != b"content-length"])


def _entries(body: bytes) -> list[Json] | None:
    """The entries of a list in either API's format; None: it is not a list."""
    data = object_in(body).get("data")
    if not isinstance(data, list):
        return None
    return [_entry(one) for one in data if isinstance(one, dict) and isinstance(one.get("id"), str)]


def _named_models(upstream: UpstreamPolicy) -> Iterable[Json]:
    """The models that the policy names without patterns."""
    return (_entry({"id": name}) for name in upstream.models if not _PATTERN.search(name))


def _entry(one: Json) -> Json:
    openai = {"object": "model", "created": 0, "owned_by": OWNER}
    anthropic = {"type": "model", "display_name": one["id"], "created_at": NO_DATE}
    return openai | anthropic | one


def _list(data: list[Json]) -> bytes:
    edges = {"first_id": data[0]["id"] if data else None, "last_id": data[-1]["id"] if data else None}
    return orjson.dumps({"object": "list", "data": data, "has_more": False, **edges})


class StaticAnswer:
    """An `UpstreamAnswer` that is complete from the start."""

    __slots__ = ("_body", "headers", "status")

    def __init__(self, status: int, body: bytes, headers: RawHeaders = ((b"content-type", JSON),)) -> None:
        self.status = status
        self.headers = [*headers, (b"content-length", b"%d" % len(body))]
        self._body = body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._body

    async def aclose(self) -> None:
        """Nothing to close."""
