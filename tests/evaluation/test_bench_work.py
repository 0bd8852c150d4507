"""What the rest of a piece of work needs after a compaction in the middle of it."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from palimpsest.evaluation import bench_work
from palimpsest.evaluation.bench_work import OURS, Cut, cuts, held, held_in_context, names_needed, said_beside

from tests.evaluation.told import told

LINES = (
    *("user: Look at src/app.py", "assistant: It calls read_config in src/settings.py", "tool: def read_config(): ..."),
    *("assistant: And write_config", "user: Go on"),
    *(line for at in range(20) for line in (f"assistant: step {at} of it is done here", "user: next one please")),
)
AFTER = ("assistant: I edit src/app.py and read_config", "tool: write_config", "assistant: write_config is there")
SESSION = told(*LINES, *(line for at in range(3) for line in (*AFTER, "user: more")))


def test_needed_is_what_is_written_before_anything_shows_it_again() -> None:
    messages = SESSION.messages
    needed = names_needed(messages[:4], "nothing", messages[-12:])
    assert needed == {"src/app.py", "read_config"}
    assert names_needed(messages[:4], "in src/app.py", messages[-12:]) == {"read_config"}


def test_a_list_of_names_holds_nothing_in_context() -> None:
    cut = Cut("s", SESSION.messages[:4], "", "", frozenset({"read_config"}))
    said = said_beside(cut)
    assert held(cut.needed, "read_config write_config") == 1
    assert held_in_context("read_config write_config", said) == 0
    assert held_in_context("calls read_config in src", said) == 1


def test_sessions_are_cut_where_the_model_is_about_to_answer() -> None:
    long = told(*LINES[:4], "user: Go on", *LINES[5:], *AFTER, *(f"assistant: see x_{at}" for at in range(9)))
    for cut in cuts(long):
        assert cut.lost and cut.visible.startswith("This session is being continued")


@pytest.mark.parametrize("chars", [60, 600])
def test_every_system_keeps_to_its_room(chars: int) -> None:
    cut = Cut("s", SESSION.messages[:8], "Go on", "read_config", frozenset({"read_config", "src/app.py"}))
    for tell in bench_work.SYSTEMS.values():
        assert len(tell(cut, chars)) <= chars


def test_the_report_has_the_mean_of_each_system() -> None:
    rows = {OURS: [(1.0, 0.5, 100), (0.0, 0.0, 300)], "newest": [(0.5, 0.5, 200), (0.5, 0.5, 200)]}
    report = bench_work.report(rows, 1, 2600)
    assert report.data["systems"] == {OURS: [0.5, 0.25, 200.0], "newest": [0.5, 0.5, 200.0]}


async def test_short_sessions_do_not_count(tmp_path: Path) -> None:
    file = tmp_path / "sessions.jsonl"
    file.write_text('{"id": "s", "sessions": [{"id": "s", "messages": []}], "questions": []}\n')
    given = SimpleNamespace(data=[file], limit=0, chars=600)
    assert (await bench_work.run(given)).data["n"] == 0  # type: ignore[arg-type]
