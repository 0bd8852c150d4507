"""
Chats in which facts are told, questions about them, and the words by which a right answer is known.

Read are the conversations of `datasets.py`, as far as their questions have an answer and evidence, and two JSON forms:

    {"facts": [{"text", "key", "question"}], "topics": [text]}
    {"sets": {LANGUAGE: {"facts": [{"fact", "question", "kind"}], "filler": [text]}}}
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

from palimpsest.core.archive.chunking import query_terms
from palimpsest.domain import Json
from palimpsest.evaluation.datasets import Conversation, DatasetError, read, spread
from palimpsest.evaluation.score import SAYS_LITTLE, UNANSWERED, normalised

OWN_TERMS = 2  # of a fact's own words in an answer: one alone is often guessed
NOT_BY_WORDS = frozenset({"instruction"})  # whether a wish was followed cannot be seen from words
NOT_NOW = frozenset({"temporal"})  # a running proxy dates messages by when they came, the data by another day
ACKNOWLEDGED = "All right."  # the assistant of a chat that comes without answers


@dataclass(frozen=True, slots=True)
class Key:
    """
    What a right answer holds: `literal` if there is one, else `needed` of the `terms`.

    `reference` is what token F1 and BLEU compare an answer with.
    """

    reference: str
    terms: frozenset[str]
    needed: int
    literal: str = ""

    def holds(self, answer: str) -> bool:
        """Whether an answer is right."""
        if self.literal:
            return self.literal.casefold() in answer.casefold()
        return len(self.terms.intersection(query_terms(answer))) >= self.needed


@dataclass(frozen=True, slots=True)
class FactQuestion:
    """One question. `gold` are indexes of the messages that hold its answer."""

    text: str
    kind: str
    gold: tuple[int, ...]
    key: Key


@dataclass(frozen=True)
class Talk:
    """A chat of user and assistant, in the form of a chat request, and what is asked about it."""

    name: str
    messages: tuple[Json, ...]
    asked: tuple[FactQuestion, ...]

    def text(self, at: int) -> str:
        """The text of one message."""
        return str(self.messages[at].get("content") or "")

    @cached_property
    def turns(self) -> tuple[int, ...]:
        """Indexes of the assistant's messages that follow one of the user's: a request ends before each."""
        roles = [message["role"] for message in self.messages]
        return tuple(at for at in range(1, len(roles)) if roles[at] == "assistant" and roles[at - 1] == "user")


def talks(path: Path, answers: Sequence[str], limit: int, languages: Sequence[str], seed: int) -> list[Talk]:
    """
    The chats of one file.

    Args:
        answers: what the assistant says in chats that come as lists of facts; none: `ACKNOWLEDGED`.
        limit: questions of each chat, taken evenly; 0: all.
        languages: of the sets; none: all.
        seed: of the order in which facts are told.

    Raises:
        DatasetError: it cannot be read.
    """
    if path.suffix != ".json":
        return [_of_conversation(conversation, limit) for conversation in read(path)]
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        if "sets" not in told:
            facts = [(f["text"], FactQuestion(f["question"], "chat", (), literal(f["key"]))) for f in told["facts"]]
            return [_told(path.stem, facts, told["topics"], answers, limit, seed)]
        return [
            _told(f"{path.stem} {language}", [*_facts_with_questions(part)], part["filler"], answers, limit, seed)
            for language, part in told["sets"].items()
            if not languages or language in languages
        ]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as cause:
        raise DatasetError(f"reading {path}: {cause!r}; expected facts and topics, or sets of facts") from cause


def literal(key: str) -> Key:
    """A key: an answer is right that holds these characters, whatever their case."""
    return Key(key, frozenset(), 0, key)


def of_answer(answer: str) -> Key:
    """A key: an answer is right that holds all meaningful words of this one, in any order."""
    terms = frozenset(query_terms(answer))
    return Key(answer, terms, len(terms))


def of_fact(fact: str, question: str) -> Key:
    """A key: an answer is right that holds two words of the fact that the question lacks."""
    terms = frozenset(query_terms(fact)) - frozenset(query_terms(question))
    return Key(fact, terms, min(OWN_TERMS, len(terms)))


def _of_conversation(conversation: Conversation, limit: int) -> Talk:
    asked = [
        FactQuestion(question.text, question.category, conversation.gold(question), of_answer(question.answer))
        for question in conversation.questions
        if question.answer
        and question.evidence
        and question.category not in (*UNANSWERED, *NOT_NOW)
        and " ".join(normalised(question.answer)) not in SAYS_LITTLE
        and query_terms(question.answer)
    ]
    return Talk(conversation.id, tuple(said.raw for said in conversation.messages), tuple(spread(asked, limit)))


def _facts_with_questions(part: Mapping[str, Any]) -> Iterator[tuple[str, FactQuestion]]:
    for told in part["facts"]:
        if told["kind"] not in NOT_BY_WORDS:
            key = of_fact(told["fact"], told["question"])
            yield told["fact"], FactQuestion(told["question"], told["kind"], (), key)


def _told(
    name: str,
    facts: Sequence[tuple[str, FactQuestion]],
    topics: Sequence[str],
    answers: Sequence[str],
    limit: int,
    seed: int,
) -> Talk:
    """A chat that tells facts, with other talk in between and at the end."""
    if not facts or not topics:
        raise ValueError("no facts, or nothing else to talk about")
    order = Random(seed).sample(range(len(facts)), len(facts))
    texts = iter(_repeated(answers or [ACKNOWLEDGED]))
    others = iter(_repeated(topics))
    messages: list[Json] = []
    asked = []

    def turn(text: str) -> None:
        messages.extend(({"role": "user", "content": text}, {"role": "assistant", "content": next(texts)}))

    for at in order:
        turn(next(others))
        fact, question = facts[at]
        asked.append(FactQuestion(question.text, question.kind, (len(messages),), question.key))
        turn(fact)
    for _ in range(2):
        turn(next(others))
    return Talk(name, tuple(messages), tuple(spread(asked, limit)))


def _repeated(texts: Iterable[str]) -> Iterator[str]:
    """Each text, then each again with a number, so that no two messages are the same."""
    every = list(texts)
    yield from every
    for number in count(2):
        yield from (f"{text} ({number})" for text in every)
