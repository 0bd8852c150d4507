"""
Benchmark: a paper's own tables in order, its numbers beside ours.

`papers/NAME.yaml` holds the numbers, and says of each row where ours comes from: a run of another benchmark and the
path of the figure in its JSON. How far the two can be compared is part of the row: `same` (metric and data), `data`
(same metric, other data), `metric` (another metric, or one that a rule measures where the paper asks a judge), or
`none` (not run, and why). Data are found by the names of their folders; what is missing is said in its row.
"""

from __future__ import annotations

import re
import shlex
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from json import loads
from pathlib import Path
from typing import Any

import yaml

from palimpsest.domain.errors import PolicyError
from palimpsest.evaluation import model as models
from palimpsest.evaluation.command import BenchmarkModule, parsed
from palimpsest.evaluation.report import Report, Table, provenance

FOLDER = Path(__file__).parent / "papers"
PAPERS = ("lantern", "calmem", "whenloss", "lightmem3", "lightmem-slm")
COMPARISONS = {
    "same": "same metric and data",
    "data": "same metric, other data",
    "metric": "other metric",
    "none": "not run",
}

_NAMED = re.compile(r"\{(\w+)\}")  # a folder of data among the flags

Cell = str | float | int | None


@dataclass(frozen=True, slots=True)
class Row:
    """`paper` is its number, None where it prints none; `ours` is "RUN/path/in/its/JSON", "" for none."""

    name: str
    paper: Cell
    ours: str
    comparison: str
    why: str


@dataclass(frozen=True, slots=True)
class Run:
    """Another benchmark: the folders of its data, its flags, and whether it needs a language model."""

    bench: str
    data: Sequence[str]
    flags: Sequence[str]
    model: bool


@dataclass(frozen=True, slots=True)
class Paper:
    """What a file of `papers/` says."""

    title: str
    runs: Mapping[str, Run]
    tables: Mapping[str, Sequence[Row]]


def add_arguments(parser: ArgumentParser) -> None:
    """Add the flags of this benchmark."""
    parser.add_argument("paper", choices=PAPERS, help="whose tables")
    help = "keep each run's JSON there, and take from there what is already run"
    parser.add_argument("--results", type=Path, metavar="FOLDER", help=help)
    models.add_arguments(parser)


async def run(given: Namespace) -> Report:
    """Run the benchmark on the data that the arguments name, and report it."""
    paper = of(FOLDER / f"{given.paper}.yaml")
    found: dict[str, Any] = {}
    missing: dict[str, str] = {}
    for name, one in paper.runs.items():
        kept = given.results / f"{name}.json" if given.results else None
        if kept and kept.is_file():
            found[name] = loads(kept.read_text("utf-8"))
        elif lacks := _lacks(one, given):
            missing[name] = lacks
        else:
            bench, arguments = _arguments(one, given)
            report = await bench.run(arguments)
            if kept:
                made = Report(report.title, report.data, (), report.notes, None, provenance(given.seed))
                kept.write_text(made.to_json(), encoding="utf-8")
            found[name] = loads(report.to_json())
    return report_of(paper, found, missing, given.limit)


def of(file: Path) -> Paper:
    """
    Read the paper of one file.

    Raises:
        PolicyError: a row names a run or a comparison that there is not.
    """
    told = yaml.safe_load(file.read_text("utf-8"))
    runs = {
        name: Run(one["bench"], one.get("data", []), shlex.split(one.get("flags", "")), one.get("model", False))
        for name, one in told["runs"].items()
    }
    tables = {name: [_row(one) for one in rows] for name, rows in told["tables"].items()}
    for name, rows in tables.items():
        for row in rows:
            known = row.ours.split("/")[0] in runs if row.ours else bool(row.why)
            if row.comparison not in COMPARISONS or not known:
                raise PolicyError(
                    f"reading {file}: {name}, {row.name}: needs a run that is listed, or is `none` with a reason"
                )
    return Paper(told["title"], runs, tables)


def _row(told: Mapping[str, Any]) -> Row:
    return Row(told["row"], told.get("paper"), told.get("ours", ""), told["is"], told.get("why", ""))


def figure(found: Any, path: Sequence[str]) -> Any:
    """
    A figure of a benchmark's JSON.

    Raises:
        PolicyError: it is not there: the benchmark has changed.
    """
    for key in path:
        try:
            found = found[int(key) if isinstance(found, list) else key]
        except (KeyError, IndexError, ValueError, TypeError) as cause:
            raise PolicyError(
                f"looking for {'/'.join(path)} in a benchmark's results: there is no {key}; delete what --results kept"
            ) from cause
    return found


def _lacks(one: Run, given: Namespace) -> str:
    """What a run of the paper lacks here, in words; "": nothing."""
    there = {path.name for path in given.data}
    wanted = [*one.data, *(name for flag in one.flags for name in _NAMED.findall(flag))]
    if absent := [name for name in wanted if name not in there]:
        return f"needs {' and '.join(absent)}"
    return "needs --model" if one.model and not given.model else ""


def _arguments(one: Run, given: Namespace) -> tuple[BenchmarkModule, Namespace]:
    """The benchmark of a run, and its arguments."""
    paths = {path.name: str(path) for path in given.data}
    flags = [_NAMED.sub(lambda found: paths[found[1]], flag) for flag in one.flags]
    flags += ["--limit", str(given.limit)] if given.limit else []
    if one.model:
        flags += ["--model", given.model, *(["--upstream", given.upstream] if given.upstream else [])]
    return parsed(one.bench, [*(paths[name] for name in one.data), *flags, "--seed", str(given.seed)])


def report_of(paper: Paper, found: Mapping[str, Any], missing: Mapping[str, str], limit: int = 0) -> Report:
    """
    Every table of the paper; a row whose run is missing says what it needs.

    Args:
        limit: of what was asked; 0: all was. A few questions may be of none of a row's kind.
    """
    tables, told = [], {}
    for name, rows in paper.tables.items():
        lines: list[list[Cell]] = []
        for row in rows:
            of_run, *path = row.ours.split("/")
            said = COMPARISONS[row.comparison] + (f": {row.why}" if row.why else "")
            ours = None
            try:
                ours = figure(found[of_run], path) if of_run in found else None
            except PolicyError:
                if not limit:
                    raise
                said = f"{COMPARISONS['none']}: none of what --limit {limit} leaves is of this kind"
            if of_run in missing:
                said = f"{COMPARISONS['none']}: {missing[of_run]}"
            lines.append([row.name, row.paper, round(ours, 3) if isinstance(ours, float) else ours, said])
        tables.append(Table(name, ("row", "paper", "ours", "comparison"), lines))
        told[name] = [dict(zip(("row", "paper", "ours", "comparison"), line, strict=True)) for line in lines]
    of_runs = {name: one.get("provenance") or {} for name, one in found.items()}
    notes = [f"{name}: measured by {made['command']} at {made['commit']}" for name, made in of_runs.items() if made]
    return Report(f"paper: {paper.title}", {"data": [], "tables": told}, tables, notes)
