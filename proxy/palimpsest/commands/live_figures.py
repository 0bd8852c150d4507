"""Live figures of a running proxy: rates, shares and percentiles between two readings of its metrics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import inf

from prometheus_client.parser import text_string_to_metric_families


@dataclass(frozen=True, slots=True)
class MetricsSample:
    """The metrics of a proxy at one moment."""

    at: float  # seconds, by a clock that only rises
    samples: Mapping[tuple[str, frozenset[tuple[str, str]]], float]

    def sum(self, name: str, **labels: str) -> float:
        """The sum of all samples of a metric that carry these labels."""
        wanted = set(labels.items())
        return sum(
            value
            for (known, labels_of_sample), value in self.samples.items()
            if known == name and wanted <= labels_of_sample
        )

    def value(self, name: str, **labels: str) -> float | None:
        """The value of one sample; None: it is not there."""
        found = self.samples.get((name, frozenset(labels.items())))
        return None if found is None else round(found, 4)

    def buckets(self, stage: str) -> dict[float, float]:
        """The histogram of one stage: counts by upper edge in seconds."""
        found: dict[float, float] = {}
        for (name, labels), value in self.samples.items():
            labels_of_sample = dict(labels)
            if name == "palimpsest_stage_seconds_bucket" and labels_of_sample["stage"] == stage:
                found[float(labels_of_sample["le"])] = value
        return dict(sorted(found.items()))


def parse_metrics(text: str, at: float) -> MetricsSample:
    """Parse the text of `/metrics`."""
    samples = {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    return MetricsSample(at, samples)


@dataclass(frozen=True, slots=True)
class Figures:
    """What a proxy does, over a few seconds; None where nothing happened that could be measured."""

    seconds: float  # between the readings
    requests_per_second: float
    failed_share: float | None  # of answers: 5xx
    block_share: float | None  # of requests that memory looked at: those with a new block
    added_tokens_per_second: float
    added_share: float | None  # of the clients' own tokens
    cache_read_share: float | None  # of prompt tokens, where providers tell
    quoted_share: float | None  # of the passages shown
    memory_p50_ms: float | None
    memory_p95_ms: float | None
    recall_p50_ms: float | None
    recall_p95_ms: float | None
    write_gap: float | None  # of the newest probes, where there are any
    retrieval_gap: float | None
    archive_lag_seconds: float
    queued_turns: int
    queue_bytes: int
    pending: int  # turns to be written and passages to be indexed
    turns_lost: int  # since the proxy's start
    faults: int  # since the proxy's start
    memory_on: bool  # memory.mode
    switched_off: bool  # for everybody
    tenants_switched_off: int
    store_up: bool
    embedder_ready: bool
    policy_generation: int


def figures(before: MetricsSample, now: MetricsSample) -> Figures:
    """Figures of what happened between two readings of one proxy; counters may have been set back by a restart."""
    seconds = max(now.at - before.at, 1e-9)

    def increase(name: str, **labels: str) -> float:
        risen = now.sum(name, **labels) - before.sum(name, **labels)
        return risen if risen >= 0 else now.sum(name, **labels)

    def percentiles(stage: str) -> tuple[float | None, float | None]:
        """Median and 95th percentile of a stage in milliseconds, of what came since `before`."""
        earlier, later = before.buckets(stage), now.buckets(stage)
        risen = {edge: count - earlier.get(edge, 0.0) for edge, count in later.items()}
        if any(count < 0 for count in risen.values()):
            risen = later
        return percentile_ms(risen, 0.5), percentile_ms(risen, 0.95)

    answers = increase("palimpsest_upstream_responses_total")
    memory, recall = percentiles("memory"), percentiles("recall")
    return Figures(
        seconds=round(seconds, 1),
        requests_per_second=round(answers / seconds, 2),
        failed_share=_share(increase("palimpsest_upstream_responses_total", status_class="5xx"), answers),
        block_share=_share(increase("palimpsest_blocks_total"), increase("palimpsest_requests_total")),
        added_tokens_per_second=round(increase("palimpsest_added_tokens_total") / seconds, 1),
        added_share=_share(increase("palimpsest_added_tokens_total"), increase("palimpsest_own_tokens_total")),
        cache_read_share=_share(
            increase("palimpsest_cache_read_tokens_total"), increase("palimpsest_prompt_tokens_total")
        ),
        quoted_share=_share(increase("palimpsest_passages_quoted_total"), increase("palimpsest_passages_shown_total")),
        memory_p50_ms=memory[0],
        memory_p95_ms=memory[1],
        recall_p50_ms=recall[0],
        recall_p95_ms=recall[1],
        write_gap=now.value("palimpsest_gap", gap="write"),
        retrieval_gap=now.value("palimpsest_gap", gap="retrieval"),
        archive_lag_seconds=round(now.sum("palimpsest_archive_lag_seconds"), 1),
        queued_turns=int(now.sum("palimpsest_queued")),
        queue_bytes=int(now.sum("palimpsest_queue_bytes")),
        pending=int(now.sum("palimpsest_pending")),
        turns_lost=int(now.sum("palimpsest_turns_lost_total")),
        faults=int(now.sum("palimpsest_faults_total")),
        memory_on=bool(now.sum("palimpsest_memory_on")),
        switched_off=bool(now.sum("palimpsest_memory_switched_off")),
        tenants_switched_off=int(now.sum("palimpsest_tenants_switched_off")),
        store_up=bool(now.sum("palimpsest_store_up")),
        embedder_ready=bool(now.sum("palimpsest_embedder_ready")),
        policy_generation=int(now.sum("palimpsest_policy_generation")),
    )


def percentile_ms(counts: Mapping[float, float], share: float) -> float | None:
    """A percentile of a histogram, as Prometheus has it; `counts`: up to each edge in seconds, the last infinite."""
    total = max(counts.values(), default=0.0)
    if total <= 0:
        return None
    wanted = total * share
    edges: Iterable[tuple[tuple[float, float], tuple[float, float]]] = pairwise([(0.0, 0.0), *counts.items()])
    for (low, under), (high, upto) in edges:
        if upto >= wanted:
            inside = 0.0 if upto == under else (wanted - under) / (upto - under)
            return round(1000 * (low if high == inf else low + (high - low) * inside), 1)
    return None


def _share(part: float, whole: float) -> float | None:
    """The part's share of the whole, 0..1; None: the whole is 0."""
    return round(part / whole, 4) if whole else None
