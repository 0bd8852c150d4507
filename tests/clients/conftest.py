"""What the client tests talk about, and over which way: straight to the provider, or through the proxy."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from palimpsest.domain import Json
from palimpsest.evaluation.scripted import Reply, Script, ScriptedUpstream

from tests.running import BLOCK_CLOSES, BLOCK_OPENS, Proxy, texts

FACT = "8731"  # stands in one early answer only: some clients keep what the user said
QUESTION = "Which port did we choose for the staging gateway?"

TALK: Sequence[tuple[str, str]] = (
    (
        "We are moving the checkout service behind a gateway. Please remember what we decide as we go along.",
        "Understood: I will keep track of the decisions while we move the checkout service behind the gateway.",
    ),
    (
        "Port 8080 is taken on that machine, so choose another port for the staging gateway.",
        f"Noted, the staging gateway listens on port {FACT}; I will write the manifest accordingly.",
    ),
    (
        "The retry policy of the payment client should be three attempts with exponential backoff.",
        "Three attempts with exponential backoff, and the idempotency key makes a repeated charge harmless.",
    ),
    (
        "Put the database migration into migrations/0042_add_refund_ledger.sql and keep it reversible.",
        "The migration migrations/0042_add_refund_ledger.sql adds the refund ledger and has a down section.",
    ),
    (
        "Lena owns the rollout, and she wants a feature flag named checkout_via_gateway.",
        "I added the feature flag checkout_via_gateway, off by default, and made Lena the owner of the rollout.",
    ),
    (
        "The load test failed with error E4410 because the connection pool was too small for the burst.",
        "E4410 means that the pool was exhausted; I raised it to 64 connections and the load test passes now.",
    ),
)
SUMMARY = (
    "The user is moving a checkout service behind a gateway. Several decisions about the rollout, the database and the "
    "tests were made, a failing load test was repaired, and the work continues with the remaining open questions."
)
PIXEL = (  # the smallest image that there is
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def newest(question: Json) -> str:
    """What a user said or a tool returned last, on any wire, without a memory block."""
    given = question.get("messages") or question.get("input") or ""
    if not isinstance(given, str):
        heard = [m for m in given if m.get("role") in ("user", "tool") or "output" in m]
        given = texts({"messages": heard[-1:]})
    return re.sub(f"{BLOCK_OPENS}.*?{BLOCK_CLOSES}", "", given, flags=re.S)


def answers(question: Json) -> Reply | str:
    """The model of these tests: the talk's answers; a title or a summary where one is asked for; else nothing much."""
    last = newest(question)
    prompt = "" if question.get("tools") else texts({"messages": question.get("messages", ())[:1]})
    if "title generator" in prompt:
        return "Moving the checkout service"
    if spoken := next((answer for said, answer in TALK if last.rstrip().strip('"').endswith(said)), None):
        return spoken
    if "summar" in last.lower() + prompt.lower() or "Context Extraction Assistant" in last:
        return f"<summary>{SUMMARY}</summary>" if "<summary>" in last else SUMMARY
    return next((answer for said, answer in TALK if said in last), "Let me look that up in what you told me before.")


@pytest.fixture
def script(upstream: ScriptedUpstream) -> Script:
    upstream.script = answers
    return answers


@pytest.fixture(params=["straight", "through the proxy"])
def base_url(request: pytest.FixtureRequest) -> str:
    """Both ways, one after the other: a client must not be able to tell."""
    server: ScriptedUpstream | Proxy = request.getfixturevalue("upstream" if request.param == "straight" else "proxy")
    return server.url
