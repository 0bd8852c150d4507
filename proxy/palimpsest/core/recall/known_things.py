"""
Things that a request speaks of as known: "my daughter", "our importer", "the staging server", Judge Moreau.

Who asks what to cook for his daughter does not ask who she is, and what he told of her is what the answer needs. Few
words follow "my" or "the" in a request, and where one of them is rare among what the user told, it leads there. Of what
is only "the" something, others speak too: there the user's statement has to call it that as well, or to begin with it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from itertools import chain, pairwise

from palimpsest.core.archive.chunking import names, word_terms
from palimpsest.core.recall.ranking import Bools, PassageTable, QueryMatches, Rows
from palimpsest.core.recall.small_loss import GENERAL
from palimpsest.core.recall.updates import LOOKED_AT, MOST_NAMED, nearest_first, states, union
from palimpsest.core.recall.utterance import (
    ARTICLES,
    ENGLISH,
    LONG_CHARS,
    POSSESSIVES,
    described_things,
    is_telling,
    kin,
    language,
    read_utterance,
    spoken_words,
)
from palimpsest.domain.frozen import frozen

TOLD = 2  # statements of one request: what shares a name with them comes behind
SUBJECT_WORDS = 5  # at the beginning of a statement, that say what it is about: "The client for the rebranding is ..."
TITLES = frozenset(("Mr", "Mrs", "Ms", "Miss", "Dr", "Sir", "Herr", "Frau", "Mme", "Madame", "Monsieur"))
LEAST_NAMING = 0.4  # share of the weight of a thing's words: "new" alone names no bike; "bike rattles" has one of two
# Cosine, where "the" or a name tells. 25 of 25 requests with such a thing (half of things.json) have their statement
# as near; of 543 of other people, beside 780 messages of the user's, 5 find one, and without it 38.
LEAST_NEARNESS = 0.28
FEW_NAMED, LEAST_NEARNESS_OF_FEW = 6, 0.1  # ... of a name that few messages hold: of a common one more is far
# Whom a text speaks to, behind words that only greet, thank or agree: "Hey Ann, ...", "That sounds great, Ann!"
_ADDRESSED = re.compile(r"(?:^|[.!?] )([^.!?,\n]{1,40}),? ([^\W\d_a-z]\w+)(?=[.!?,]|$)", re.MULTILINE)


@frozen
class Thing:
    """One thing that a request speaks of: its words with their terms, and with those of other words for a relative."""

    terms: Mapping[str, frozenset[str]]
    is_own: bool
    is_name: bool


def known_things(text: str) -> list[Thing]:
    """What a request calls the user's own, what it calls "the" something, and whom it names; none for a statement."""
    if is_telling(text) or GENERAL.match(text):
        return []
    code, said = language(text), spoken_words(text)
    found = [(named, True, False) for named in described_things(said, code, POSSESSIVES[code])]
    if len(text) <= LONG_CHARS:  # a longer request brings along what it speaks of
        spoken_to = addressed(text)
        found += [(named, False, False) for named in described_things(said, code, ARTICLES[code])]
        found += [((name,), False, True) for name in names(text) if name not in spoken_to | TITLES]
    return [
        Thing({word: _terms({word, *(kin(word, code) if is_own else ())}, code) for word in named}, is_own, is_name)
        for named, is_own, is_name in found
    ]


def possible_names(text: str) -> list[Thing]:
    """What may be names in a short English request, in lower case or first: they are if a stored text says so."""
    if is_telling(text) or GENERAL.match(text) or len(text) > LONG_CHARS or language(text) != ENGLISH:
        return []
    said, articles = spoken_words(text), ARTICLES[ENGLISH] | POSSESSIVES[ENGLISH]
    may_name = {word for before, word in pairwise(["", *said]) if word.isalpha() and before not in articles}
    may_name -= {*names(text)} | {word for word in may_name if read_utterance(word).function_share or word.isupper()}
    return [Thing({word.capitalize(): _terms([word], ENGLISH)}, False, True) for word in sorted(may_name)]


def addressed(text: str) -> set[str]:
    """The names that a text calls somebody by: it speaks to them, and mostly not of them."""
    return {name for opening, name in _ADDRESSED.findall(text) if _greets(opening)}


def _greets(opening: str) -> bool:
    """Whether words only greet, thank or agree, and end in none that leads to a name, as "in" and "I'm" do."""
    last = opening.split()[-1:]
    return read_utterance(opening).is_small_talk and not any(read_utterance(word).function_share for word in last)


def told_of(table: PassageTable, thing: Thing, found: Mapping[str, Rows], eligible: Bools, asked: QueryMatches) -> Rows:
    """What the user said with a word of a thing, of names orders, too, nearest first; nothing of a common word."""
    rows: list[Rows] = []
    for terms in thing.terms.values():
        holding = union(found[term] for term in terms if term in found)
        told = table.users[holding] & (thing.is_name | states(table, holding))
        is_rare = (len(holding) if thing.is_name else told.sum()) <= MOST_NAMED  # all speak of Python and of Norway
        rows += [holding[told & eligible[holding]]] if is_rare else []
    named = union(rows)
    if not thing.is_own and asked.cosines is not None:
        is_rare = thing.is_name and len(named) <= FEW_NAMED
        named = named[asked.cosines[named] >= (LEAST_NEARNESS_OF_FEW if is_rare else LEAST_NEARNESS)]
    return nearest_first(named, asked)[:LOOKED_AT]


def is_about(text: str, thing: Thing, weights: Mapping[str, float], rare: Collection[str], near: float) -> bool:
    """
    Whether a statement is about a thing: it begins with it, or names what is the user's own with a rare word, or
    somebody, and is near to the request.

    Args:
        weights: of terms of the thing, what each tells; one that no passage holds has none.
        rare: terms that few passages hold, whoever said them.
        near: its cosine to the request.
    """
    code, said = language(text), spoken_words(text)
    opening = described_things(said[:SUBJECT_WORDS], code, POSSESSIVES[code] | ARTICLES[code])
    if thing.is_name:  # "our Python projects" are not what "in Python" speaks of
        naming = {*(said if near >= LEAST_NEARNESS else said[:SUBJECT_WORDS])} - addressed(text)
        subject = naming - {named[0] for named in opening} | {named[-1] for named in opening}
    else:
        subject = {*chain.from_iterable(opening), *said[:1]}
    about, held = _terms(subject, code), _terms(said, code)
    whole = matched = 0.0
    for word, terms in thing.terms.items():
        weight = max((weights.get(term, 0.0) for term in terms), default=0.0)
        whole += weight
        if terms & about or (thing.is_own and held & _terms([word], code).intersection(rare)):
            matched += weight
    return whole > 0 and matched >= LEAST_NAMING * whole


def _terms(said: Iterable[str], code: str) -> frozenset[str]:
    return frozenset(term for word in said for term in (*word_terms(word, code), *word_terms(word, ENGLISH)))
