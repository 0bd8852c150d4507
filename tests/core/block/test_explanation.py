"""What is stored of a decision answers why something was said or not, and repeats the text of no memory."""

from __future__ import annotations

from dataclasses import replace

import orjson
from palimpsest.core.block.explanation import CANDIDATES, CUT_CANDIDATES, explanation
from palimpsest.core.facts.choice import FactChoice
from palimpsest.domain import (
    Added,
    Block,
    BlockKind,
    Budget,
    Candidate,
    Diagnosis,
    Event,
    Json,
    Lineage,
    Memory,
    Note,
    Plan,
    Pressure,
    Query,
    Recalled,
    Role,
    Speaker,
    Teller,
    Tier,
)

QUIET = Diagnosis(
    Speaker("acme"),
    "c-1",
    Lineage(Event.APPEND, Role.MAIN, evidence=("two answers are in place",)),
    Pressure(prompt_tokens=1000, window_tokens=3000, reply_tokens=100, ratio=1 / 3, tier=Tier.CALM),
)
ASKING = Diagnosis(
    QUIET.speaker,
    "c-1",
    QUIET.lineage,
    QUIET.pressure,
    kind=BlockKind.RECALL,
    budget=Budget(1200, 400),
    query=Query("acme", "c-1", "Which port?"),
)
BLOCK = Block("<frame>The port is 8731.</frame>", BlockKind.RECALL, (101,), tokens=9)


def candidate(id: int) -> Candidate:
    memory = Memory(id, 100 + id, "c-2", 4, "user", "The port is 8731.", 0.0, start=7, stop=24)
    return Candidate(memory, 2 / 3, {"words": (1, 5.43219)}, probability=0.98765)


def recalled(count: int) -> Recalled:
    return Recalled(tuple(map(candidate, range(1, count + 1))), True, "the words", elapsed_ms=3.14159, helps=0.87654)


def test_the_plan_stands_with_its_question_so_that_both_are_erased() -> None:
    planned = replace(recalled(1), plan=Plan(("which port is it",), ((1.0, 2.0),), Teller.USER))
    query = explanation(ASKING, None, planned, BLOCK, {})["query"]
    assert query["plan"] == {"questions": ["which port is it"], "periods": [[1.0, 2.0]], "teller": "user"}


def told(*, count: int = 1, cut: dict[int, str] | None = None, block: Block | None = BLOCK) -> Json:
    return explanation(ASKING, None, recalled(count), block, cut or {})


def test_of_a_request_without_a_look_up_it_says_what_happened_and_why_nothing_was_said() -> None:
    assert explanation(QUIET, Note.CALM, None, None, {}) == {
        "event": "append",
        "role": "main",
        "evidence": ["two answers are in place"],
        "pressure": {"prompt_tokens": 1000, "window_tokens": 3000, "ratio": 0.3333, "tier": "calm"},
        "note": "calm",
        "kind": None,
    }


def test_what_was_looked_for_and_how_much_could_be_said_stand_beside_the_verdict_of_the_gate() -> None:
    found = told()
    assert (found["kind"], found["note"]) == ("recall", None)
    assert (found["query"], found["budget"]) == (
        {"text": "Which port?", "least_help": 0.0},
        {"chars": 1200, "passage_chars": 400},
    )
    assert found["gate"] == {"admitted": True, "reason": "the words", "helps": 0.8765}
    assert (found["lexical_only"], found["elapsed_ms"]) == (False, {"recall": 3.14})


def test_passages_without_a_vector_are_told_unless_there_is_no_model() -> None:
    early = replace(recalled(1), unindexed=12, eligible=16)
    found = explanation(ASKING, Note.INDEXING, early, BLOCK, {})
    assert found["unindexed"] == {"passages": 12, "of": 16} and "unindexed" not in told()
    assert "unindexed" not in explanation(ASKING, None, replace(early, lexical_only=True), BLOCK, {})


def test_each_candidate_has_its_scores_and_the_reason_why_it_was_left_out() -> None:
    first, second = told(count=2, cut={2: "no room left"})["candidates"]
    assert first == {
        "memory": 1,
        "occurrence": 101,
        "start": 7,
        "stop": 24,
        "score": 0.6667,
        "probability": 0.9877,
        "signals": {"words": [1, 5.4322]},
        "packed": True,
        "why": "",
    }
    assert (second["memory"], second["packed"], second["why"]) == (2, False, "no room left")


def test_of_what_was_left_out_only_the_nearest_misses_are_kept() -> None:
    cut = {number: "no room left" for number in range(3, CANDIDATES + 1)}
    kept = [one["memory"] for one in told(count=CANDIDATES, cut=cut)["candidates"]]
    assert kept == list(range(1, 3 + CUT_CANDIDATES))
    assert len(orjson.dumps(told(count=CANDIDATES, cut=cut))) < 3000
    last = {number: "no room left" for number in range(1, CANDIDATES)}
    assert told(count=CANDIDATES, cut=last)["candidates"][-1]["packed"], "what was packed is told wherever it stood"


def test_without_a_block_no_candidate_was_packed() -> None:
    found = told(count=2, block=None)
    assert [one["packed"] for one in found["candidates"]] == [False, False] and "block" not in found


def test_the_block_and_what_all_blocks_cost_are_counted() -> None:
    found = explanation(ASKING, None, recalled(1), BLOCK, {}, Added(90, 1000))
    assert found["block"] == {"chars": len(BLOCK.text), "tokens": 9, "occurrences": [101]}
    assert found["added"] == {"tokens": 90, "share": 0.09}


def test_no_text_of_a_memory_is_repeated_and_no_more_candidates_than_could_have_been_told() -> None:
    found = told(count=CANDIDATES + 1)
    assert len(found["candidates"]) == CANDIDATES
    assert b"8731" not in orjson.dumps(found)


def test_of_facts_it_says_which_were_told_and_why_and_how_many_were_not() -> None:
    telling = FactChoice(("fact: port: 1 (said 2026-05-02)\n",), ("f-1",), ("new",), {"told before": 2}, (("f-1", 7),))
    alone = Block("<frame>", BlockKind.FACTS, (), tokens=9, facts=telling.sources)
    found = explanation(ASKING, None, recalled(1), alone, {1: "nothing was recalled"}, None, telling)
    assert found["facts"] == {"told": [{"fact": "f-1", "why": "new"}], "left_out": {"told before": 2}}
    assert found["kind"] == "facts" and not found["candidates"][0]["packed"]
    assert "facts" not in told()
