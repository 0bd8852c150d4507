"""Needs that requests do not name, of people by whom no example was chosen (`tests/everyday/needs.json`)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import orjson
import pytest
from palimpsest.core.archive.chunking import WARNS, WISHES, judged
from palimpsest.core.recall.needs import EXAMPLES, Need, is_about_form, needs_of
from palimpsest.memory.embedding.encoder import Encoder, load_encoder
from palimpsest.memory.embedding.model import chosen_model
from palimpsest.settings.policy import ModelPolicy

SAID = Path(__file__).parents[2] / "everyday" / "needs.json"
KINDS = {"food": Need.FOOD, "medicine": Need.HEALTH, "form": Need.TEXT}


@pytest.fixture(scope="module")
def encoder(model_folder: Path) -> Encoder:
    return load_encoder(chosen_model(ModelPolicy()), model_folder, 1, for_questions=True)


def test_requests_of_other_people_are_known_by_their_kind_and_others_left_alone(encoder: Encoder) -> None:
    held = orjson.loads(SAID.read_bytes())
    examples = encoder.embed(EXAMPLES)

    def needs(requests: list[str]) -> list[set[Need]]:
        return [needs_of(text, of, examples) for text, of in zip(requests, encoder.embed(requests), strict=True)]

    found = {
        kind: [need in one for one in needs([p["request"] for p in held["pairs"] if p["kind"] == kind])]
        for kind, need in KINDS.items()
    }
    assert sum(found["food"]) >= 0.9 * len(found["food"])
    assert sum(found["medicine"]) >= 0.5 * len(found["medicine"])
    assert sum(found["form"]) >= 0.4 * len(found["form"])
    assert sum(map(bool, needs(held["idle"]))) <= 0.03 * len(held["idle"])


def test_most_that_other_people_tell_in_passing_is_kept_for_such_requests() -> None:
    pairs = orjson.loads(SAID.read_bytes())["pairs"]
    warned = [WARNS in judged(p["said"], "user") for p in pairs if p["kind"] != "form"]
    formed = [WISHES in judged(p["said"], "user") and is_about_form(p["said"]) for p in pairs if p["kind"] == "form"]
    assert sum(warned) >= 0.8 * len(warned)
    assert sum(formed) >= 0.5 * len(formed)


def test_a_single_question_after_who_when_or_how_many_asks_for_no_text(encoder: Encoder) -> None:
    examples = encoder.embed(EXAMPLES)
    (email,) = encoder.embed(["Write an email to my boss."])
    for text in ("who did we email about the job?", "Which PO was the foam", "How many letters did they send?"):
        assert Need.TEXT not in needs_of(text, email, examples)
    texts = ("When you write to him, ask for the price.", "What do I write to him?", "How long should my letter be?")
    for text in ("Who was it? Write to him.", *texts):
        assert Need.TEXT in needs_of(text, email, examples)


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        ("Write to the council: we can do the yews in May.", True),
        ("Write a quote for Mr Pell, two days and three stumps.", True),
        ("Council refused. Email Mrs Atherton that it is 15%.", True),
        ("Please write a short reply.", True),
        ("Write to the log when the job ends.", False),
        ("Write a function that sends an offer.", False),
        ("How do you email from cron?", False),
    ],
)
def test_who_asks_outright_for_a_letter_needs_its_form_whatever_it_is_about(
    encoder: Encoder, text: str, asks: bool
) -> None:
    far, *examples = encoder.embed(["Which planet has rings?", *EXAMPLES])
    assert (Need.TEXT in needs_of(text, far, np.array(examples))) is asks


@pytest.mark.parametrize(
    ("wish", "is_of_form"),
    [
        ("we are no firm, so never write plus VAT", True),
        ("Never mention prices on the web.", True),
        ("no puns. i hate puns", True),
        ("No dogs that bite, no exceptions.", False),
        ("Never push to main, no tests ran.", False),
    ],
)
def test_what_is_never_to_be_written_and_a_whole_no_of_something_are_wishes_about_form(
    wish: str, is_of_form: bool
) -> None:
    assert is_about_form(wish) is is_of_form


def test_a_question_after_who_or_when_is_about_food_only_where_it_surely_is(encoder: Encoder) -> None:
    examples = encoder.embed(EXAMPLES)
    asked = {
        "who collects the kids on Tuesday?": set(),
        "who can bake the cake?": {Need.FOOD},
        "Where do the kids get a snack after school?": {Need.FOOD},
        "When should Leo have his next ibuprofen?": {Need.HEALTH},
        "How many ibuprofen per day for a 10 year old?": {Need.HEALTH},
    }
    for text, needs in asked.items():
        found = needs_of(text, encoder.embed([text])[0], examples)
        assert found.keys() & {Need.FOOD, Need.HEALTH} == needs, text
