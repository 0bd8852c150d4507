"""What the client and the log are told of a request."""

from __future__ import annotations

from dataclasses import replace

from palimpsest.core.decision import Decision
from palimpsest.core.facts.choice import FactChoice
from palimpsest.core.reading import Reading
from palimpsest.core.response_headers import headers_of, log_fields, undecided_headers
from palimpsest.domain import (
    Block,
    BlockKind,
    Chat,
    Diagnosis,
    Event,
    Lineage,
    Note,
    Pressure,
    Role,
    Shape,
    Speaker,
    Tier,
)

LINEAGE = Lineage(Event.SUMMARY, Role.MAIN)
DIAGNOSIS = Diagnosis(Speaker("t"), "c-1", LINEAGE, Pressure(40, 1000, 100, 0.04, Tier.CALM))
QUIET = Decision(Reading(Chat((), "m", b"", {}), (), 40), Shape(), DIAGNOSIS, 40)
ADDING = replace(QUIET, block=Block("<block>", BlockKind.RESTORE, (1, 2), tokens=10), anchor=0)


def named(headers: tuple[tuple[bytes, bytes], ...]) -> dict[str, str]:
    return {name.decode().removeprefix("x-palimpsest-"): value.decode() for name, value in headers}


def test_headers_say_what_was_decided_and_leave_out_what_is_not_there() -> None:
    common = {"conversation": "c-1", "role": "main", "event": "compaction:summary", "pressure": "0.04"}
    assert named(headers_of(ADDING, "t-1", None)) == common | {
        "turn": "t-1",
        "added-tokens": "10",
        "added-share": "0.25",
        "recalled": "2",
    }
    assert named(headers_of(QUIET, "", Note.CALM)) == common | {
        "added-tokens": "0",
        "added-share": "0.00",
        "recalled": "0",
        "note": "calm",
    }


def test_undecided_request_says_only_why() -> None:
    assert named(undecided_headers(Note.OFF)) == {"added-tokens": "0", "recalled": "0", "note": "off"}
    assert named(undecided_headers(Note.DEADLINE, "t-1"))["turn"] == "t-1"


def test_log_has_what_was_added_and_nothing_that_is_not_there() -> None:
    known = {"conversation": "c-1", "role": "main", "history": "compaction:summary"}
    assert log_fields(ADDING, "t-1", None) == known | {"turn": "t-1", "added_tokens": 10, "added_share": 0.25}
    assert log_fields(QUIET, "", Note.CALM) == known | {"note": "calm"}


def test_facts_are_counted_where_some_are_told() -> None:
    fact_choice = FactChoice(("fact: port: 1\n", "fact: host: a\n"), ("f-1", "f-2"), ("new", "new"))
    telling_two = replace(ADDING, fact_choice=fact_choice)
    assert named(headers_of(telling_two, "", None))["facts"] == "2" and log_fields(telling_two, "", None)["facts"] == 2
    silent = replace(ADDING, fact_choice=FactChoice())
    assert "facts" not in named(headers_of(silent, "", None)) and "facts" not in log_fields(silent, "", None)
