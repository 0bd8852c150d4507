"""The papers' tables beside ours."""

from __future__ import annotations

import json
import re
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
from palimpsest.domain.errors import PolicyError
from palimpsest.evaluation import bench_paper
from palimpsest.evaluation.bench_paper import COMPARISONS, FOLDER, PAPERS, figure, of, report_of
from palimpsest.evaluation.bench_writing import VARIANTS
from palimpsest.evaluation.command import BENCHMARKS, parsed


@pytest.mark.parametrize("name", PAPERS)
def test_every_row_has_a_run_of_ours_or_a_reason_and_the_tables_are_in_the_order_of_the_paper(name: str) -> None:
    paper = of(FOLDER / f"{name}.yaml")
    numbers = [int(found[1]) for title in paper.tables if (found := re.match(r"Table (\d+)", title))]
    assert numbers == sorted(numbers)
    for one in paper.runs.values():
        assert one.bench in BENCHMARKS
        parsed(one.bench, [*(one.data or ["DATA"]), *one.flags, *(["--model", "m"] if one.model else [])])
    used = {row.ours.split("/")[0] for rows in paper.tables.values() for row in rows if row.ours}
    assert used == set(paper.runs), "a run that no row needs only costs time"
    assert all(row.why for rows in paper.tables.values() for row in rows if row.comparison == "none")


def told(tmp_path: Path, row: dict[str, Any]) -> Path:
    runs = {"r": {"bench": "recall", "data": ["locomo"], "flags": "--systems bm25"}}
    (tmp_path / "p.yaml").write_text(json.dumps({"title": "T", "runs": runs, "tables": {"Table 1": [row]}}))
    return tmp_path / "p.yaml"


@pytest.mark.parametrize("wrong", [{"is": "none"}, {"is": "nearly", "ours": "r/x"}, {"is": "same", "ours": "s/x"}])
def test_a_row_that_cannot_be_compared_is_refused(tmp_path: Path, wrong: dict[str, Any]) -> None:
    with pytest.raises(PolicyError, match="Table 1, a"):
        of(told(tmp_path, {"row": "a", **wrong}))


def test_numbers_stand_beside_each_other_and_what_was_not_run_says_why(tmp_path: Path) -> None:
    paper = of(told(tmp_path, {"row": "a", "paper": 0.5, "ours": "r/n/0", "is": "data"}))
    (row,) = report_of(paper, {"r": {"n": [0.25]}}, {}).tables[0].rows
    assert list(row) == ["a", 0.5, 0.25, COMPARISONS["data"]]
    (row,) = report_of(paper, {}, {"r": "needs locomo"}).tables[0].rows
    assert list(row) == ["a", 0.5, None, "not run: needs locomo"]


def test_where_little_was_asked_a_row_may_have_no_figure(tmp_path: Path) -> None:
    paper = of(told(tmp_path, {"row": "a", "ours": "r/n/multi-hop", "is": "data"}))
    (row,) = report_of(paper, {"r": {"n": {}}}, {}, limit=3).tables[0].rows
    assert row[2] is None and "--limit 3" in str(row[3])
    with pytest.raises(PolicyError, match="no multi-hop"):
        report_of(paper, {"r": {"n": {}}}, {})


def test_the_parts_of_epc_that_are_left_out_are_those_of_its_benchmark() -> None:
    rows = [row.ours for table in of(FOLDER / "whenloss.yaml").tables.values() for row in table]
    named = {ours.removeprefix("writing/epc/") for ours in rows if ours.startswith("writing/epc/")}
    assert named and named <= VARIANTS.keys()


def test_a_figure_that_a_benchmark_no_longer_tells_is_an_error() -> None:
    with pytest.raises(PolicyError, match="there is no m"):
        figure({"n": 1}, ["m"])


async def test_results_of_before_are_taken_and_data_that_are_not_given_are_named(tmp_path: Path) -> None:
    given = Namespace(paper="calmem", results=tmp_path, data=[], limit=0, seed=42, model=None, upstream=None)
    (tmp_path / "identifiers.json").write_text(
        json.dumps({"rank_5": 0.5, "systems": {"palimpsest": {}, "dense": {"rank_5": 0.1}}})
    )
    rows = [row for table in (await bench_paper.run(given)).tables for row in table.rows]
    assert any(row[3] == "not run: needs locomo" for row in rows)
