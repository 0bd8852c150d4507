"""
A probe of an address: free, this proxy, another one (other data or upstreams), or another program; and
the providers that variables of clients name.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from enum import StrEnum
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from urllib.parse import urlsplit

from palimpsest.commands.own_address import address, leads_here
from palimpsest.domain import Json
from palimpsest.edge.self_description import installation_hash
from palimpsest.settings import load
from palimpsest.settings.policy import ListenPolicy, Policy

POLICY_PATH = "/memory/v1/policy"
POLICY_SECONDS = 10.0  # for a proxy to tell its policy: one that has just started loads its API for that first
LOOK_SECONDS = 2.0  # a proxy answers in milliseconds; a program that says nothing is not one
ANSWER_BYTES = 4_000_000  # more than a proxy says, with all its settings or its metrics

BASES = {"openai": ("OPENAI_BASE_URL", "OPENAI_API_BASE"), "anthropic": ("ANTHROPIC_BASE_URL",)}
"""By wire, the variables in which clients look for an address; the first that is set counts."""


class Occupant(StrEnum):
    """What is listening at an address."""

    NOBODY = "nobody"
    OURS = "ours"
    ANOTHER = "another palimpsest, with a different data folder or other upstreams"
    WRAPPED = "the palimpsest of another wrapped command"
    FOREIGN = "another program"


RUNNING = (Occupant.OURS, Occupant.WRAPPED)
"""What answers for the data folder of a policy."""


def look(policy: Policy) -> Occupant:
    """Ask what is listening at the address of this policy's proxy."""
    try:
        said = ask_json(address(policy.listen), "/healthz")
    except (ConnectionRefusedError, socket.gaierror):  # nor can anybody listen at a name that does not resolve
        return Occupant.NOBODY
    except (OSError, HTTPException, ValueError):
        return Occupant.FOREIGN
    if "palimpsest" not in said:
        return Occupant.FOREIGN
    if said["palimpsest"] != installation_hash(policy):
        return Occupant.ANOTHER
    return Occupant.WRAPPED if said.get("wrapped") else Occupant.OURS


def as_running(policy: Policy, environment: Mapping[str, str]) -> Policy:
    """
    The policy, if it names no upstreams, with those of the proxy that runs at its address on the same data folder.

    Whoever started that one and says nothing else here means it: `serve --upstream X` in one shell, `wrap` in another.
    """
    names_none = policy.upstreams == Policy().upstreams
    if not (names_none and policy.listen.port and look(policy) is Occupant.ANOTHER):
        return policy
    running = policy_at(policy.listen, environment)
    if running is None:
        return policy
    theirs = policy.model_copy(update={"upstreams": running.upstreams})
    return policy if look(theirs) is Occupant.ANOTHER else theirs


def policy_at(listen: ListenPolicy, environment: Mapping[str, str]) -> Policy | None:
    """The policy of the proxy that runs there; None: it tells nobody, or not us."""
    try:
        token = load.admin_token(environment)
        answer = ask_json(address(listen), POLICY_PATH, secret=token, seconds=POLICY_SECONDS)
        return Policy.model_validate(answer["policy"])
    except (OSError, HTTPException, ValueError, KeyError):
        return None


def ask(
    url: str, path: str, *, body: str = "", secret: str | None = None, seconds: float = LOOK_SECONDS
) -> tuple[int, bytes]:
    """
    Ask a proxy: the status and the body of its answer.

    Args:
        url: of the proxy; what path it has does not count.
        body: JSON that is posted; "": the path is got.
        secret: the admin token or a key, for paths that want one.
        seconds: that it may take.

    Raises:
        OSError, HTTPException, ValueError: no answer, or no such address.
    """
    parts = urlsplit(url)
    kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    connection = kind(parts.hostname or "", parts.port, timeout=seconds)
    headers = {"content-type": "application/json"} if body else {}
    headers |= {"authorization": f"Bearer {secret}"} if secret else {}
    try:
        connection.request("POST" if body else "GET", path, body or None, headers)
        answer = connection.getresponse()
        return answer.status, answer.read(ANSWER_BYTES)
    finally:
        connection.close()


def ask_json(url: str, path: str, *, secret: str | None = None, seconds: float = LOOK_SECONDS) -> Json:
    """The JSON object in the answer to `ask`, whatever its status; empty if it is something else than an object."""
    said = json.loads(ask(url, path, secret=secret, seconds=seconds)[1])
    return said if isinstance(said, dict) else {}


def why_not_alive(listen: ListenPolicy, path: str) -> str:
    """The reason why an endpoint of the proxy does not report `{"alive": true}` or the like; empty if it does."""
    try:
        said = ask_json(address(listen), path)
    except (OSError, HTTPException, ValueError) as cause:
        return f"{address(listen)}{path}: {cause or type(cause).__name__}"
    if said.get("alive") or said.get("ready"):
        return ""
    reasons = "; ".join(map(str, said.get("reasons", ())))
    return f"{address(listen)}{path}: {reasons or 'no palimpsest answers there'}"


def base_url_of_client(wire: str, policy: Policy, environment: Mapping[str, str]) -> tuple[str, str]:
    """The variable in which a client's base URL is set, and the URL; "" twice if none, or if it leads to this proxy."""
    variable = next((name for name in BASES.get(wire, ()) if environment.get(name)), "")
    url = environment.get(variable, "").rstrip("/")
    return ("", "") if not url or leads_here(url, policy.listen) else (variable, url)
