"""An answer says in its headers what memory made of the request, and the log says it in the same words."""

from __future__ import annotations

from dataclasses import replace

from proxy.core.block.placement import Replay
from proxy.core.decision import Decision
from proxy.core.reading import Reading
from proxy.core.response_headers import headers_of, log_fields, undecided_headers
from proxy.domain import (
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
    StoredBlock,
    Tier,
)

QUIET = Decision(
    Reading(Chat((), "m", b"", {}), (), 1000),
    Shape(),
    Diagnosis(Speaker("acme"), "c-1", Lineage(Event.APPEND, Role.MAIN), Pressure(1000, 3000, 100, 1 / 3, Tier.CALM)),
    own_tokens=1000,
)
BLOCK = Block("<frame>The port is 8731.</frame>", BlockKind.RECALL, (101, 102), tokens=80)
SAYING = replace(QUIET, block=BLOCK)


def told(decision: Decision, turn_id: str = "t-1", note: Note | None = None) -> dict[str, str]:
    return {
        name.decode().removeprefix("x-palimpsest-"): value.decode()
        for name, value in headers_of(decision, turn_id, note)
    }


def test_what_was_decided_is_said_and_what_does_not_apply_is_left_out() -> None:
    assert told(QUIET) == {
        "conversation": "c-1",
        "turn": "t-1",
        "role": "main",
        "event": "append",
        "pressure": "0.33",
        "added-tokens": "0",
        "added-share": "0.00",
        "recalled": "0",
    }
    assert "turn" not in told(QUIET, turn_id="") and told(QUIET, note=Note.CALM)["note"] == "calm"


def test_blocks_of_before_cost_tokens_and_only_the_new_one_counts_as_recalled() -> None:
    again = Replay(((0, StoredBlock(100, replace(BLOCK, tokens=20))),))
    both = told(replace(SAYING, replayed=again))
    assert (both["added-tokens"], both["added-share"], both["recalled"]) == ("100", "0.10", "2")
    assert told(replace(QUIET, replayed=again))["recalled"] == "0"


def test_of_a_request_that_passed_undecided_only_that_is_said() -> None:
    assert dict(undecided_headers(Note.DEADLINE)) == {
        b"x-palimpsest-added-tokens": b"0",
        b"x-palimpsest-recalled": b"0",
        b"x-palimpsest-note": b"deadline",
    }
    assert dict(undecided_headers(Note.FAULT, "t-7"))[b"x-palimpsest-turn"] == b"t-7"


def test_the_log_line_names_the_same_and_holds_no_word_of_a_memory() -> None:
    line = {"request": "t-1", "conversation": "c-1", "role": "main", "history": "append"}
    assert log_fields(QUIET, "t-1", None) == line
    assert log_fields(QUIET, "t-1", Note.CALM) == {**line, "note": "calm"}
    assert "request" not in log_fields(QUIET, "", None)
    assert log_fields(SAYING, "t-1", None) == {**line, "added_tokens": 80, "added_share": 0.08}
