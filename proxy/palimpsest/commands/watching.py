"""The watching of a running proxy: its figures, renewed every few seconds (`palimpsest stats --watch`)."""

from __future__ import annotations

import json
import os
import sys
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import asdict
from http.client import HTTPException

from rich.console import RenderableType
from rich.live import Live

from palimpsest.commands.live_figures import Figures, MetricsSample, figures, parse_metrics
from palimpsest.commands.own_address import address
from palimpsest.commands.probe import ask
from palimpsest.console import terminal
from palimpsest.console.arguments import DONE, FAILED
from palimpsest.domain.errors import PolicyError
from palimpsest.settings import load
from palimpsest.settings.policy import Policy

SPAN_SECONDS = 60.0  # that rates and percentiles are of: a shorter span shows every pause between two requests
FIRST_SECONDS = 1.0  # between the first two looks: rates need two
OK = 200


def watch(policy: Policy, seconds: float, *, as_json: bool) -> int:
    """Show live figures again and again until interrupted; failed where the proxy does not answer at first."""
    if seconds <= 0:
        raise PolicyError("--watch: must be more than 0 seconds")
    out = terminal.console()
    seen: deque[MetricsSample] = deque()
    result = _look(policy, seen)
    if isinstance(result, str):
        out.print(terminal.safe(result))
        return FAILED
    try:
        time.sleep(min(seconds, FIRST_SECONDS))
        result = _look(policy, seen)
        while as_json or not out.is_terminal:
            if as_json:
                shown = {"error": result} if isinstance(result, str) else asdict(result)
                out.print(json.dumps(shown), soft_wrap=True)
            else:
                out.print(view(address(policy.listen), result))
            sys.stdout.flush()  # whoever reads a pipe gets each look at once
            time.sleep(seconds)
            result = _look(policy, seen)
        with Live(view(address(policy.listen), result), console=out, auto_refresh=False, screen=True) as live:
            while True:
                time.sleep(seconds)
                live.update(view(address(policy.listen), _look(policy, seen)), refresh=True)
    except (KeyboardInterrupt, BrokenPipeError):
        return DONE


def _look(policy: Policy, seen: deque[MetricsSample]) -> Figures | str:
    """Read the metrics, and return the figures of the last minute, or why there are none."""
    try:
        status, text = ask(address(policy.listen), "/metrics", secret=load.admin_token(os.environ))
    except (OSError, HTTPException) as cause:
        return f"{address(policy.listen)} does not answer ({cause or type(cause).__name__}); --port names another one"
    if status != OK:
        return f"{address(policy.listen)}/metrics: {status}; set PALIMPSEST_ADMIN_TOKEN to the proxy's admin token"
    seen.append(parse_metrics(text.decode(errors="replace"), time.monotonic()))
    while len(seen) > 2 and seen[-1].at - seen[1].at >= SPAN_SECONDS:
        seen.popleft()
    return figures(seen[0], seen[-1])


def view(address: str, result: Figures | str) -> RenderableType:
    """The figures as a screen, or why there are none."""
    return terminal.fields([("proxy", address), *([("error", result)] if isinstance(result, str) else _rows(result))])


def _rows(now: Figures) -> Iterable[tuple[str, str]]:
    yield "over", f"{now.seconds:g} s"
    yield "requests", f"{now.requests_per_second:g} a second" + _share_text(now.failed_share, "failed")
    yield "blocks", _share_text(now.block_share, "of requests got one", "") or "none asked for"
    yield (
        "added",
        f"{now.added_tokens_per_second:g} tokens a second" + _share_text(now.added_share, "of the clients' own"),
    )
    yield "quoted", _share_text(now.quoted_share, "of the passages shown", "")
    yield "cache", _share_text(now.cache_read_share, "of prompt tokens read from it", "")
    yield "memory", _latency_text(now.memory_p50_ms, now.memory_p95_ms)
    yield "recall", _latency_text(now.recall_p50_ms, now.recall_p95_ms)
    lost = _share_text(now.write_gap, "of answers lost in writing", "") + _share_text(now.retrieval_gap, "in recall")
    yield "probes", lost
    yield (
        "archive",
        f"{now.archive_lag_seconds:g} s behind; {now.queued_turns:,} turns wait, {_bytes(now.queue_bytes)}",
    )
    yield "to be indexed", f"{now.pending:,}"
    yield "turns lost", f"{now.turns_lost:,}"
    yield "faults", f"{now.faults:,}"
    if not now.memory_on:
        yield "store", "memory is off (memory.mode)"
        return
    if now.switched_off:
        yield "switched off", "for everybody: palimpsest enable switches it on"
    elif now.tenants_switched_off:
        yield "switched off", f"for {now.tenants_switched_off:,} tenants: palimpsest stats names them"
    yield "store", "works" if now.store_up else "fails: /readyz says why"
    yield "model", "loaded" if now.embedder_ready else "not loaded: recall goes by words alone"
    yield "policy", f"generation {now.policy_generation}"


def _share_text(share: float | None, what: str, before: str = ", ") -> str:
    return "" if share is None else f"{before}{share:.1%} {what}"


def _latency_text(p50: float | None, p95: float | None) -> str:
    return "nothing to measure" if p50 is None else f"p50 {p50:g} ms, p95 {p95:g} ms"


def _bytes(size: int) -> str:
    return f"{size / terminal.BYTES_PER_MEGABYTE:,.1f} MB"
