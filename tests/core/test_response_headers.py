"""What the client and the log are told of a request."""

from __future__ import annotations

from dataclasses import replace

from palimpsest.core.decision import Decision
from palimpsest.core.facts.choice import FactChoice
from palimpsest.core.reading import Reading
from palimpsest.core.response_headers import cost_fields, headers_of, log_fields, undecided_headers
from palimpsest.domain import (
    Added,
    Block,
    BlockKind,
    Chat,
    Cost,
    Diagnosis,
    Event,
    Lineage,
    Note,
    Pressure,
    Rebuild,
    Role,
    Shape,
    Speaker,
    Tier,
    Usage,
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


def test_the_log_says_what_the_provider_counted_and_leaves_out_what_it_did_not() -> None:
    cost = Cost(Added(0, 0), usage=Usage(900, 10, cache_read_tokens=0), rebuild=Rebuild.OURS, rebuilt_tokens=300)
    counted = {"input_tokens": 900, "cache_read_tokens": 0, "cache_rebuild": "after-change:ours", "rebuilt_tokens": 300}
    assert cost_fields(cost) == counted
    assert cost_fields(Cost(Added(0, 0))) == {}


def test_the_log_has_the_share_of_what_was_added_to_a_thousandth() -> None:
    assert log_fields(replace(ADDING, own_tokens=3_000), "t-1", None)["added_share"] == 0.003
