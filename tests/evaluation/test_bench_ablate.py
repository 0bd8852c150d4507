"""Ablation: what each part of recall is worth."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from palimpsest.core.recall.ranking import WEIGHTS, Recipe
from palimpsest.evaluation import palimpsest
from palimpsest.evaluation.bench_ablate import (
    AS_IT_IS,
    BUDGETS_CHARS,
    NoModel,
    Variant,
    ask,
    compressed,
    report,
    variants,
)
from palimpsest.evaluation.datasets import Conversation, Question
from palimpsest.evaluation.score import Evidence

from tests.evaluation.told import told
from tests.remembered import WordEmbedder

TALK = replace(
    told(
        "user: Where does the ferry to Naxos leave?",
        "assistant: From gate E2 in Piraeus, at half past seven.",
        *(f"user: The weaver sold carpet number {at}." for at in range(40)),
        "user: My dentist is Doctor Ortiz in Valletta.",
    ),
    questions=(
        Question("1", "From which gate does the ferry to Naxos leave?", None, "one", ("m0", "m1")),
        Question("2", "Who said what?", None, "none"),
    ),
)
FOUND, LOST = Evidence(True, True, 1.0), Evidence(True, False, 0.5)


async def test_the_policy_as_it_is_is_asked_within_every_budget_and_others_within_one() -> None:
    async with palimpsest.opened(WordEmbedder()) as store:
        await store.write([TALK])
        usual = await ask(store, TALK, AS_IT_IS)
        other = await ask(store, TALK, Variant("candidates", "1", Recipe(candidates=1)))
    assert usual[AS_IT_IS] == [FOUND], "questions without evidence are not asked"
    assert [key for key in usual if key is not AS_IT_IS] == list(BUDGETS_CHARS)
    assert len(other) == 1


async def test_without_a_model_words_alone_are_asked() -> None:
    async with palimpsest.opened(WordEmbedder()) as store:
        await store.write([TALK])
        reader = store.reader(TALK, embedder=NoModel())
        assert (await reader.recall("Which gate, the ferry to Naxos?")).lexical_only


async def test_a_store_may_cut_its_passages_otherwise() -> None:
    long: Conversation = told("user: " + "The weaver of Naxos sold another carpet. " * 20)
    for chars, least in ((1000, 1), (300, 3)):
        async with palimpsest.opened(WordEmbedder(), window_chars=chars) as store:
            await store.write([long])
            stored = await store.reader(long).stored()
        assert len(stored) >= least
        assert max(map(len, stored)) <= chars


def test_every_signal_is_left_out_once() -> None:
    without = [name for v in variants() for name, weight in v.recipe.weights.items() if weight == 0]
    assert sorted(without) == sorted(WEIGHTS)


async def test_exact_vectors_are_what_the_others_are_compared_with() -> None:
    embedder: Any = WordEmbedder()
    shares = await compressed(embedder, TALK)
    assert shares["fp32"] == [(1.0, 1.0, 0.5)], "the answer shares no word with the question"
    assert shares["1 bit, rescored"][0][0] >= shares["1 bit"][0][0]


def test_differences_are_paired_with_the_policy_as_it_is() -> None:
    worse = Variant("group", "worse")
    budgets = {chars: [FOUND, FOUND] for chars in BUDGETS_CHARS}
    told_of = report(["own"], {AS_IT_IS: [FOUND, FOUND], worse: [LOST, FOUND], **budgets}, {"fp32": [[1, 1, 1]]}, 42)
    usual, other = told_of.data["variants"]
    assert usual["difference"]["difference"] == 0
    assert other["difference"]["difference"] == pytest.approx(-0.25)
    assert (other["any"], other["all"], other["fraction"]) == (1.0, 0.5, 0.75)
    assert [held["chars"] for held in told_of.data["budgets"]] == list(BUDGETS_CHARS)
