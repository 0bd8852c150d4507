"""
Update queues: for each item the most similar newer ones, and whether one of them replaces it.

LightMem (section 3.4) compares each entry offline with the k most similar entries that are newer, all queues at once,
and lets a model update, delete or keep it. Here rules judge: what is said again is merged into its repeat, a value of a
slot that holds one value gives way to a newer value, and everything else is left. Nothing is concluded from likeness
alone, because likely errors of a rule are worse than one item too many.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from palimpsest.core.archive.chunking import names, query_terms, terms
from palimpsest.core.facts.extraction import proposals
from palimpsest.domain.frozen import frozen

Floats = npt.NDArray[np.floating[Any]]

QUEUE_ITEMS = 10  # k; LightMem measures 5 to 20 alike
LEAST_LIKENESS = 0.5  # cosine: what is less alike is about something else
SHARED_TERMS = 0.85  # of two texts that say the same in a few other words
SAME_MEANING = 0.9  # cosine, for those
LEAST_WORDS = 3  # of meaning, for texts that are not the very same: "thanks, Mel" and "that's great, Mel" are not
HASHED_TERMS = 512  # dimensions of a vector of words, where no model gives one
ROWS_AT_ONCE = 256  # compared with all newer ones: 10 MB of 10,000

_EXACT = re.compile(r"\w*\d[\w.,:/@-]*\w|\d|\b(?:not|no|never|none|nor|without|cannot|\w+n't)\b", re.IGNORECASE)
_SPEAKER = re.compile(r"^([A-Z]\w+)(?: [A-Z]\w+)?: ")  # "Ann: ...", as transcripts begin a line


@frozen
class Entry:
    """
    An item as it is compared.

    `speaker` is who says it; `said` are all its terms, `words` those of meaning; `exact` what must be the same in a
    repeat: numbers, names and negations; `slots` the values that it states, by subject and slot, of slots that hold one
    value.
    """

    id: int
    speaker: str
    said: frozenset[str]
    words: frozenset[str]
    exact: frozenset[str]
    slots: Mapping[tuple[str, str], str]


@frozen
class Verdict:
    """What becomes of an item beside a newer one, `heir`, and why, in words for the log."""

    item: int
    heir: int
    what: Literal["merged", "superseded"]
    why: str


def entry_of(id: int, text: str, role: str) -> Entry:
    """What the rules compare of an item: its terms, exact names and values of slots, which only users state."""
    opening = _SPEAKER.match(text)
    said = text[opening.end() :] if opening else text
    speaker = f"{role}:{opening[1].lower() if opening else ''}"
    exact = {found.lower() for found in _EXACT.findall(said)} | {name.lower() for name in names(said)}
    slots = {
        (f"{speaker} {fact.subject}", fact.slot): fact.value
        for fact in proposals(said, role)
        if fact.is_single and fact.slot
    }
    every = frozenset(terms(said))
    return Entry(id, speaker, every, frozenset(query_terms(said)), frozenset(exact), slots)


def key_text(text: str, question: str) -> str:
    """What an item is embedded by: what it answers, and what it says."""
    return f"{question} {text}" if question else text


def word_vector(entry: Entry) -> Floats:
    """A unit vector of an item's words, for likeness where no model gives one: (HASHED_TERMS,)."""
    vector = np.zeros(HASHED_TERMS, np.float32)
    for word in entry.words:
        vector[_hashed(word)] += 1
    return vector / max(float(np.linalg.norm(vector)), 1e-9)


def queues(vectors: Floats, first: int, last: int, length: int = QUEUE_ITEMS) -> list[list[tuple[int, float]]]:
    """
    The update queues of some items.

    Args:
        vectors: of n items, oldest first, unit length, (n, d).
        first, last: of which items; `last` is behind the last of them.

    Returns:
        For each of them the rows of the most similar newer items and their cosines, the most similar first.
    """
    found: list[list[tuple[int, float]]] = []
    for start in range(first, last, ROWS_AT_ONCE):
        stop = min(start + ROWS_AT_ONCE, last)
        likeness = vectors[start:stop] @ vectors[start:].T
        for row, near in enumerate(likeness):
            newer = near[row + 1 :]
            some = np.flatnonzero(newer >= LEAST_LIKENESS)
            some = some[np.argsort(-newer[some], kind="stable")[:length]]
            found.append([(start + row + 1 + int(at), float(newer[at])) for at in some])
    return found


def same_slot(entries: Sequence[Entry]) -> dict[int, int]:
    """By row of an item that states the value of a slot: the row of the next one that states this slot."""
    following: dict[int, int] = {}
    next_row: dict[tuple[str, str], int] = {}
    for row in range(len(entries) - 1, -1, -1):
        stated = [next_row[slot] for slot in entries[row].slots if slot in next_row]
        if stated:
            following[row] = min(stated)
        for slot in entries[row].slots:
            next_row[slot] = row
    return following


def verdict(older: Entry, newer: Entry, likeness: float) -> Verdict | None:
    """Whether the older of two items is merged or superseded, by their cosine; None: neither."""
    if is_repeat(older, newer, likeness):
        return Verdict(older.id, newer.id, "merged", f"said again, likeness {likeness:.2f}")
    replaced = [slot for slot, value in older.slots.items() if _is_other(value, newer.slots.get(slot))]
    if replaced and len(replaced) == len(older.slots):
        return Verdict(older.id, newer.id, "superseded", f"a newer value of: {', '.join(slot for _, slot in replaced)}")
    return None


def is_repeat(older: Entry, newer: Entry, likeness: float) -> bool:
    """Whether two items say the same: in the same words, or in nearly the same with the same meaning."""
    if (older.speaker, older.exact) != (newer.speaker, newer.exact) or not older.words:
        return False
    if older.said == newer.said:
        return True
    if min(len(older.words), len(newer.words)) < LEAST_WORDS:
        return False
    if older.words == newer.words:
        return True
    shared = len(older.words & newer.words) / len(older.words | newer.words)
    return shared >= SHARED_TERMS and likeness >= SAME_MEANING


def _is_other(value: str, newer: str | None) -> bool:
    return newer is not None and terms(value) != terms(newer)


def _hashed(word: str) -> int:
    """A dimension for a word, the same in every process (FNV-1a)."""
    number = 0x811C9DC5
    for byte in word.encode():
        number = (number ^ byte) * 0x01000193 & 0xFFFFFFFF
    return number % HASHED_TERMS
