"""The description of this proxy on `/healthz`: enough to tell proxies apart, and nothing about what they hold."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from palimpsest.domain import Json
from palimpsest.settings.load import WRAPPED_BY_ENV
from palimpsest.settings.policy import Policy

FINGERPRINT_CHARS = 16  # 64 bits: enough to tell the installations of one machine apart


def self_description(policy: Policy, environment: Mapping[str, str]) -> Json:
    """What `/healthz` reports besides being alive: enough to tell proxies apart, and nothing of their contents."""
    return {"palimpsest": installation_hash(policy), "wrapped": WRAPPED_BY_ENV in environment}


def installation_hash(policy: Policy) -> str:
    """A hash of data folder, memory server and upstreams; `wrap` only uses a proxy that has the same."""
    settings = [str(policy.data.resolve()), [upstream.model_dump(mode="json") for upstream in policy.upstreams]]
    settings += [policy.server.url] if policy.server.url else []
    return hashlib.sha256(json.dumps(settings).encode()).hexdigest()[:FINGERPRINT_CHARS]
