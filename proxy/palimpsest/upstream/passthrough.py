"""
The pass-through: the client's bytes to the provider and the provider's to the client, unchanged and as they come,
through the proxy of the network where the environment names one.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import AsyncIterator, Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Self, TypedDict
from urllib.parse import urlsplit

import aiohttp
import structlog
from multidict import CIMultiDict
from yarl import URL

from palimpsest.core.caller.credentials import NAMES, hop_by_hop
from palimpsest.core.caller.proxy_keys import ProxyKeys
from palimpsest.domain import Api, RawHeaders
from palimpsest.domain.errors import PolicyError, UpstreamUnreachable
from palimpsest.domain.ports import Body, UpstreamAnswer
from palimpsest.settings.policy import UpstreamPolicy
from palimpsest.upstream.routing import joined
from palimpsest.upstream.upgraded import SWITCHING, WEBSOCKET, UpgradedAnswer, asks_to_switch

log = structlog.get_logger()

HOP_BY_HOP = frozenset(
    {  # RFC 9110 section 7.6.1: they speak of one connection, not of the message
        *(b"connection", b"keep-alive", b"proxy-connection", b"proxy-authenticate", b"proxy-authorization"),
        *(b"te", b"trailer", b"transfer-encoding", b"upgrade"),
    }
)
OURS = b"x-palimpsest-"
NOT_FORWARDED = HOP_BY_HOP | {b"host", b"expect"}  # the server has answered `expect`; `host` is the upstream's
AUTO_HEADERS = ("User-Agent", "Accept", "Accept-Encoding", "Content-Type")  # what aiohttp would add by itself
HEADER_BYTES = 64 * 1024  # longest header line of an answer; aiohttp's own 8 kB is less than some gateways send
HEADER_LINES = 1000  # for the same reason
SLICE_BYTES = 256 * 1024  # of a large body at a time, so that writing it lets others speak
BODILESS = (204, 304)  # answers that end with their headers, whatever length these announce

_CONTROL = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
_STATUSES = range(200, 600)
NO_HTTP = "it does not speak HTTP"
TOO_LONG = f"a header of its answer is over {HEADER_BYTES // 1024} kB, or there are over {HEADER_LINES:,}"
_TOO_LONG = ("Got more than", "Too many headers")  # aiohttp's words; one type is that of any bad message

EXTRA_AUTHORITIES = "NODE_EXTRA_CA_CERTS"
"""The variable in which clients that are made with Node name authorities; OpenSSL itself reads SSL_CERT_FILE."""

_REASONS: tuple[tuple[type[BaseException], str], ...] = (
    (aiohttp.ClientConnectorDNSError, "its name does not resolve"),
    (aiohttp.ClientHttpProxyError, "the proxy of the network refused it"),
    (aiohttp.ClientProxyConnectionError, "the proxy of the network (HTTPS_PROXY) could not be reached"),
    (
        aiohttp.ClientConnectorCertificateError,
        f"its certificate is not trusted (expired, for another name, or {EXTRA_AUTHORITIES} must name its signer)",
    ),
    (aiohttp.ClientSSLError, "a secure connection could not be made"),
    (TimeoutError, "it sent nothing for too long"),
    (aiohttp.ClientConnectorError, "it refused the connection"),
    (aiohttp.ServerDisconnectedError, "it closed the connection without an answer"),
    (aiohttp.ClientResponseError, NO_HTTP),
)


class _ProxyArguments(TypedDict):
    proxy: URL | None
    proxy_auth: aiohttp.BasicAuth | None


class PassthroughAnswer:
    """An `UpstreamAnswer` as it comes from the wire. Closing it before its end also closes its connection."""

    __slots__ = ("_name", "_response", "headers", "status")

    def __init__(self, name: str, response: aiohttp.ClientResponse) -> None:
        self._name = name
        self._response = response
        self.status = response.status
        self.headers = _answer_headers(response)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        """The next bytes, as soon as there are any. Raises `UpstreamUnreachable`: the upstream broke off."""
        try:
            data = await self._response.content.readany()
        except (aiohttp.ClientError, TimeoutError, OSError) as cause:
            raise _translated(self._name, cause) from cause
        if not data:
            raise StopAsyncIteration
        return data

    async def aclose(self) -> None:
        self._response.close()


class Passthrough:
    """
    All pass-through upstreams, with one pool of connections. An async context manager.

    It follows no redirects, keeps no cookies, and neither decodes nor adds anything. Names of upstreams differ; those
    with `auth: held` get keys from the environment, and never one of `keyring`, which clients present to us.
    """

    def __init__(
        self, upstreams: Iterable[UpstreamPolicy], environment: Mapping[str, str], keyring: ProxyKeys | None = None
    ) -> None:
        upstreams = tuple(upstreams)
        self._held = {u.name: _credential(u, environment) for u in upstreams if u.auth == "held"}
        self._timeouts = {u.name: _timeout(u) for u in upstreams}
        self._proxies = {u.name: _proxy(u, environment) for u in upstreams}
        self._authorities = authorities(environment)
        self._keyring = keyring or ProxyKeys({})
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=self._authorities),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
            skip_auto_headers=AUTO_HEADERS,
            max_line_size=HEADER_BYTES,
            max_field_size=HEADER_BYTES,
            max_headers=HEADER_LINES,
        )
        return self

    async def __aexit__(self, *failure: object) -> None:
        if self._session is not None:
            await self._session.close()

    async def send(
        self, upstream: UpstreamPolicy, method: str, target: str, headers: RawHeaders, body: Body
    ) -> UpstreamAnswer:
        """
        Ask an upstream. The answer to a client that asks for a WebSocket may be an `UpgradedAnswer`.

        Args:
            target: path and query exactly as the client sent them, from the `/` on.
            headers: the client's, names in lower case.
            body: whole, or piece by piece as it arrives.

        Raises:
            UpstreamUnreachable: there is no answer.
        """
        assert self._session is not None, "use `async with` around the passthrough"
        try:
            response = await self._session.request(
                method,
                _url(upstream.url, target, upstream.api),
                headers=self._request_headers(upstream, headers, body),
                data=_payload(body),
                allow_redirects=False,
                timeout=self._timeouts[upstream.name],
                **self._proxies[upstream.name],
            )
        except (aiohttp.ClientError, TimeoutError, OSError) as cause:
            raise _translated(upstream.name, cause) from cause
        if response.status == SWITCHING and asks_to_switch(headers) and _is_clean(response):
            return UpgradedAnswer(response, _answer_headers(response))
        if response.status not in _STATUSES or not _is_clean(response):
            response.close()
            unfit = f"it answered with status {response.status}, which no client could be given"
            raise _unreachable(upstream.name, NO_HTTP if response.status in _STATUSES else unfit)
        return PassthroughAnswer(upstream.name, response)

    def _request_headers(self, upstream: UpstreamPolicy, headers: RawHeaders, body: Body) -> CIMultiDict[str]:
        """The headers to send: without hop-by-hop ones and ours, with the upstream's own credential."""
        held = self._held.get(upstream.name)
        named = hop_by_hop(headers)
        dropped = NOT_FORWARDED | named
        if held is not None:
            dropped |= NAMES
        kept: CIMultiDict[str] = CIMultiDict()
        for name, value in headers:
            if name in dropped or name.startswith(OURS):
                continue
            if name in NAMES and self._keyring.is_ours(value):
                continue
            kept.add(name.decode("latin-1"), _text(value))
        kept.extend(held or ())
        if b"upgrade" in named and asks_to_switch(headers):
            kept.extend(WEBSOCKET)
        if isinstance(body, bytes) and body:
            kept["content-length"] = str(len(body))
        return kept


def _credential(upstream: UpstreamPolicy, environment: Mapping[str, str]) -> list[tuple[str, str]]:
    """The header with the provider's key; None if it needs none."""
    if not upstream.key_env:
        return []
    key = environment[upstream.key_env]
    return [("x-api-key", key) if upstream.api is Api.ANTHROPIC else ("authorization", f"Bearer {key}")]


@lru_cache(maxsize=512)  # clients ask for few targets, and taking a URL apart costs as much as parsing a short body
def _url(base: str, target: str, api: Api | None) -> URL:
    """See `joined`; what the client encoded stays encoded."""
    return URL(joined(base, target, api), encoded=True)


def _proxy(upstream: UpstreamPolicy, environment: Mapping[str, str]) -> _ProxyArguments:
    """The arguments by which aiohttp goes through the proxy of the network; it takes the credential on its own."""
    url = URL(proxy_of_the_network(upstream.url, environment) or "")
    login = aiohttp.BasicAuth(url.user or "", url.password or "") if url.user or url.password else None
    return {"proxy": url.with_user(None) if url.host else None, "proxy_auth": login}


def _timeout(upstream: UpstreamPolicy) -> aiohttp.ClientTimeout:
    connect = upstream.connect_timeout_seconds
    return aiohttp.ClientTimeout(
        total=None, connect=connect, sock_connect=connect, sock_read=upstream.silence_timeout_seconds
    )


def _payload(body: Body) -> Body | None:
    if isinstance(body, bytes):
        return (_slices(body) if len(body) > SLICE_BYTES else body) or None
    return body


async def _slices(body: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(body), SLICE_BYTES):
        yield body[start : start + SLICE_BYTES]


def _answer_headers(response: aiohttp.ClientResponse) -> list[tuple[bytes, bytes]]:
    """The headers to pass back: without hop-by-hop ones, and those of a proxy like this one behind it."""
    raw = response.raw_headers
    dropped = HOP_BY_HOP | hop_by_hop(raw)
    if response.status in BODILESS:
        dropped |= {b"content-length"}  # our server would wait for that many bytes
    lowered = ((name.lower(), name, value) for name, value in raw)
    return [(name, value) for low, name, value in lowered if low not in dropped and not low.startswith(OURS)]


def _is_clean(response: aiohttp.ClientResponse) -> bool:
    """Whether our server can send these headers: aiohttp accepts more."""
    values = b"\t".join([value for _, value in response.raw_headers])
    return _CONTROL.search(values) is None


def _text(value: bytes) -> str:
    """A header value as text for aiohttp, which writes UTF-8; other encodings keep characters, not bytes."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


def _translated(name: str, cause: BaseException) -> UpstreamUnreachable:
    """A failure in our own words: the library's contain the URL, and its query must not be logged."""
    reason = next((text for kind, text in _REASONS if isinstance(cause, kind)), "the connection broke")
    if isinstance(cause, aiohttp.ClientResponseError) and cause.message.startswith(_TOO_LONG):
        reason = TOO_LONG
    return _unreachable(name, reason, timed_out=isinstance(cause, TimeoutError))


def _unreachable(name: str, reason: str, *, timed_out: bool = False) -> UpstreamUnreachable:
    return UpstreamUnreachable(f"asking upstream {name!r}: {reason}; try again, or check its url", timed_out=timed_out)


def proxy_of_the_network(url: str, environment: Mapping[str, str]) -> str | None:
    """
    The HTTP proxy through which an upstream is reached, or None.

    Only `HTTPS_PROXY` counts, hence only upstreams with https: those without it are on this machine or beside it. A
    proxy of another kind, as SOCKS is, is not used, which the log says.
    """
    target, variables = urlsplit(url), {name.lower(): value for name, value in environment.items() if value}
    if target.scheme != "https" or _is_exempt(target.hostname or "", variables.get("no_proxy", "")):
        return None
    found = variables.get("https_proxy") or variables.get("all_proxy") or ""
    kind = urlsplit(found).scheme
    if found and kind not in ("http", "https"):
        log.warning(
            "the proxy of the network is not used: HTTPS_PROXY must name one that begins with http:// or https://",
            kind=kind,
            host=target.hostname,
        )
        return None
    return found or None


def _is_exempt(host: str, no_proxy: str) -> bool:
    """Whether a list of domains, divided by commas, names a host or one above it; `*` names all."""
    domains = [domain.strip().lstrip(".").lower() for domain in no_proxy.split(",")]
    return "*" in domains or any(f".{host}".endswith(f".{domain}") for domain in domains if domain)


def authorities(environment: Mapping[str, str]) -> ssl.SSLContext | bool:
    """
    Authorities that are accepted: the machine's (True), or also the environment's. Raises `PolicyError`: unreadable.
    """
    file = environment.get(EXTRA_AUTHORITIES)
    if not file:
        return True
    context = ssl.create_default_context()
    try:
        context.load_verify_locations(Path(file))
    except OSError as cause:  # a file that holds no certificate is one, too
        reason = (cause.strerror or str(cause)).lower()
        raise PolicyError(f"environment: {EXTRA_AUTHORITIES}: {file}: {reason}; correct it, or unset it") from cause
    return context
