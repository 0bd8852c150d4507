"""
The metrics that the operator sees, for Prometheus.

Every label value comes from a short list of our own, but for tenants, of which only so many are named; conversations
and what clients send are never labels. Several workers share one folder (`PROMETHEUS_MULTIPROC_DIR`, set by
`palimpsest serve` before they start) and any of them answers for all.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

from palimpsest import __version__
from palimpsest.domain import AssistRole

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

MULTIPROCESS_FOLDER_ENV = "PROMETHEUS_MULTIPROC_DIR"  # the name is prometheus_client's, which reads it when imported

# Dense around what is promised: 3 ms and 6 ms (a request with memory on), 250 ms (the deadline).
STAGE_EDGES_SECONDS = (0.0005, 0.001, 0.002, 0.003, 0.006, 0.01, 0.015, 0.025, 0.04, 0.1, 0.25, 0.5, 1.0, 5.0)

# Around what recall waits for (250 ms), and up to the longest wait for an answer that anybody sets.
ASSIST_EDGES_SECONDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)

TENANTS_NAMED = 50  # in each worker; the rest are `other`, so that no number of tenants fills a Prometheus
OTHER = "other"

# Name: help, and then its labels; `_total` is added to the name.
COUNTERS: Mapping[str, tuple[str, ...]] = {
    "requests": ("Requests that memory looked at.", "role", "event", "note"),
    "faults": ("Faults of memory; the requests were forwarded all the same.", "where"),
    "upstream_responses": ("Answers of the upstream.", "status_class"),
    "refused": ("Requests refused because a web page sent them.", "kind"),
    "added_tokens": ("Tokens added to requests.",),
    "own_tokens": ("Tokens of those requests as their clients sent them.",),
    "tenant_added_tokens": ("Tokens added to requests, by tenant.", "tenant"),
    "turns_lost": ("Turns not archived: the queue was full or the store failed.",),
    "overflow": (
        "Requests longer than their window: cut; repeated, as by an earlier cut; answer, a shorter one asked for.",
        "what",
    ),
    "trimmed_tokens": ("Tokens of requests that stayed behind because the window is too small for them.",),
    "too_long": ("Requests that were refused for their length, and sent once more with less.",),
    "too_long_tokens": ("Tokens that were taken out of those requests again.",),
    "blocks": ("Requests that got a new block.",),
    "prompt_tokens": ("Tokens of prompts, as providers counted them.",),
    "cache_read_tokens": ("Of these, tokens that providers read from their prefix caches.",),
    "cache_write_tokens": ("Of these, tokens that providers wrote to their prefix caches, where they say so.",),
    "cache_rebuilds": (
        "Archived answers, by the reason for a rebuild of the provider's prefix cache; none: no rebuild.",
        "cause",
    ),
    "cache_rebuilt_tokens": ("Tokens that providers read again in these rebuilds.", "cause"),
    "passages_shown": ("Passages of new blocks, where the answer to them was read.",),
    "passages_quoted": ("Of these, passages that the answer quotes.",),
    "items_written": ("Items that writers of mid-term memory kept.",),
    "items_merged": ("Items that were merged into one that says the same.",),
    "items_superseded": ("Items whose value a newer one replaced.",),
    "items_evicted": ("Items evicted because their user has too many.",),
    "items_related": ("Items that relations were taken from.",),
    "probes": (
        "Questions that memory asked itself, by the stage at which the answer got lost; found: it was not.",
        "stage",
    ),
    "retention_rows_swept": ("Rows erased because of their age, or to free space.", "kind"),
    "assist_tokens": ("Tokens of calls of language models that help memory.", "role", "kind"),
    "assist_dollars": ("Price of those calls, where it is known.", "role"),
}

# Name: help, how the workers' values become one, and then its labels. `pending` counts rows of the shared database, so
# the newest reading holds; queues add up; one worker that cannot is bad news for all.
GAUGES: Mapping[str, tuple[str, ...]] = {
    "pending": ("Passages journalled and not yet indexed.", "livemostrecent"),
    "pending_seconds": ("How long the one that has waited longest waits.", "livemostrecent"),
    "queued": ("Turns that wait to be written.", "livesum"),
    "queue_bytes": ("Size of the turns and answers that wait to be written.", "livesum"),
    "archive_lag_seconds": ("How long the oldest of them has waited.", "livemax"),
    "memory_on": ("1 unless memory.mode is off; then nothing is read or written.", "livemin"),
    "memory_switched_off": ("1 while memory is switched off for everybody (palimpsest disable).", "livemax"),
    "tenants_switched_off": ("Tenants for whom memory is switched off.", "livemax"),
    "facts": ("Statements of facts that are stored.", "livemostrecent", "category"),
    "facts_lag_seconds": ("How long the oldest message has waited for its facts to be extracted.", "livemostrecent"),
    "store_up": ("1 while the store works; means nothing while memory is off.", "livemin"),
    "embedder_ready": ("1 while the embedding model is loaded; 0: recall is lexical only.", "livemin"),
    "items": ("Items of mid-term memory that are in use; known while consolidation is on.", "livemostrecent"),
    "graph_edges": ("Relations of the long-term graph; known while consolidation is on.", "livemostrecent"),
    "gap": (
        "Share of the answers of the newest probes that is lost in writing (write) or in recall (retrieval).",
        *("livemostrecent", "gap"),
    ),
    "retention_rows_remaining": (
        "Rows that are older than retention allows, and not erased yet.",
        *("livemostrecent", "kind"),
    ),
    "retention_oldest_age_seconds": ("Age of the oldest of these rows; 0: none.", "livemostrecent", "kind"),
    "policy_generation": ("Number of the policy in force; the lowest of all workers.", "livemin"),
    "policy_last_reload_successful": (
        "1 while the configuration is accepted; 0: an earlier one is in force.",
        "livemin",
    ),
    "policy_last_reload_success_timestamp_seconds": ("When the configuration was last accepted.", "livemin"),
    "build_info": ("1.", "livemax", "version"),
}


class Metrics:
    """
    Counts of one app; implements `palimpsest.domain.ports.Counts`.

    Each instance has a registry of its own, so that apps in one process do not add up.
    """

    def __init__(self) -> None:
        self._shared = os.environ.get(MULTIPROCESS_FOLDER_ENV)
        own = CollectorRegistry()
        self._registry = own
        self._tenants: set[str] = set()
        self._counters = {
            name: Counter(f"palimpsest_{name}", text, labels, registry=own)
            for name, (text, *labels) in COUNTERS.items()
        }
        self._gauges = {
            name: Gauge(f"palimpsest_{name}", text, labels, multiprocess_mode=mode, registry=own)  # type: ignore[arg-type]
            for name, (text, mode, *labels) in GAUGES.items()
        }
        self._gauges["build_info"].labels(__version__).set(1)
        self._stages = Histogram(
            *("palimpsest_stage_seconds", "Duration of one stage of the work.", ("stage",)),
            buckets=STAGE_EDGES_SECONDS,
            registry=own,
        )
        self._assist_seconds = Histogram(
            "palimpsest_assist_seconds",
            "Duration of calls of language models that help memory, by outcome.",
            ("role", "outcome"),
            buckets=ASSIST_EDGES_SECONDS,
            registry=own,
        )
        if not self._shared:
            ProcessCollector(registry=own)
        # of what each request counts: to find it by its labels takes longer than to count
        self._requests_of = cache(self._counters["requests"].labels)
        self._responses_of = cache(self._counters["upstream_responses"].labels)
        self._stage_of = cache(self._stages.labels)

    def request(
        self, role: str, event: str, note: str = "", added_tokens: int = 0, own_tokens: int = 0, tenant: str = ""
    ) -> None:
        """Count a request that memory looked at, and its tokens; "" stands for what is not known."""
        self._requests_of(role, event, note).inc()
        if own_tokens:
            self.add("own_tokens", own_tokens)
        if added_tokens:
            self.add("added_tokens", added_tokens)
            self.add("tenant_added_tokens", added_tokens, self._named(tenant))

    def _named(self, tenant: str) -> str:
        """The label of a tenant: its name for the first `TENANTS_NAMED` that got tokens added, `other` for the rest."""
        if len(self._tenants) < TENANTS_NAMED:
            self._tenants.add(tenant)
        return tenant if tenant in self._tenants else OTHER

    def too_long(self, refused_tokens: int) -> None:
        """Count a request that was refused for its length and is sent again without this many added tokens."""
        self.add("too_long", 1)
        self.add("too_long_tokens", refused_tokens)

    def response(self, status: int) -> None:
        """Count an upstream's answer by status; our own 502 and 504 count if there was none."""
        self._responses_of(f"{status // 100}xx").inc()

    def fault(self, where: str) -> None:
        """Count a fault of memory; `where` is a name of ours, never text from outside."""
        self.add("faults", 1, where)

    def refused(self, kind: str) -> None:
        """Count a refused web page; `kind` is `host`, `origin` or `site`."""
        self.add("refused", 1, kind)

    def observe(self, stage: str, seconds: float) -> None:
        """Record the duration of a stage."""
        self._stage_of(stage).observe(seconds)

    def add(self, name: str, amount: float, *labels: str) -> None:
        """Count so many more; `name` is one of `COUNTERS`, and the labels are its."""
        counter = self._counters[name]
        (counter.labels(*labels) if labels else counter).inc(amount)

    def gauge(self, name: str, value: float, *labels: str) -> None:
        """Set a state; `name` is one of `GAUGES`, and the labels are its."""
        gauge = self._gauges[name]
        (gauge.labels(*labels) if labels else gauge).set(value)

    def assisted(self, role: AssistRole, outcome: str, seconds: float) -> None:
        """Count a call of a model that helps memory; `outcome` is `answered` or an `AssistFailure`."""
        self._assist_seconds.labels(role, outcome).observe(seconds)

    def assist_used(self, role: AssistRole, prompt_tokens: int, completion_tokens: int, dollars: float) -> None:
        """Count what a provider will charge for."""
        self.add("assist_tokens", prompt_tokens, role, "prompt")
        self.add("assist_tokens", completion_tokens, role, "completion")
        self.add("assist_dollars", dollars, role)

    def render(self) -> bytes:
        """All metrics of all workers in Prometheus' text format (`CONTENT_TYPE`)."""
        if not self._shared:
            return generate_latest(self._registry)
        _forget_the_dead(Path(self._shared))
        everyone = CollectorRegistry()
        MultiProcessCollector(everyone, path=self._shared)  # type: ignore[no-untyped-call]
        return generate_latest(everyone)


def _forget_the_dead(folder: Path) -> None:
    """Drop the live gauges of workers that have ended for any reason; their counts stay."""
    for pid in {int(file.stem.rpartition("_")[2]) for file in folder.glob("gauge_live*_*.db")}:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            mark_process_dead(pid, str(folder))  # type: ignore[no-untyped-call]
        except PermissionError:
            continue  # alive, and somebody else's
