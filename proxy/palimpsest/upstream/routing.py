"""Routing: the first upstream whose API and model patterns match a request, and takes the login that it shows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from urllib.parse import urlsplit

from palimpsest.domain import Api, RawHeaders
from palimpsest.settings.policy import LOGINS, UpstreamPolicy

_VERSION = re.compile(r"/v\d+(?:(?:alpha|beta)\d*)?(?:/|$)")
_FIRST_VERSION = re.compile(r"^/v1(?=[/?]|$)")
_KNOWN_LOGINS = frozenset(header for logins in LOGINS.values() for header in logins)


def choose(upstreams: Sequence[UpstreamPolicy], model: str, api: Api = Api.OPENAI) -> UpstreamPolicy | None:
    """
    Choose the upstream for requests of a model.

    Args:
        api: that the client speaks (`wire.refusal.api_of`).

    Returns:
        Of those that serve the client's API, the first upstream with a pattern that matches; the first that is no
        LiteLLM model where no model is named (`""`: a list, an upload); None where nobody serves it.
    """
    those = serving(upstreams, api)
    if not model:
        return next((u for u in those if not u.litellm), those[0] if those else None)
    return next((u for u in those if any(fnmatchcase(model, pattern) for pattern in u.models)), None)


def serving(upstreams: Sequence[UpstreamPolicy], api: Api) -> list[UpstreamPolicy]:
    """The upstreams for the client's API, in order."""
    return [upstream for upstream in upstreams if upstream.api in (None, api)]


def needs_model(upstreams: Sequence[UpstreamPolicy]) -> bool:
    """Whether the model of a request decides where it goes; otherwise it need not be read."""
    each = (serving(upstreams, api) for api in Api)
    return any(len(those) > 1 or any(u.models != ("*",) for u in those) for those in each)


def joined(url: str, target: str, api: Api | None) -> str:
    """
    The URL of a target below a base URL, which begins with `/v1` or names another version in its place.

    As clients do it: Gemini's base URL for OpenAI's ends in `/v1beta/openai`, others in `/v4` or `/v3`; Anthropic's
    always add `/v1`.
    """
    url = url.rstrip("/")
    if has_version(url) and api is not Api.ANTHROPIC and not target.startswith("/v1/messages"):
        target = _FIRST_VERSION.sub("", target)
    return url.removesuffix("/v1") + target


def has_version(url: str) -> bool:
    """Whether a base URL names the version of the provider's API, another one than `/v1` at its end."""
    return not url.rstrip("/").endswith("/v1") and _VERSION.search(urlsplit(url).path) is not None


def login_headers(upstreams: Sequence[UpstreamPolicy]) -> frozenset[bytes]:
    """Names of the headers that tell a login, whether or not one of these upstreams takes it."""
    return frozenset(header.encode() for header in _KNOWN_LOGINS.union(*(u.logins for u in upstreams)))


def login_of(headers: RawHeaders, names: frozenset[bytes]) -> str:
    """The header (lower case) by which a request tells that its credential is a login; "": it is a key."""
    return next((name.decode() for name, value in headers if name in names and value), "")


def taking(upstreams: Sequence[UpstreamPolicy], login: str) -> list[UpstreamPolicy]:
    """The upstreams to which a request with this login may go: the others would be shown what is none of theirs."""
    return [upstream for upstream in upstreams if upstream.auth == "held" or login in upstream.logins]


def at_login(upstream: UpstreamPolicy, login: str, target: str) -> tuple[UpstreamPolicy, str]:
    """Where a request with this login goes: its upstream, and the target below the login's URL, without our `/v1`."""
    if upstream.auth == "held" or not login:
        return upstream, target
    url = upstream.logins[login].rstrip("/")
    below = target if url.endswith("/v1") or not target.startswith("/v1/") else target.removeprefix("/v1")
    return upstream.model_copy(update={"url": url}), below
