from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from palimpsest.evaluation.datasets import DatasetError, read


def line(**changes: Any) -> str:
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    one = {
        "date": "1:56 pm on 8 May, 2023",
        "messages": [
            {"id": 1, "role": "user", "name": "Ann", "content": "I sail on Monday."},
            {"id": 2, "role": "assistant", "content": "", "tool_calls": [call]},
            {"id": 3, "role": "tool", "name": "look", "tool_call_id": "c1", "content": "calm sea"},
        ],
    }
    two = {"date": "2023-05-09", "messages": [{"id": 4, "role": "assistant", "content": "Bon voyage!"}]}
    asked = [
        {"id": f"q{at}", "question": f"Who sails? {at}", "answer": at, "category": "c", "evidence": [1, 1, 99]}
        for at in range(10)
    ]
    return json.dumps({"id": "talk", "sessions": [one, two], "questions": asked} | changes)


def test_messages_are_as_a_client_would_send_them(tmp_path: Path) -> None:
    (tmp_path / "talk.jsonl").write_text(line())
    (conversation,) = read(tmp_path / "talk.jsonl")
    ann, call, tool, bye = conversation.messages
    assert (ann.id, ann.text, ann.content) == ("1", "Ann: I sail on Monday.", "I sail on Monday.")
    assert ann.raw == {"role": "user", "content": "Ann: I sail on Monday."}
    assert call.calls[0].name == "look"
    assert (tool.text, tool.raw["name"]) == ("calm sea", "look"), "the name of a tool message is no speaker's"
    assert [said.session for said in conversation.messages] == [0, 0, 0, 1]
    assert bye.at == datetime(2023, 5, 9, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("date", "read_as"),
    [
        ("1:56 pm on 8 May, 2023", datetime(2023, 5, 8, 13, 56, tzinfo=UTC)),
        ("March-15-2024", datetime(2024, 3, 15, tzinfo=UTC)),
        ("2023/05/20 (Sat) 07:34", datetime(2023, 5, 20, 7, 34, tzinfo=UTC)),
        ("2025-08-18 14:14:40Z", datetime(2025, 8, 18, 14, 14, 40, tzinfo=UTC)),
        ("2026-05-15T12:53:42+02:00", datetime(2026, 5, 15, 10, 53, 42, tzinfo=UTC)),
    ],
)
def test_dates_of_every_known_form_are_read(tmp_path: Path, date: str, read_as: datetime) -> None:
    sessions = [{"date": date, "messages": [{"id": 1, "role": "user", "content": "x"}]}]
    (tmp_path / "talk.jsonl").write_text(line(sessions=sessions, questions=[]))
    assert read(tmp_path / "talk.jsonl")[0].messages[0].at == read_as.timestamp()


def test_time_never_falls_and_messages_without_a_date_have_the_one_before(tmp_path: Path) -> None:
    messages = [{"id": at, "role": "user", "content": "x", "date": date} for at, date in enumerate(["2024-02-01", ""])]
    sessions = [{"messages": messages}, {"date": "2024-01-01", "messages": [messages[1] | {"id": 2}]}]
    (tmp_path / "talk.jsonl").write_text(line(sessions=sessions, questions=[]))
    assert len({said.at for said in read(tmp_path / "talk.jsonl")[0].messages}) == 1


def test_evidence_is_what_exists(tmp_path: Path) -> None:
    (tmp_path / "talk.jsonl").write_text(line())
    (conversation,) = read(tmp_path / "talk.jsonl")
    question = conversation.questions[0]
    assert (question.answer, question.evidence, conversation.gold(question)) == ("0", ("1",), (0,))


def test_a_limit_takes_questions_evenly(tmp_path: Path) -> None:
    (tmp_path / "talk.jsonl").write_text(line())
    assert [q.id for q in read(tmp_path / "talk.jsonl", limit=3)[0].questions] == ["q0", "q3", "q6"]
    assert len(read(tmp_path / "talk.jsonl", limit=30)[0].questions) == 10


def test_a_folder_stands_for_the_one_file_that_it_holds(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "other.jsonl.gz", "wt") as file:
        file.write(f"{line()}\n\n{line(id='second')}\n")
    (tmp_path / "README.md").write_text("")
    assert [conversation.id for conversation in read(tmp_path)] == ["talk", "second"]
    (tmp_path / "third.jsonl").write_text(line())
    with pytest.raises(DatasetError, match=r"other\.jsonl\.gz, third\.jsonl; name the file"):
        read(tmp_path)
    (tmp_path / "dev.jsonl").write_text(line(id="dev"))
    assert read(tmp_path)[0].id == "dev"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "it is empty"),
        ("{", "line 1: .* expected one JSON object a line"),
        ("{}", "line 1: .* lacks 'sessions'"),
        ("[]", "line 1: .* expected an object with id"),
        (line(sessions=[{"date": "soon", "messages": []}]), "line 1: 'soon' is no date"),
        (line(sessions=[{"messages": [{"id": 1, "role": "user", "content": 7}]}]), "line 1: .* its content is neither"),
    ],
)
def test_what_is_wrong_is_said_with_file_and_line(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "talk.jsonl").write_text(text)
    with pytest.raises(DatasetError, match=f"talk.jsonl.*{words}"):
        read(tmp_path / "talk.jsonl")


def test_a_file_that_is_not_there_or_not_gzipped_is_said(tmp_path: Path) -> None:
    (tmp_path / "talk.jsonl.gz").write_text(line())
    for name in ("talk.jsonl.gz", "nowhere.jsonl"):
        with pytest.raises(DatasetError, match=name):
            read(tmp_path / name)
