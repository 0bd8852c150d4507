"""
Needs that a request does not name: what may harm somebody where food or health is in question, and the form of texts.

Neither words nor meaning lead from "plan a week of dinners for us" to "I don't eat meat any more", or from "a notice
for the door" to "no exclamation marks in anything for customers", and whoever forgets those does harm. What leads there
is the kind of request: it is told by its nearness to a few examples, and what was said by its words. English alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum
from itertools import chain

import numpy as np

from palimpsest.core.recall.precautions import concerns_food, concerns_health
from palimpsest.core.recall.ranking import Floats

PRECAUTIONS_TOLD = 3  # of one request, the nearest to it
# Cosine of a precaution to the request, by whether the window is full: of 110 that are needed 9 are below.
LEAST_NEAR = {False: 0.05, True: 0.2}
# More must be the likeness of a request in a full window, where what slid out would come again, to 4 more of 78 topics,
# and of a question after who or when, to food.
LIKENESS_MARGIN = 0.05
NEAREST = 3  # of the examples, whose mean cosine is the likeness of a request


class Need(Enum):
    """What a kind of request may need, with examples of such requests, separated by bars."""

    FOOD = (
        "What can I cook for dinner tonight? | Give me a recipe for a cake. | Plan our meals for the week. | "
        "Which restaurant should we book for lunch? | What food should I bring to the party? | What should I "
        "order to eat? | Make a shopping list of groceries. | A snack to pack for the kids. | Suggest a dish or a "
        "dessert for guests. | What should I try to eat and drink on holiday?"
    )
    HEALTH = (
        "Can I take ibuprofen for my headache? | Which painkiller can I buy? | What can I take for a cold? | Make "
        "me a workout plan. | Is this supplement safe for me? | What helps against hay fever? | How should I "
        "prepare for a marathon? | I want to start yoga, diving or swimming. | Which tablets help against "
        "seasickness? | I hurt my ankle, what can I do? | Is this vaccine or treatment all right for me?"
    )
    TEXT = (
        "Write an email to my boss. | Draft a post for Facebook. | Write a notice for the door. | Reply to this "
        "customer. | A letter to the council about the road. | Word an invitation to the party. | Send a short "
        "message to the team. | Write an advert for the job. | A speech for the wedding. | An announcement to all "
        "members about the meeting. | Tell them in a message that we are closed on Monday. | A text for our "
        "newsletter. | Cover letter for this job. | A caption for my photo. | Ask my professor for an extension. "
        "| A thank-you note to my hosts. | Answer this complaint politely. | A short bio of me for the programme. "
        "| Minutes of the meeting. | A description of the house for the listing. | A reminder to pay the invoice. "
        "| A few words for her birthday card. | Instructions for the staff on one page."
    )


_FORM = re.compile(
    r"(?:^|[.!?] )no \w+s(?=[.!?]|$)|\b(?:never (?:write|mention|say|put|promise|call|use the words?)"
    r"|(?:write|written|draft) (?:\w+ )?for (?:me|us|my|our)|goes (?:out )?to \w+|sign(?:ed|ing)?|signature"
    r"|exclamation|capitals?|uppercase|lower ?case|emojis?|comma|dash(?:es)?|spell(?:s|ing|ed)?|sentences?"
    r"|paragraphs?|bullet points?|greetings?|salutation|regards|subject line|words|formal(?:ly)?|informal(?:ly)?|tone"
    r"|jargon|slang|buzzwords?|hashtags?|abbreviations?|contractions|pronouns|address (?:her|him|them|me)|first names?"
    r"|surnames?|(?:my|our|your|all|in|any|every) (?:e-?mails?|mails?|letters?|messages?|notices?|posts?|texts?|ads?"
    r"|listings?|stuff|captions?|speech(?:es)?|memos?|newsletters?|bios?|applications?))\b"
)
_BY_NEED = [need.value.split(" | ") for need in Need]
# A single question after who, when or how many asks for no text, however near to one it is, but may be about one.
_ASKS_FACT = re.compile(
    r"(?i)\W{0,9}(?:who|where|when(?! you| i\b| we\b)|how (?:many|much|far)|(?:which|how long)"
    r"(?![^.!?\n]*\b(?:letter|text|e-?mail|message|tone|greeting|write|words?)\b))\b[^.!?\n]*[.!?\s]*$"
)
_ASKS_OF_PEOPLE = re.compile(r"(?i)\W{0,9}(?:who|when)\b[^.!?\n]*[.!?\s]*$")  # seldom of food: "who collects the kids?"
_ASKS_TEXT = re.compile(  # outright: of 1,699 messages of ShareGPT one, of 1,253 of BEAM one
    r"(?i)(?:^|[.!?:,] +|\b(?:please|(?:can|could|would) you|and|then|now) )(?:e-?mail (?!address)\w"
    r"|(?:write|reply|answer) (?:back )?to (?!(?:a|the) (?:file|disk|log))|(?:write|draft|send) (?:[\w']+ ){0,3}"
    r"(?:e-?mail|letter|quote|offer|invoice|reply|reminder|complaint|invitation|notice|newsletter|speech|blurb|ad)\b)"
)
EXAMPLES = (*chain.from_iterable(_BY_NEED),)
# Cosines of MiniLM. Of requests with such a need, by an author who knew no example, these find 29 of 30 about food,
# 12 of 20 about health and 12 of 25 for a text (with the words above 13), and something in 2 of 100 that need nothing.
LEAST_LIKENESS = {Need.FOOD: 0.36, Need.HEALTH: 0.3, Need.TEXT: 0.3}
LEAST_OF_FOOD = 0.25  # of dislikes: those of food have .37 to .55, others .06 to .20


def needs_of(text: str, question: Floats, examples: Floats, *, is_full: bool = False) -> dict[Need, Floats]:
    """
    What a request may need, with the vectors of its examples; in a full window only what it surely does.

    Args:
        question: the unit vector of its text, (d,).
        examples: the unit vectors of `EXAMPLES`, (n, d).
    """
    by_need = zip(Need, np.split(examples, np.cumsum([*map(len, _BY_NEED)])[:-1]), strict=True)
    least = {need: at + LIKENESS_MARGIN * is_full for need, at in LEAST_LIKENESS.items()}
    if _ASKS_FACT.match(text):
        least[Need.TEXT] = np.inf
    elif _ASKS_TEXT.search(text):
        least[Need.TEXT] = -1.0
    if _ASKS_OF_PEOPLE.match(text):
        least[Need.FOOD] += LIKENESS_MARGIN
    return {need: each for need, each in by_need if _likeness(question, each) >= least[need]}


def concerns(precaution: str, meaning: Floats, needs: Mapping[Need, Floats]) -> bool:
    """Whether a precaution with this unit vector concerns what a request may need: a dislike may be of anything."""
    if Need.HEALTH in needs and concerns_health(precaution):
        return True
    food = needs.get(Need.FOOD)
    return food is not None and concerns_food(precaution, dislikes=_likeness(meaning, food) >= LEAST_OF_FOOD)


def _likeness(one: Floats, examples: Floats) -> float:
    return float(np.sort(examples @ one)[-NEAREST:].mean())


def is_about_form(wish: str) -> bool:
    """Whether a lasting wish says how texts for other people are to be written."""
    return bool(_FORM.search(wish.lower()))
