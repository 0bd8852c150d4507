from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from palimpsest import __version__
from palimpsest.domain.errors import PolicyError
from palimpsest.evaluation.report import Report, Table, bars, lines, provenance
from rich.console import Console

REPORT = Report(
    title="speed",
    data={"n": 3, "fast": 0.5},
    tables=[Table("of three", ("system", "n", "fast"), [("ours", 3000, 0.5), ("theirs\x1b[31m", None, 0.25)])],
    notes=["measured twice"],
    draw=lambda figure: bars(figure, "Speed", ("fast",), {"ours": [0.5], "theirs": [0.25]}),
    provenance=provenance(42),
)


def test_a_table_shows_shares_counts_and_what_is_missing() -> None:
    out = io.StringIO()
    REPORT.show(Console(file=out, width=200))
    said = out.getvalue()
    assert "3,000" in said and "0.500" in said and "0.250" in said and "measured twice" in said
    assert "\x1b[31m" not in said, "what data says is not obeyed"


def test_json_holds_the_results_and_what_is_needed_to_repeat_them() -> None:
    told = json.loads(REPORT.to_json())
    assert (told["n"], told["fast"]) == (3, 0.5)
    made = told["provenance"]
    assert (made["seed"], made["versions"]["palimpsest"]) == (42, __version__)
    assert made["command"].split()[0] == "palimpsest" and made["versions"]["numpy"] and made["date"].startswith("20")


@pytest.mark.parametrize(("name", "starts"), [("speed.png", b"\x89PNG"), ("speed.svg", b"<?xml")])
def test_a_picture_is_drawn(tmp_path: Path, name: str, starts: bytes) -> None:
    REPORT.plot(tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(starts)


def test_curves_are_drawn(tmp_path: Path) -> None:
    rows = [{"size": 1, "all": 0.5}, {"size": 2, "all": 0.25}]
    report = replace(REPORT, draw=lambda figure: lines(figure, ("size", "how many"), "found", rows, "all"))
    report.plot(tmp_path / "curve.svg")
    assert (tmp_path / "curve.svg").read_bytes().startswith(b"<?xml")


def test_a_picture_that_cannot_be_drawn_is_said(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match=r"must end in \.svg or \.png"):
        REPORT.plot(tmp_path / "speed.gif")
    with pytest.raises(PolicyError, match="draws nothing"):
        Report("quiet", {}, ()).plot(tmp_path / "speed.png")
