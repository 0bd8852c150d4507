from dataclasses import replace

import pytest
from palimpsest.core.recall.trail import NOTES, Gap, StatementMatch, Trace, as_json, cause_of, last_stage, stages
from palimpsest.domain import Json, Note

SAID = StatementMatch(7, "user", 3, "the exporter listens on port 9417")
WHOLE = Trace(
    turn=9,
    turns=9,
    held=(SAID,),
    passages=1,
    is_lost=True,
    question="which port?",
    place=1,
    candidates=20,
    probability=0.9,
    helps=0.8,
    least_help=0.4,
    is_packed=True,
    blocks=(9,),
)


def named(trace: Trace) -> dict[str, bool | None]:
    return {stage.name: stage.passed for stage in stages(trace)}


def test_what_a_block_quotes_and_the_request_lacks_has_been_said() -> None:
    assert named(WHOLE) == {"archived": True, "indexed": True, "said": True}
    assert last_stage(stages(WHOLE)) is None
    assert as_json(WHOLE)["lost_at"] is None


def test_what_nobody_said_is_a_write_gap() -> None:
    end = last_stage(stages(Trace(set_aside=2, erased=1)))
    assert end is not None
    assert (end.name, end.gap) == ("archived", Gap.WRITE)
    assert "2 could not be stored" in end.detail
    assert "1 were erased" in end.detail


def test_what_another_conversation_holds_is_out_of_reach() -> None:
    end = last_stage(stages(Trace(elsewhere=("c-2",))))
    assert end is not None
    assert (end.name, end.gap) == ("archived", Gap.RETRIEVAL)
    assert "c-2" in end.detail
    assert "memory.reach" in end.advice


def test_what_another_conversation_holds_within_reach_counts_as_lost() -> None:
    passed = stages(replace(WHOLE, blocks=(), home="c-2", is_lost=False))
    assert "c-2" in passed[0].detail and passed[2].passed and "another conversation" in passed[2].detail


UNSAID = replace(WHOLE, blocks=())


@pytest.mark.parametrize(
    ("trace", "name"),
    [
        (replace(UNSAID, is_retired=True), "indexed"),
        (replace(UNSAID, passages=0), "indexed"),
        (replace(UNSAID, is_visible=True), "lost"),
        (replace(WHOLE, is_visible=True, is_lost=False), None),
        (replace(UNSAID, is_lost=False), "lost"),
        (replace(UNSAID, is_later=True), "lost"),
        (replace(UNSAID, note=Note.PRESSURE), "asked"),
        (replace(UNSAID, place=0), "ranked"),
        (replace(UNSAID, helps=0.2), "likely"),
        (replace(UNSAID, is_packed=False, cut="no room left"), "packed"),
        (UNSAID, "said"),
    ],
)
def test_a_trail_ends_at_the_first_stage_that_fails(trace: Trace, name: str | None) -> None:
    end = last_stage(stages(trace))
    assert (end.name if end else None) == name
    assert end is None or end.advice


def test_a_passage_that_waits_for_its_vector_is_found_by_words() -> None:
    indexed = stages(replace(UNSAID, waiting=1))[1]
    assert indexed.passed
    assert "by words alone" in indexed.detail


def test_a_turn_that_asked_something_else_does_not_end_a_trail() -> None:
    asked = next(
        stage for stage in stages(replace(UNSAID, asks_otherwise=True, note=Note.CALM)) if stage.name == "asked"
    )
    assert asked.passed
    assert "something else" in asked.detail


@pytest.mark.parametrize("note", [note for note in Note if note is not Note.READ_ONLY])
def test_every_note_says_why_and_what_to_do(note: Note) -> None:
    assert all(NOTES[note])


SHUT, OPEN = ({"admitted": admitted, "reason": "all are visible", "helps": 0.0} for admitted in (False, True))


@pytest.mark.parametrize(
    ("record", "says"),
    [
        (
            {"gate": SHUT | {"helps": 0.2, "reason": "helps with a probability of 0.20; 0.30 is required"}},
            "likely enough",
        ),
        ({"gate": SHUT | {"reason": "helps with a probability of 0.00; 0.30 is required"}}, "likely enough"),
        ({"gate": SHUT}, "all are visible"),
        ({"gate": OPEN, "candidates": [{"why": "the same text is in the block already"}]}, "in the block already"),
        ({"gate": OPEN, "candidates": []}, "sees it"),
        ({}, "asks for nothing"),
    ],
)
def test_why_nothing_was_relevant_is_the_true_cause(record: Json, says: str) -> None:
    why, advice = cause_of(record | {"note": "nothing-relevant"})
    assert says in why and advice and ("generosity" in advice) is ("enough" in why)


def test_json_says_the_gap_and_the_stage() -> None:
    told = as_json(replace(UNSAID, helps=0.2))
    assert (told["lost_at"], told["gap"], told["turn"]) == ("likely", "retrieval", 9)
    assert [stage["stage"] for stage in told["stages"]][:3] == ["archived", "indexed", "lost"]
