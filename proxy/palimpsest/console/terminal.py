"""
Output on a terminal. Stored text is shown as it is: no colour codes, no markup, nothing that reverses a line.

What clients and models wrote is untrusted; everything here that may hold it becomes a `Text` by way of `safe`.
"""

from __future__ import annotations

import argparse
import json
import sys
import unicodedata
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from palimpsest.console.arguments import DONE
from palimpsest.core.block.explanation import passage_of
from palimpsest.core.recall.trail import cause_of, required
from palimpsest.domain import Json, Recalled
from palimpsest.domain.errors import PolicyError
from palimpsest.settings.embedding_models import EmbeddingModel

EXCERPT_CHARS = 160  # two lines of a terminal
BYTES_PER_MEGABYTE = 1_000_000
PIPE_COLUMNS = 200  # where nobody looks: wide enough that tables keep their columns

_Entry = tuple[str, str, Text]  # what became of it, by which signals, its text

INVISIBLE = ("Cc", "Cf", "Cs", "Zl", "Zp")  # controls, formats (direction marks among them), surrogates, separators


def console(is_aside: bool = False) -> Console:
    """A console without markup on standard output, or on standard error for remarks beside it."""
    file = sys.stderr if is_aside else sys.stdout
    out = Console(file=file, markup=False, highlight=False, emoji=False)
    if not out.is_terminal:
        out.width = PIPE_COLUMNS
    return out


def is_confirmed(given: argparse.Namespace, command: str, question: str) -> bool:
    """
    Whether the operator confirms with --yes, or by typing yes. Raises `PolicyError`: there is no terminal to ask on.
    """
    if given.yes:
        return True
    if not sys.stdin.isatty():
        raise PolicyError(f"{command}: cannot ask for confirmation without a terminal; add --yes")
    return console(is_aside=True).input(question).strip().lower() == "yes"


def print_json(value: Json) -> int:
    """Print a JSON object as a line of standard output, as it is; returns the exit status."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False) + "\n")
    return DONE


def safe(text: str) -> Text:
    r"""Text with control characters escaped, as `\x1b` or `\u202e`."""
    return Text("".join(_written_out(c) if unicodedata.category(c) in INVISIBLE else c for c in text))


def excerpt(text: str, chars: int = EXCERPT_CHARS) -> Text:
    """The beginning of a text, on one line."""
    line = " ".join(text.split())
    return safe(line if len(line) <= chars else line[: chars - 1] + "…")


def fields(rows: Iterable[tuple[str, str]]) -> RenderableType:
    """A two-column table of names and values; rows without a value are left out."""
    table = Table.grid(padding=(0, 2))
    for name, value in rows:
        if value:
            table.add_row(Text(name, style="bold"), safe(value))
    return table


def models(every: Iterable[EmbeddingModel], chosen: EmbeddingModel) -> RenderableType:
    """The embedding models, one per line; the one in use is marked."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in ("", "model", "dimensions", "MB", "licence", "languages"):
        table.add_column(name, justify="right" if name in ("dimensions", "MB") else "left", no_wrap=True)
    for each in every:
        mark = "*" if each == chosen else ""
        table.add_row(mark, each.name, f"{each.dimensions:,}", f"{each.megabytes:,}", each.licence, each.languages)
    return table


def explanation(turn: Mapping[str, Any], texts: Mapping[int, str], page: str = "") -> Iterable[RenderableType]:
    """
    One turn's decision, from its record; `texts` by occurrence: candidates that are missing have been forgotten.

    Args:
        page: the address at which a running proxy shows it in a browser; "": none does.
    """
    record = turn["explain"]
    note = record.get("note") or ""
    meaning, advice = cause_of(record)
    pressure, budget, added = record.get("pressure", {}), record.get("budget", {}), record.get("added")
    query, gate, block, facts, early = (
        record.get(name, {}) for name in ("query", "gate", "block", "facts", "unindexed")
    )
    yield fields(
        [
            ("turn", _place(turn)),
            ("request", record.get("request", "")),
            ("trace", record.get("trace", "")),
            ("policy", str(record.get("policy", ""))),
            ("role", record.get("role", "")),
            ("event", record.get("event", "")),
            *(("because", reason) for reason in record.get("evidence", ())),
            (
                "pressure",
                f"{pressure['prompt_tokens']:,} of {pressure['window_tokens']:,} tokens, {pressure['ratio']:.0%}: "
                f"{pressure['tier']}"
                if pressure
                else "",
            ),
            ("overflow", _overflow(record.get("overflow", {}))),
            ("budget", f"{budget['chars']:,} characters, {budget['passage_chars']:,} a passage" if budget else ""),
            ("query", _quoted(query.get("text", ""))),
            ("plan", _plan(query.get("plan"))),
            ("gate", f"{'open' if gate['admitted'] else 'shut'}: {required(gate['reason'])}" if gate else ""),
            ("model", "missing: searched by words alone" if record.get("lexical_only") else ""),
            ("index", f"{early['passages']:,} of {early['of']:,} passages had no vector yet" if early else ""),
            ("took", ", ".join(f"{stage} {ms:g} ms" for stage, ms in record.get("elapsed_ms", {}).items())),
            (
                "said",
                f"{record.get('kind')}: {block['chars']:,} characters, {block['tokens']:,} tokens" if block else "",
            ),
            *(("fact", f"{one['fact']}: {one['why']}") for one in facts.get("told", ())),
            ("facts left out", ", ".join(f"{many} {why}" for why, many in facts.get("left_out", {}).items())),
            ("added", f"{added['tokens']:,} tokens, {added['share']:.0%} of the client's own" if added else ""),
            ("note" if block else "nothing said", ": ".join(filter(None, (note, meaning)))),
            ("to change it", "" if block else advice),
            ("in a browser", page),
        ]
    )
    if candidates := record.get("candidates", ()):
        yield _candidates(candidates, texts)


def _overflow(told: Json) -> str:
    """What stayed behind of a request that is longer than its window."""
    if would := told.get("would_trim_tokens"):
        return f"trim would leave out {would:,} tokens"
    parts = []
    if "trimmed_tokens" in told:
        since = "from here on" if told["is_new"] else "as before"
        counts = f"{told['dropped']:,} messages, and {told['stubs']:,} as stubs"
        parts.append(f"{told['trimmed_tokens']:,} tokens left out {since}: {counts}")
    if "reply_tokens" in told:
        parts.append(f"an answer of {told['reply_tokens']:,} tokens asked for at most")
    return "; ".join(parts)


def _plan(plan: Mapping[str, Any] | None) -> str:
    """The plan of a look-up in words: further questions, preferred speakers and days."""
    if not plan:
        return ""
    asked = [f"also {question}" for question in plan["questions"]]
    told_by = [] if plan["teller"] == "anyone" else [f"rather what {plan['teller']} said"]
    days = [f"rather of {_when(first)} to {_when(last)}" for first, last in plan["periods"]]
    return _quoted("; ".join((*asked, *told_by, *days)))


def _place(turn: Mapping[str, Any]) -> str:
    place = f"{turn['key']}: {turn['number']} of {turn['turns']} of {turn['conversation']}"
    return f"{place}, {_when(turn['created_at'])}"


def numbers(stats: Mapping[str, Any]) -> RenderableType:
    """The result of `Journal.stats` in readable units."""
    counts = ("tenants", "conversations", "turns", "messages", "memories")
    return fields(
        [
            *(("switched off", _switch(off)) for off in stats["switched_off"]),
            *((name, f"{stats[name]:,}") for name in counts),
            *((f"{used['role']} model", _model_use(used)) for used in stats["models"]),
            ("facts", f"{stats['facts']:,}" if stats["facts"] is not None else ""),
            ("size", f"{stats['bytes'] / BYTES_PER_MEGABYTE:,.1f} MB"),
            ("to be indexed", f"{stats['pending']:,}"),
            ("set aside", f"{stats['set_aside']:,}, that could not be stored" if stats["set_aside"] else ""),
            (
                "searches",
                f"p50 {stats['search_ms_p50']:g} ms, p95 {stats['search_ms_p95']:g} ms"
                if stats["searches"]
                else "none",
            ),
            ("probes", gaps(stats["gaps"]) if stats["gaps"] else ""),
        ]
    )


def gaps(found: Mapping[str, Any]) -> str:
    """An estimate of what gets lost (`core/recall/gaps.as_json`), in one sentence."""
    write, retrieval = (
        f"{100 * found[f'{gap}_gap']:.0f} ±{100 * found[f'{gap}_error']:.0f}" for gap in ("write", "retrieval")
    )
    more = {"write": "more in writing", "retrieval": "more in recall"}.get(found["verdict"], "alike")
    return f"of {found['probes']} answers {write} % got lost in writing, {retrieval} % in recall: {more}"


def _model_use(used: Mapping[str, Any]) -> str:
    """One line of what a model was asked today: calls, tokens, dollars."""
    failed = f", {used['failures']:,} failed" if used["failures"] else ""
    tokens = used["prompt_tokens"] + used["completion_tokens"]
    price = f", ${used['dollars']:.4f}" if used["dollars"] else ""
    return f"{used['calls']:,} calls{failed}, {tokens:,} tokens{price} on {used['day']}"


def _switch(off: Mapping[str, Any]) -> str:
    reason = f": {off['reason']}" if off["reason"] else ""
    return f"memory of {off['tenant'] or 'everybody'}, since {_when(off['at'])}{reason}"


def erasure_rows(counts: Mapping[str, int]) -> Iterable[tuple[str, str]]:
    """The counts of an erasure, as rows for `fields`."""
    for name, count in counts.items():
        yield name.replace("_", " "), f"{count:,}"


def _behind(recalled: Recalled) -> str:
    if not recalled.unindexed or recalled.lexical_only:
        return ""
    return f"{recalled.unindexed:,} of {recalled.eligible:,} passages have no vector yet"


def search_results(recalled: Recalled, behind: Recalled | None = None) -> Iterable[RenderableType]:
    """The results of a search, best first; `behind`: results that a request would not have received."""
    hidden = behind.candidates if behind else ()
    what_follows = f"what follows the first {len(recalled.candidates)}" if recalled.candidates else "what follows"
    rows = [
        ("gate", f"{'open' if recalled.admitted else 'shut'}: {required(recalled.reason)}"),
        ("model", "missing: searched by words alone" if recalled.lexical_only else ""),
        ("index", _behind(recalled)),
        ("took", f"{recalled.elapsed_ms:.1f} ms"),
        ("behind it", f"{what_follows}; a request would not have received it" if hidden else ""),
    ]
    yield fields(rows)
    if candidates := (*recalled.candidates, *hidden):
        yield _entries(
            (
                f"worth {candidate.probability:.3f}",
                f"{_signals(candidate.signals)}; {_when(candidate.memory.created_at)}, "
                f"{candidate.memory.conversation} {candidate.memory.position} {candidate.memory.role}",
                excerpt(candidate.memory.text),
            )
            for candidate in candidates
        )


def _when(at: float) -> str:
    return datetime.fromtimestamp(at).astimezone().strftime("%Y-%m-%d %H:%M")


def _candidates(candidates: Iterable[Mapping[str, Any]], texts: Mapping[int, str]) -> RenderableType:
    """The candidates of a look-up, each with its scores, its text, and why it was cut."""

    def entry(candidate: Mapping[str, Any]) -> _Entry:
        text = texts.get(candidate["occurrence"])
        return (
            "packed" if candidate["packed"] else f"cut: {candidate['why']}",
            "; ".join(filter(None, (f"score {candidate['score']:.4f}", _signals(candidate["signals"])))),
            Text("(forgotten)", style="dim") if text is None else excerpt(passage_of(candidate, text)),
        )

    return _entries(map(entry, candidates))


def _entries(entries: Iterable[_Entry]) -> RenderableType:
    """Numbered entries of three lines: what became of it, its scores, and its text."""
    table = Table.grid(padding=(0, 2, 1, 0))
    table.add_column(justify="right")
    for place, (verdict, about, text) in enumerate(entries, start=1):
        table.add_row(str(place), Group(text, safe(verdict), Text(safe(about).plain, style="dim")))
    return table


def _signals(signals: Mapping[str, Any]) -> str:
    """`meaning 3 (0.61)`: third by this signal; without those that say nothing of the memory."""
    return ", ".join(f"{name} {at[0]} ({at[1]:.2f})" for name, at in signals.items() if at and at[0] and at[1])


def _quoted(text: str) -> str:
    line = " ".join(text.split())
    return f"“{line if len(line) <= EXCERPT_CHARS else line[: EXCERPT_CHARS - 1] + '…'}”" if line else ""


def _written_out(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
