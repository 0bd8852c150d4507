"""
Probes: questions with a known answer, made from stored messages by rule and without a model.

A probe takes a rare stretch of one sentence as its answer (a number, a date, an identifier, a name, the value of a
fact) and asks for it with three other words of that sentence. People repeat about as many: of LoCoMo's and BEAM's
questions half share at most three words that carry meaning with the best message of their evidence.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from palimpsest.core.archive.chunking import TIMES, identifiers, names, query_terms
from palimpsest.core.facts.extraction import proposals
from palimpsest.core.recall.utterance import QUESTION_MARKS, language
from palimpsest.domain.frozen import frozen

PIECE_CHARS = 4000  # of a long text, around a place taken by chance: what is probed costs the same however long it is
LEAST_CHARS = 20  # of a sentence: shorter ones tell too little to be asked about
MOST_CHARS = 600  # longer ones are tables and dumps
CUE_WORDS = 3  # that a question repeats: the median of LoCoMo (2.7 on average; BEAM: 4, 4.3)
MOST_ANSWER_CHARS = 60  # a longer word is data, which nobody asks for

# How a person asks again, by language; others are not probed.
FRAMES = {
    "en": "What did I say about {}?",
    "de": "Was hatte ich noch mal über {} gesagt?",
    "fr": "Qu'est-ce que j'avais dit sur {} ?",
    "es": "¿Qué había dicho yo sobre {}?",
    "it": "Che cosa avevo detto su {}?",
    "pt": "O que eu tinha dito sobre {}?",
    "nl": "Wat had ik ook alweer gezegd over {}?",
    "ru": "Что я говорил про {}?",
}

_SENTENCE = re.compile(r"[^\n]+?(?:[.!?](?=\s)|(?=\n)|$)")
_REDACTED = re.compile(r"\[redacted:[^\]\s]{1,40}\]")
_WORD = re.compile(r"[^\s\"'`()<>\[\]{},;|=]+")
_SIGNS = ".:!?*_-"

Choose = Callable[[int], int]
"""A number from 0 to below its argument, by chance."""


@frozen
class Answer:
    """text[start:stop] of a message, in a sentence of it. `is_redacted`: what was said there was never stored."""

    start: int
    stop: int
    text: str
    sentence: str
    is_redacted: bool = False


@frozen
class Probe:
    """A question, and the one place of a message that answers it."""

    question: str
    answer: Answer


def answers(text: str, role: str, choose: Choose) -> list[Answer]:
    """
    What a message could be asked for: stretches of its statements that name one thing.

    Args:
        text: of the message; of a long one a piece is looked at, taken by chance.
        role: who says it.
    """
    first = choose(max(len(text) - PIECE_CHARS, 0) + 1)
    found = []
    for sentence in _SENTENCE.finditer(text[first : first + PIECE_CHARS]):
        said, at = sentence[0], first + sentence.start()
        is_statement = LEAST_CHARS <= len(said) <= MOST_CHARS and not said.rstrip().endswith(QUESTION_MARKS)
        if is_statement and language(said) in FRAMES:
            found += [
                Answer(at + start, at + stop, said[start:stop], said, bool(_REDACTED.fullmatch(said[start:stop])))
                for start, stop in dict.fromkeys(_stretches(said, role))
            ]
    return found


def probe(answer: Answer, choose: Choose) -> Probe | None:
    """The question for an answer; None: its sentence has too few other words to ask by."""
    own = {*query_terms(answer.text)}
    rest = answer.sentence.replace(answer.text, " ")
    words = [word.strip(_SIGNS) for word in _WORD.findall(_REDACTED.sub(" ", rest))]
    cue = [*dict.fromkeys(word for word in words if _is_cue(word, own))]
    if len(cue) < CUE_WORDS:
        return None
    while len(cue) > CUE_WORDS:
        cue.pop(choose(len(cue)))
    return Probe(FRAMES[language(answer.sentence)].format(" ".join(cue)), answer)


def _is_cue(word: str, own: set[str]) -> bool:
    """Whether a word may stand in a question: it carries meaning, and gives nothing of the answer away."""
    found = query_terms(word)
    return len(word) <= MOST_ANSWER_CHARS and bool(found) and own.isdisjoint(found)


def _stretches(said: str, role: str) -> Iterator[tuple[int, int]]:
    """The spans of what could be asked for: redacted values, facts, and words that name one thing."""
    for mark in _REDACTED.finditer(said):
        yield mark.span()
    for fact in proposals(said, role):
        at = said.find(fact.value)
        if at >= 0 and len(fact.value) <= MOST_ANSWER_CHARS:
            yield at, at + len(fact.value)
    exact, named = frozenset(identifiers(said)), frozenset(names(said))
    for word in _WORD.finditer(_REDACTED.sub(lambda mark: " " * len(mark[0]), said)):
        plain = word[0].strip(_SIGNS)
        start = word.start() + word[0].find(plain)
        if 1 < len(plain) <= MOST_ANSWER_CHARS and _names_one_thing(plain, exact, named):
            yield start, start + len(plain)


def _names_one_thing(word: str, exact: frozenset[str], named: frozenset[str]) -> bool:
    return word in named or word.lower() in exact or word.lower() in TIMES or any(sign.isdigit() for sign in word)
