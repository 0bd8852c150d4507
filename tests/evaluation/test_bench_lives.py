from __future__ import annotations

import argparse
from pathlib import Path

import pytest
from palimpsest.evaluation import bench_lives
from palimpsest.evaluation.bench_implied import OURS
from palimpsest.evaluation.bench_lives import Turn, read_sessions
from palimpsest.evaluation.datasets import DatasetError

from tests.running import ROOT

LIVES = sorted((ROOT / "tests/everyday/lives").glob("*.txt"))
LIFE = r"""
== chat 2026-09-01 10:00
U: My sister Clara is allergic to walnuts. How long do figs keep?
A: Three days in the fridge.

== oc:garden 2026-09-02 09:00
U: list the beds
T: bash {"command": "cat beds.csv"} => 1,leeks\n2,kale
A: Two beds: leeks and kale.
!compact The user asked for a list.
U: what grows in the second bed?
N: kale
A: Kale.

== chat 2026-09-03 10:00
U: what is my sister Clara allergic to?
N: walnuts
A: To walnuts.
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "life.txt").write_text(LIFE)
    return tmp_path / "life.txt"


@pytest.mark.parametrize("path", LIVES, ids=lambda path: path.stem)
def test_every_need_of_ours_was_said_before_and_stands_nowhere_that_the_client_sends(path: Path) -> None:
    said = ""
    for session in read_sessions(path):
        visible = ""
        for turn in session.turns:
            if isinstance(turn, str):
                visible = turn.lower()
                continue
            visible += turn.user.lower() + "\n"
            for words in turn.needs:
                assert words.lower() in said and words.lower() not in visible, (turn.user, words)
            done = "".join(f"{arguments}\n{result}\n" for _, arguments, result in turn.tools).lower()
            visible += done + turn.answer.lower() + "\n"
            said += f"{turn.user}\n{done}{turn.answer}\n".lower()


def test_a_session_is_read_with_its_calls_and_compactions(file: Path) -> None:
    chat, garden, _ = read_sessions(file)
    assert (chat.folder, garden.folder) == ("", "garden")
    call = ("bash", '{"command": "cat beds.csv"}', "1,leeks\n2,kale")
    assert garden.turns == [
        Turn("list the beds", (), [call], "Two beds: leeks and kale."),
        "The user asked for a list.",
        Turn("what grows in the second bed?", ("kale",), [], "Kale."),
    ]


@pytest.mark.parametrize("text", ["U: hello", "== chat 2026-09-01 10:00\nA: hello", "== chat 1\nU: a\nT: bash {"])
def test_what_is_no_life_is_refused_with_its_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.txt").write_text(text)
    with pytest.raises(DatasetError, match=r"x\.txt, line \d: .*expected a session's head"):
        read_sessions(tmp_path / "x.txt")


@pytest.mark.slow
@pytest.mark.usefixtures("forked")
@pytest.mark.usefixtures("model_folder")
async def test_a_need_of_an_earlier_session_is_judged_for_every_system(file: Path) -> None:
    parser = argparse.ArgumentParser()
    bench_lives.add_arguments(parser)
    given = argparse.Namespace(**vars(parser.parse_args(["--show"])), data=[file], limit=0, seed=42)
    life = (await bench_lives.run(given)).data["life"]
    assert (life["turns"], life["needed"], life["idle"]) == (4, 2, 2)
    assert life["systems"][OURS]["met"] == 2 - len(life["missed"]) == 2
    assert life["systems"]["newest"] == {"met": 2, "idle_told": 1, "chars": life["systems"]["newest"]["chars"]}
