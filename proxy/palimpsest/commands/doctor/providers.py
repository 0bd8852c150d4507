"""
Checks of the upstreams: whether each can be reached, accepts its credential, and agrees on the time; and whether the
windows of its models are known, where something depends on them.

A list of models is asked for, once with the credential and, where that works, once without: some providers show it to
everybody, and it then says nothing about a credential. Of what an upstream says only names of models are repeated.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from importlib.util import find_spec
from time import time
from typing import Any

import orjson

from palimpsest.commands.doctor.finding import Finding, failed, ok, warning
from palimpsest.commands.probe import base_url_of_client
from palimpsest.domain import Api, RawHeaders
from palimpsest.domain.errors import UpstreamUnreachable
from palimpsest.domain.ports import Clock
from palimpsest.memory.tokens.counter import litellm_folder
from palimpsest.memory.tokens.windows import TABLE_FILE, Windows
from palimpsest.settings.policy import Policy, UpstreamPolicy
from palimpsest.upstream.passthrough import Passthrough
from palimpsest.upstream.routing import choose
from palimpsest.wire.json_body import object_in
from palimpsest.wire.model_list import windows_in

LIST_PATH = "/v1/models"
TIMEOUT_SECONDS = 10.0  # a provider that needs longer for its list is not well
CLOCK_WARNING_SECONDS = 60.0  # more than a slow answer explains; recalled memories carry dates
CLOCK_FAILED_SECONDS = 3600.0  # "yesterday" becomes the wrong day, and certificates expire or are not yet valid
ANTHROPIC_VERSION = (b"anthropic-version", b"2023-06-01")  # the API demands one; there is no newer

TEXT_MODES = frozenset({"chat", "completion", "responses"})  # of LiteLLM's table: the others have no history to trim
NAMED_MODELS = 3  # in a finding: enough to see what kind they are of

KEYS = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY", "any": "OPENAI_API_KEY"}
"""By wire, the variable in which clients keep the credential that they send."""


@dataclass(frozen=True, slots=True)
class ModelListAnswer:
    """An upstream's answer to a request for its models."""

    status: int
    models: int | None  # None: it is no list
    date: str
    body: bytes = b""


async def check_upstreams(policy: Policy, environment: Mapping[str, str], clock: Clock) -> list[Finding]:
    """Check each upstream, and compare the clock with theirs: one finding for each, and one for the clock."""
    asked = [upstream for upstream in policy.upstreams if not upstream.litellm]
    credentials = [_credential(upstream, policy, environment) for upstream in asked]
    async with Passthrough([_plain(upstream) for upstream in asked], environment) as way:
        pairs = zip(asked, credentials, strict=True)
        each = await asyncio.gather(*(_examined(way, upstream, policy, *shown) for upstream, shown in pairs))
        now = clock()
    findings = [one for found, _ in each for one in found]
    findings += [_litellm(u, environment) for u in policy.upstreams if u.litellm]
    return [*findings, *_never_chosen(policy.upstreams), _clock([date for _, date in each if date], now)]


def _never_chosen(upstreams: Sequence[UpstreamPolicy]) -> list[Finding]:
    """A warning for each upstream whose models all go to others before it."""
    chosen = [choose(upstreams, model, api) for one in upstreams for model in one.models for api in Api]
    advice = "name its models in front of the upstreams that take them, or give those other models or another wire"
    return [
        warning(f"upstream {one.name}", "gets no request: the upstreams before it take all of its models", advice)
        for one in upstreams
        if one not in chosen
    ]


def _plain(upstream: UpstreamPolicy) -> UpstreamPolicy:
    """The same upstream without a credential of its own; credentials are added here."""
    return upstream.model_copy(update={"auth": "forward", "key_env": ""})


async def _examined(
    way: Passthrough, upstream: UpstreamPolicy, policy: Policy, variable: str, credential: RawHeaders
) -> tuple[list[Finding], str]:
    """The findings, and the date in the upstream's answer."""
    check = f"upstream {upstream.name}"
    try:
        answer = await _ask(way, upstream, credential)
        is_public = (
            bool(credential) and answer.models is not None and (await _ask(way, upstream, [])).models is not None
        )
    except UpstreamUnreachable as error:
        reason = str(error).partition("; ")[0].partition(": ")[2]
        advice = "check upstreams.url, the network, and whether the server is running"
        return [failed(check, f"{upstream.url}: {reason}", advice)], ""
    found = _finding_of(check, upstream, answer, variable, is_public)
    return [found, *_guessed_windows(policy, upstream, answer)], answer.date


def _guessed_windows(policy: Policy, upstream: UpstreamPolicy, answer: ModelListAnswer) -> list[Finding]:
    """A warning where old messages are to be left out of what is too long for a model whose window nobody stated."""
    if policy.overflow != "trim" or not answer.models:
        return []
    listed = [one.get("id") for one in object_in(answer.body)["data"] if isinstance(one, dict)]
    known = Windows(policy.pressure.model_copy(update={"default_window_tokens": 0}), time)
    named = windows_in(answer.body)
    guessed = [model for model in listed if isinstance(model, str) and model not in named and not known.of("", model)]
    others = frozenset[str]() if known.trouble else _without_text()
    guessed = [model for model in guessed if model.rpartition("/")[2] not in others]
    if not guessed:
        return []
    shown = ", ".join(guessed[:NAMED_MODELS]) + ", ..." * (len(guessed) > NAMED_MODELS)
    models = f"{len(guessed)} of {answer.models} models of upstream {upstream.name} ({shown})"
    found = f"trim guesses the window of {models}: {policy.pressure.default_window_tokens:,} tokens"
    return [warning("overflow", found, "set pressure.window_tokens to the window that the server gives them")]


def _without_text() -> frozenset[str]:
    """Models, without their providers, that LiteLLM's table knows for something else than text, as for images."""
    rows: dict[str, dict[str, Any]] = orjson.loads((litellm_folder() / TABLE_FILE).read_bytes())
    modes = [(model.rpartition("/")[2], row.get("mode")) for model, row in rows.items()]
    return frozenset(model for model, mode in modes if mode) - {model for model, mode in modes if mode in TEXT_MODES}


def _finding_of(
    check: str, upstream: UpstreamPolicy, answer: ModelListAnswer, variable: str, is_public: bool
) -> Finding:
    """The finding for a provider's answer: reached, credential accepted or refused."""
    status = (
        f"{answer.status} {HTTPStatus(answer.status).phrase}"
        if answer.status in list(HTTPStatus)
        else str(answer.status)
    )
    answered = f"{upstream.url} answers {LIST_PATH}"
    if answer.models is not None:
        if is_public or not variable:
            return ok(check, f"{answered} with {answer.models} models, without a credential, so none could be tried")
        return ok(check, f"{answered} with {answer.models} models, and takes {variable}")
    if answer.status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        if variable:
            return failed(check, f"{upstream.url} refuses {variable} ({status})", f"put a valid key into {variable}")
        return ok(check, f"{upstream.url} can be reached and wants a credential, but the environment has none for it")
    if HTTPStatus.MULTIPLE_CHOICES <= answer.status < HTTPStatus.BAD_REQUEST:
        return warning(check, f"{answered} with a redirect ({status})", "set upstreams.url to the final address")
    if answer.status in (HTTPStatus.METHOD_NOT_ALLOWED, HTTPStatus.NOT_IMPLEMENTED):
        return ok(check, f"{answered} with {status}: it lists no models, so no credential could be tried")
    if answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR or answer.status == HTTPStatus.TOO_MANY_REQUESTS:
        return warning(check, f"{answered} with {status}", "try again later, or see its status page")
    advice = "if chat works, this is fine; otherwise check upstreams.url, to which /v1/... is added"
    return warning(check, f"{answered} with {status}, but no model list, so no credential could be tried", advice)


async def _ask(way: Passthrough, upstream: UpstreamPolicy, credential: RawHeaders) -> ModelListAnswer:
    """Request the list of models once. Raises `UpstreamUnreachable`: no answer, or not in time."""
    headers = [*credential, *([ANTHROPIC_VERSION] if upstream.api is Api.ANTHROPIC else [])]
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            async with aclosing(await way.send(upstream, "GET", LIST_PATH, headers, b"")) as answer:
                body = b"".join([data async for data in answer])
    except TimeoutError as cause:
        raise UpstreamUnreachable(f"asking upstream {upstream.name!r}: no answer in time", timed_out=True) from cause
    dates = [value.decode("latin-1") for name, value in answer.headers if name.lower() == b"date"]
    models = _models(body) if answer.status == HTTPStatus.OK else None
    return ModelListAnswer(answer.status, models, dates[0] if dates else "", body)


def _models(body: bytes) -> int | None:
    """How many models a list has; None: it is no list."""
    listed = object_in(body).get("data")
    return len(listed) if isinstance(listed, list) else None


def _credential(upstream: UpstreamPolicy, policy: Policy, environment: Mapping[str, str]) -> tuple[str, RawHeaders]:
    """
    The variable with the credential of a request, and the header that carries it; "" if none is set.

    A credential that stands beside another provider's address belongs to that one, and is not sent.
    """
    variable = upstream.key_env if upstream.auth == "held" else KEYS[upstream.wire]
    key = environment.get(variable, "").encode()
    _, elsewhere = base_url_of_client(upstream.wire, policy, environment)
    if not key or (upstream.auth == "forward" and elsewhere not in ("", upstream.url.rstrip("/"))):
        return "", ()
    return variable, [(b"x-api-key", key) if upstream.api is Api.ANTHROPIC else (b"authorization", b"Bearer " + key)]


def _litellm(upstream: UpstreamPolicy, environment: Mapping[str, str]) -> Finding:
    """The finding for a LiteLLM upstream, which is not asked: that would be charged."""
    check = f"upstream {upstream.name}"
    if find_spec("litellm") is None:
        return failed(check, f"{upstream.litellm} needs litellm, which is not installed", "pip install litellm")
    key = f" with {upstream.key_env}" if upstream.key_env and environment.get(upstream.key_env) else ""
    return ok(check, f"{upstream.litellm}: asked by LiteLLM{key}; not tried, because the request would be charged")


def _clock(dates: Sequence[str], now: float) -> Finding:
    """Compare the clock with the first upstream that reports the time."""
    try:
        ahead = now - parsedate_to_datetime(dates[0]).timestamp()
    except (IndexError, ValueError):
        return warning("clock", "no upstream reported the time", "check the clock yourself")
    off = abs(ahead)
    found = f"{off:,.0f} s {'ahead of' if ahead > 0 else 'behind'} the upstream's"
    if off > CLOCK_FAILED_SECONDS:
        return failed("clock", found, "set the clock: what is remembered gets the wrong date")
    if off > CLOCK_WARNING_SECONDS:
        return warning("clock", found, "set the clock, or use NTP")
    return ok("clock", "agrees with the upstream's to the minute")
