"""Whether answers are lost when memory is written, or when it is read."""

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from dataclasses import replace

import pytest
from palimpsest.evaluation import bench_diagnose
from palimpsest.evaluation.bench_diagnose import (
    CONTAINS,
    F1,
    SPANS,
    TURNS,
    Scores,
    answerable,
    damage,
    measure,
    report,
    tokens_of,
    write_budgets,
)
from palimpsest.evaluation.datasets import Conversation, Question
from palimpsest.evaluation.filling import Piece
from palimpsest.evaluation.model import Model
from palimpsest.evaluation.writing import by_chance, token_count

from tests.evaluation.baselines.asking import asking
from tests.evaluation.told import told
from tests.remembered import WordEmbedder

NAMES = [f"Lighthouse{at:02}" for at in range(40)]
TALK = replace(
    told(*[f"user: {name} belongs to Orsolya{at}" for at, name in enumerate(NAMES)]),
    questions=tuple(
        Question(f"q{at}", f"Who is the keeper of {name}?", f"Orsolya{at}", "single-hop", (f"m{at}",))
        for at, name in enumerate(NAMES)
    ),
)


async def everything(conversation: Conversation, tokens: int) -> list[Piece]:
    """A writer without loss: every turn is an entry."""
    return [Piece(said.text, (at,)) for at, said in enumerate(conversation.messages)]


def given(*arguments: str) -> Namespace:
    parser = ArgumentParser()
    bench_diagnose.add_arguments(parser)
    found = parser.parse_args(arguments)
    found.data, found.seed = [], 42
    return found


async def diagnosed(*arguments: str, model: Model | None = None) -> Scores:
    scores = Scores()
    await measure(TALK, answerable(TALK), everything, 0, WordEmbedder(), model, given(*arguments), scores)
    return scores


async def test_a_writer_without_loss_and_a_good_reader_have_no_gap() -> None:
    for metric in (TURNS, SPANS):
        found = (await diagnosed()).gaps(metric, 1.0)
        assert found is not None
        assert (found.write, found.retrieval, found.verdict) == (0.0, 0.0, "mixed")


@pytest.mark.parametrize("percent", [25, 50])
async def test_entries_lost_in_writing_move_the_write_gap_only(percent: int) -> None:
    found = (await diagnosed("--damage", f"write:{percent}")).gaps(TURNS, 1.0)
    assert found is not None
    assert found.write == pytest.approx(percent / 100)
    assert found.retrieval == pytest.approx(0.0)
    assert found.verdict == "write"


@pytest.mark.parametrize("percent", [25, 50])
async def test_entries_swapped_in_ranking_move_the_retrieval_gap_only(percent: int) -> None:
    found = (await diagnosed("--damage", f"retrieval:{percent}")).gaps(TURNS, 1.0)
    assert found is not None
    assert found.write == 0.0
    assert found.retrieval > 0.9
    assert found.verdict == "retrieval"


def test_spans_that_the_evidence_does_not_show_are_not_looked_for() -> None:
    question = replace(TALK.questions[0], answer="Orsolya0, 61 years old")
    (asked,) = answerable(replace(TALK, questions=(question,)))
    assert asked.spans == ("Orsolya0",)
    assert asked.evidence == "[2023-11-14]\nLighthouse00 belongs to Orsolya0"


async def test_a_reader_answers_from_each_input() -> None:
    def read(prompt: str) -> str:
        name = prompt.rpartition("keeper of ")[2].rstrip("?")
        line = next((line for line in prompt.splitlines() if line.startswith(f"{name} ")), "")
        return line or "I don't know"

    async with asking(read) as (model, sent):
        scores = await diagnosed(model=model)
        hurt = await diagnosed("--damage", "retrieval:25", model=model)
    assert (scores.mean(CONTAINS, "CSM"), scores.mean(CONTAINS, "RM")) == (1.0, 1.0)
    assert 0 < (scores.mean(F1, "RM") or 0) < 1
    assert (hurt.mean(CONTAINS, "CSM"), hurt.mean(CONTAINS, "RM")) == (1.0, 0.0)
    assert 'say "I don\'t know"' in sent[0]["messages"][0]["content"]


async def test_the_report_tells_both_gaps_and_the_verdict() -> None:
    shared = Scores()
    shared.add(TURNS, "OE", 1.0)
    shared.add(TURNS, "TFC", 0.5)
    hurt = await diagnosed("--damage", "write:25")
    told_of = report(given("--damage", "write:25"), [TALK], {("all", "2000"): hurt}, shared, await diagnosed(), [TURNS])
    scores = told_of.data["scores"][TURNS]
    assert scores["all"]["2000"]["write"] == pytest.approx(0.25)
    assert scores["all"]["2000"]["verdict"] == "write"
    assert scores["palimpsest"]["all"]["write"] == 0.0
    assert told_of.data["references"] == {TURNS: {"TFC": 0.5, "OE": 1.0}}
    assert (told_of.data["n"], told_of.data["damage"]) == (40, "write:25%")


@pytest.mark.parametrize("text", ["write", "write:0", "write:100", "read:25", "retrieval:x"])
def test_damage_is_a_stage_and_a_share(text: str) -> None:
    assert damage("retrieval:50") == bench_diagnose.Damage("retrieval", 0.5)
    with pytest.raises(ArgumentTypeError, match="write:PERCENT"):
        damage(text)


def test_a_budget_may_be_a_share_of_each_conversation() -> None:
    assert write_budgets("5000,4%") == ["5000", "4%"]
    short = replace(TALK, messages=TALK.messages[:20])
    assert tokens_of("4%", TALK) == pytest.approx(2 * tokens_of("4%", short), abs=2) and tokens_of("50", TALK) == 50
    with pytest.raises(ArgumentTypeError, match="such as 4%"):
        write_budgets("much")


async def test_messages_by_lot_stay_in_their_budget_and_are_the_same_each_time() -> None:
    first, again = await by_chance(TALK, 100), await by_chance(TALK, 100)
    assert first == again and 0 < len(first) < len(TALK.messages)
    assert sum(token_count(piece.text) for piece in first) <= 100
    assert [piece.messages for piece in first] == sorted(piece.messages for piece in first)
