from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest
from palimpsest.evaluation import bench_implied
from palimpsest.evaluation.bench_implied import MOMENTS, OURS, by_bm25, exchanges, filled, newest, read_chats, window
from palimpsest.evaluation.datasets import DatasetError

from tests.running import ROOT

CHATS = ROOT / "tests/everyday/implied.json"
NEEDS = {
    "allotment": {
        "language": "en",
        "kind": "thing",
        "system": "You are a gardening assistant.",
        "turns": [
            {"user": "There is only a rain barrel there, no tap.", "assistant": "Then water is scarce."},
            {"user": "When do people sow broad beans?", "assistant": "From late February."},
            {"user": "And garlic?", "assistant": "In October."},
            {"user": "What is a logarithm?", "assistant": "The inverse of a power."},
            {"user": "Which crops would cope on my plot in summer?", "assistant": "Squash.", "needs": ["barrel"]},
            {"user": "Cheers!", "assistant": "You are welcome.", "needs": []},
        ],
    }
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "chats.json").write_text(json.dumps(NEEDS))
    return tmp_path / "chats.json"


def test_every_need_of_ours_was_said_before_and_is_not_named_by_its_request() -> None:
    chats = read_chats(CHATS)
    assert len(chats) == len({chat.name for chat in chats}) == 100
    assert len({chat.language for chat in chats}) == 12
    for chat in chats:
        said = ""
        for turn in chat.turns:
            for words in turn.needs or ():
                assert words in said and words not in turn.user, (chat.name, words)
            said += turn.user + "\n"


def test_a_client_keeps_its_last_messages_from_a_users_on() -> None:
    said = [{"role": ("user", "assistant")[at % 2], "content": str(at)} for at in range(9)]
    assert [one["content"] for one in window(said)] == ["4", "5", "6", "7", "8"]
    assert [one["content"] for one in window(said[:8])] == ["4", "5", "6", "7"]


def test_baselines_tell_what_was_lost_within_their_room() -> None:
    lost = ["The tap is dry.", "All right.", "Garlic grows in autumn."]
    assert newest(lost, 40) == "Garlic grows in autumn.\nAll right."
    assert by_bm25(lost, "When does garlic grow?", 100) == "Garlic grows in autumn."
    assert by_bm25([], "Anything?", 100) == "" == by_bm25(lost, "Moin", 100)


def test_other_talk_passes_before_the_first_need(file: Path, tmp_path: Path) -> None:
    messages = [{"id": at, "role": ("user", "assistant")[at % 2], "content": f"talk {at}"} for at in range(6)]
    (tmp_path / "talk.jsonl").write_text(
        json.dumps({"id": "c", "sessions": [{"date": "2023-05-09", "messages": messages}], "questions": []}) + "\n"
    )
    talk = exchanges(tmp_path / "talk.jsonl")
    assert [turn.user for turn in talk] == ["talk 0", "talk 2", "talk 4"]
    (chat,) = read_chats(file)
    assert [turn.user for turn in filled(chat, talk, 2, 2).turns][3:7] == [
        *("What is a logarithm?", "talk 4", "talk 0"),
        "Which crops would cope on my plot in summer?",
    ]


@pytest.mark.parametrize("text", ["[]", "{", '{"a": {"turns": []}}', '{"a": 1}'])
def test_what_holds_no_chats_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(DatasetError, match="expected chats by name"):
        read_chats(tmp_path / "x.json")


@pytest.mark.slow
@pytest.mark.usefixtures("forked")
@pytest.mark.usefixtures("model_folder")
async def test_a_need_is_judged_at_both_moments_for_every_system(file: Path) -> None:
    parser = argparse.ArgumentParser()
    bench_implied.add_arguments(parser)
    given = argparse.Namespace(**vars(parser.parse_args(["--show"])), data=[file], limit=0, seed=42)
    report = await bench_implied.run(given)
    for moment in MOMENTS:
        of = report.data["moments"][moment]
        assert {name: one["needed"] for name, one in of.items()} == {OURS: 1, "newest": 1, "bm25": 1}
        assert of["newest"]["reached"] == 1 and of["bm25"]["reached"] == 0
        assert of["newest"]["idle_told"] == of["newest"]["idle"] == 1
