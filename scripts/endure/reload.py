"""
Reloads under load: the configuration changes again and again, and half of what is written into it is refused.

It is written in place, renamed into place, or a symlink is swapped as Kubernetes does; then it is noticed, or read at
SIGHUP or POST /memory/v1/reload. After each, all workers must say the same: the next number, or the reason why not. No
request may fail, no answer may break off, and no turn may be lost.
"""

from __future__ import annotations

import argparse
import signal
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import yaml
from palimpsest.domain import Json

from scripts.endure.load import Client, Tally, answering, at_work, seconds_since
from scripts.endure.table import Table, note
from tests.ledger import Ledger
from tests.running import DEADLINE_MS, Proxy, request, until, upstream_on_a_thread

RELOADS = 200
CLIENTS = 8
WORKERS = 2
LOOKS = 6  # over connections of their own: each worker is asked, but in one of thirty
LINES = 10  # of the table
FAILURES = ("refused", "cut", "failed")
REFUSED: tuple[tuple[str, str], ...] = (  # text, and what its refusal names
    ("memory: {reach: nowhere}", "memory.reach: 'nowhere' is not allowed"),
    ("memory: [reach", "is not YAML"),
    ("- memory", "must be a mapping"),
    ("memroy: {reach: user}", "did you mean memory?"),
    ("upstreams: [{auth: held, key_env: NO_SUCH_VARIABLE}]", "NO_SUCH_VARIABLE is not set"),
    ("listen: {port: 1, port: 2}", "port is set twice"),
)


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--reloads", type=int, default=RELOADS, metavar="N", help=f"({RELOADS})")
    parser.add_argument("--clients", type=int, default=CLIENTS, metavar="N", help=f"({CLIENTS})")
    parser.add_argument("--workers", type=int, default=WORKERS, metavar="N", help=f"of the proxy ({WORKERS})")


def run(arguments: argparse.Namespace) -> bool:
    with tempfile.TemporaryDirectory(prefix="palimpsest-reload-") as folder, upstream_on_a_thread() as upstream:
        answering(upstream)
        with Proxy(Path(folder) / "data", upstream.url, settings_of(0, arguments.workers)) as proxy:
            return _reloaded(proxy, arguments)


def settings_of(number: int, workers: int) -> Json:
    """A configuration like no other; every third one has other connections to the provider."""
    return {
        "listen": {"workers": workers},
        "memory": {"deadline_ms": DEADLINE_MS + number, "reach": ("user", "tenant", "conversation")[number % 3]},
        "upstreams": [{"connect_timeout_seconds": 10 + number // 3}],
        "log": {"level": "warning"},
    }


def _reloaded(proxy: Proxy, given: argparse.Namespace) -> bool:
    ledger, tally, started, slowest = Ledger(), Tally(), time.monotonic(), 0.0
    clients = [Client(proxy, f"client-{n}", ledger, tally, keeps=n % 2 == 0) for n in range(given.clients)]
    table = Table(("reloads", "accepted", "generation", "answered", *FAILURES, "slowest", "seconds"))
    accepted, generation = 0, _agreed(proxy)["generation"]
    with at_work(clients):
        for number in range(1, given.reloads + 1):
            is_good = number % 2 == 0
            text, words = (yaml.safe_dump(settings_of(number, given.workers)), "") if is_good else _bad(number)
            WAYS[number % len(WAYS)](proxy.config, text)
            began = time.monotonic()
            TRIGGERS[number // 2 % len(TRIGGERS)](proxy)
            accepted += is_good
            _await(proxy, generation + accepted, words)
            slowest = max(slowest, time.monotonic() - began)
            if number % max(1, given.reloads // LINES) == 0:
                counts = tally.counts
                failures = map(counts.__getitem__, FAILURES)
                told = (number, accepted, generation + accepted, counts["answered"], *failures, f"{slowest:.1f} s")
                table.line((*told, seconds_since(started)))
    proxy.settle(vectors=False)
    found = ledger.audit(proxy.data)
    note(f"{found.turns} turns: {len(found.lost)} lost, {len(found.duplicated)} twice, {len(found.split)} split")
    return found.is_clean and not any(tally.counts[what] for what in FAILURES)


def _bad(number: int) -> tuple[str, str]:
    """A configuration that is refused; a comment tells it from others."""
    text, words = REFUSED[number // 2 % len(REFUSED)]
    return f"{text} # {number}\n", words


def _policy(proxy: Proxy) -> Json:
    return proxy.get("/memory/v1/policy").json


def _agreed(proxy: Proxy) -> Json:
    """The policy, once all workers have the same number for it."""

    def look() -> Json | None:
        found = [_policy(proxy) for _ in range(LOOKS)]
        return found[0] if found[0]["generation"] and len({told["generation"] for told in found}) == 1 else None

    return until(look, "all workers to agree on the policy")


def _await(proxy: Proxy, generation: int, refused: str) -> None:
    """Wait until all workers say that this is in force, and why the last configuration was refused, if it was."""

    def is_known(told: Json) -> bool:
        last = told["last_reload"]
        is_told = refused in last["reason"] and not last["accepted"] if refused else last["accepted"]
        return bool(told["generation"] == generation and is_told)

    until(lambda: all(is_known(_policy(proxy)) for _ in range(LOOKS)), f"all workers to say {generation} {refused}")


def _in_place(file: Path, text: str) -> None:
    file.write_text(text)


def _renamed(file: Path, text: str) -> None:
    own = file.with_suffix(".tmp")
    own.write_text(text)
    own.replace(file)


def _swapped(file: Path, text: str) -> None:
    """What the name leads to changes from one moment to the next."""
    version = file.with_suffix(f".{time.monotonic_ns()}")
    version.write_text(text)
    link = file.with_suffix(".link")
    link.symlink_to(version.name)
    link.replace(file)


def _noticed(proxy: Proxy) -> None:
    """Nobody says a word."""


def _hung_up(proxy: Proxy) -> None:
    assert proxy.process is not None
    proxy.process.send_signal(signal.SIGHUP)


def _posted(proxy: Proxy) -> None:
    request(proxy.port, "POST", "/memory/v1/reload", b"{}")


WAYS: tuple[Callable[[Path, str], None], ...] = (_in_place, _renamed, _swapped)
TRIGGERS: tuple[Callable[[Proxy], None], ...] = (_noticed, _hung_up, _posted)
