"""What the client tests talk about, and over which way: straight to the provider, or through the proxy."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from proxy.domain import Json
from proxy.scripted import Reply, Script, ScriptedUpstream
from tests.running import BLOCK_CLOSES, Proxy, texts

FACT = "8731"  # stands in one early message only
QUESTION = "Which port did we choose for the staging gateway?"

TALK: Sequence[tuple[str, str]] = (
    (
        "We are moving the checkout service behind a gateway. Please remember what we decide as we go along.",
        "Understood: I will keep track of the decisions while we move the checkout service behind the gateway.",
    ),
    (
        f"Port 8080 is taken on that machine, so the staging gateway will listen on port {FACT} from today on.",
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


def answers(question: Json) -> Reply | str:
    """The model of these tests: the talk's answers; a summary where one is asked for; else an acknowledgement."""
    asked = texts({"messages": question["messages"][-1:]}).partition(BLOCK_CLOSES)
    last = asked[2] or asked[0]
    if "summar" in last.lower() or "Context Extraction Assistant" in last:
        return SUMMARY
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
