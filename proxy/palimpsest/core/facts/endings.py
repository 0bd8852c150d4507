"""
Endings: which newer statement ends an older one.

A slot of one value holds what was said last, and that needs no judgement. What is judged here are the other ends: a
denial ("I no longer live in Berlin", "you don't need to answer in German any more"), an order that takes the place of
another one ("from now on answer in English"), a taste turned round, a newer version of what is used, a setting under
its shorter name ("we moved the port from 5432 to 5433").

A wrong end is worse than a stale fact: of a denial all words that carry meaning must stand in what it ends.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from palimpsest.core.archive.chunking import terms
from palimpsest.core.facts.vocabulary import LANGUAGE, PARTNER, VERSIONED
from palimpsest.core.recall.utterance import ENGLISH, function_words
from palimpsest.domain import NO_LONGER, NO_LONGER_ANY, PROJECT_SUBJECT, USER_SUBJECT, frozen
from palimpsest.domain.word_cache import word_cache

PARTNERS = frozenset({PARTNER, "wife", "husband", "spouse", "girlfriend", "boyfriend", "fiance", "fiancee"})
PETS = frozenset(
    {"pet", "dog", "cat", "puppy", "kitten", "horse", "pony", "parrot", "rabbit", "hamster", "turtle", "guinea pig"}
)
CACHED_VALUES = 4_096  # of facts: those of a conversation's user are looked at again and again
LEAST_STEM = 2  # letters
LEAST_WORDS = 2  # of a denial that names no slot: one word says of too many things that they are over

_TASTES = ("likes", "dislikes")
_SPEAKS = re.compile(
    rf"^(?P<alone>{LANGUAGE}) (?:only )?from now on"
    rf"|\b(?:answer|reply|respond|write|speak|talk|switch|go)\b.*?\b(?:in|to) (?P<language>{LANGUAGE})\b",
    re.I,
)
_LEADS = re.compile(r"^(?:please |always |from now on,? |now |going forward,? )*", re.I)
_SETS = re.compile(  # an order whose last part, or whose thing used, is what a newer one changes
    r"(?P<head>use) (?P<changes>[\w -]{1,30}?) (?P<tail>(?:for|as|in) .+)$"
    r"|(?P<verb>(?:give|show|quote|state|round|format|measure|print|display|sign)\b.*? (?:in|to|as))"
    r" (?P<other>[\w/.: -]{1,30})$",
    re.I,
)
_OVER = re.compile(
    r"^(?:switched|moved|migrated) (?:away )?from (?P<left>\S+) to \S+(?P<of> .+)?$"
    r"|^(?:no longer (?:use|support|run|deploy(?: to)?|need)|(?:don't|do not) (?:use|support|run|deploy to"
    r"|need)|dropped"
    r"|(?:decided|agreed) not to|(?:decided|agreed) against)\s+(?P<what>.+?)(?: any ?more| any longer| after all)?$",
    re.I,
)
_INSTEAD = re.compile(r"(?P<chosen>.+?)\s+(?:instead of|over|rather than)\s+(?P<left>.+)$", re.I)
_OWN = re.compile(r"(?:I|my|we)\b", re.I)
_NUMBER = re.compile(r"\d[\d:.,]*")
_VERSION = re.compile(rf"{VERSIONED}")
_IDLE = frozenset(terms(" ".join(function_words(ENGLISH)))) | frozenset(
    terms("no longer any more anymore isn't doesn't don't aren't wasn't after all now")
)
_LIST = re.compile(r",|\band\b|\bor\b|&")
_SLOT_IDLE = frozenset({"the", "for", "of", "our", "my", "on", "in", "at", "to", "a", "date"})


@word_cache(CACHED_VALUES)
def _words(text: str) -> frozenset[str]:
    """The stems of the words that carry meaning."""
    return frozenset(map(_stem, terms(text))) - _IDLE


def _stem(term: str) -> str:
    """One stem for all forms of a word, without a doubled last letter ("adding" has the stem "ad")."""
    return term[:-1] if len(term) > LEAST_STEM and term[-1] == term[-2] else term


_MEAT = "meat pork beef chicken"
_AGAINST = {  # a diet, and what one who keeps it does not take
    "vegan": _words(f"{_MEAT} fish cheese eggs dairy milk honey butter"),
    "vegetarian": _words(f"{_MEAT} fish"),
    "pescatarian": _words(_MEAT),
    "lactose intolerant": _words("milk dairy cheese cream yoghurt"),
    "gluten intolerant": _words("gluten bread wheat pasta"),
    "teetotal": _words("alcohol beer wine"),
}
_SIDES = (  # words of which one at a time is preferred
    *("tabs spaces", "window aisle", "dark light", "short long brief concise detailed", "tea coffee"),
    *("metric imperial", "mornings afternoons evenings", "formal informal casual", "email phone", "digital paper"),
    *("cash card",),
)
_SIDE_OF = {word: f"one of {words}" for words in _SIDES for word in _words(words)}


@frozen
class Claim:
    """What a fact states, whoever states it."""

    subject: str
    slot: str
    value: str
    is_single: bool

    @property
    def is_denial(self) -> bool:
        """Whether the claim only ends others, and is no fact to tell."""
        return is_denial(self.slot)


def is_denial(slot: str) -> bool:
    """Whether a fact of this slot only ends others."""
    return f"{slot} ".startswith(NO_LONGER)


@dataclass(slots=True)
class Endings:
    """The claims read so far, from the newest to the oldest, of one person in one project."""

    _denials: list[tuple[Claim, str]] = field(default_factory=list)
    _places: dict[tuple[object, ...], tuple[Claim, str]] = field(default_factory=dict)

    def take(self, claim: Claim, id: str) -> str:
        """
        Judge the next older claim: which newer fact has ended it, if any.

        Args:
            id: of the fact.

        Returns:
            The id of the fact that ended it; "" where it holds.
        """
        if claim.is_denial:
            self._denials.append((claim, id))
            return ""
        ended = next((by for by in self._denials if denies(by[0], claim)), None)
        if ended is not None:
            if ended[0].slot.startswith(NO_LONGER_ANY):
                self._denials.remove(ended)
            return ended[1]
        found = ""
        for place in _places_of(claim):
            newer, by = self._places.setdefault(place, (claim, id))
            if by != id and not found and _statement(newer) != _statement(claim):
                found = by
        if not found and (denial := _implied(claim)) is not None:
            self._denials.append((denial, id))
        return found


def denies(denial: Claim, older: Claim) -> bool:
    """Whether a denial ends an older claim."""
    if denial.slot == f"{NO_LONGER}always" and older.slot == "diet":
        return _words(denial.value) == _words(older.value)  # "scratch the vegan thing"
    slot = denial.slot.removeprefix(NO_LONGER_ANY).removeprefix(NO_LONGER)
    if slot == NO_LONGER.strip():
        return _is_denied_by_words(denial, older)
    if not _denies_subject(denial.subject, older.subject):
        return False
    if denial.slot == f"{NO_LONGER}does not take" and older.slot == "diet":
        return not _AGAINST.get(older.value.lower().removeprefix("strict "), frozenset()).isdisjoint(
            _words(denial.value)
        )
    if denial.subject == PROJECT_SUBJECT and slot not in ("always", "decided"):
        is_same = denial.slot.startswith(NO_LONGER_ANY) or denial.value.casefold() == older.value.casefold()
        return _slot_words(slot) <= _slot_words(older.slot) and is_same
    if older.slot not in slot.split(" or "):
        return False
    if denial.slot.startswith(NO_LONGER_ANY):
        return True
    said, held = _words(denial.value), _words(older.value)
    if slot == "always":
        return said <= held and (len(said) >= LEAST_WORDS or held <= said or bool(re.fullmatch(LANGUAGE, denial.value)))
    if older.slot in ("home", "employer", "occupation", "name", "decided"):
        return bool(said) and said <= held
    return bool(said) and (said == held or (said <= held and not _LIST.search(older.value)))


def _is_denied_by_words(denial: Claim, older: Claim) -> bool:
    """Whether a denial that names no slot has the words of an older claim, or the other way round."""
    said, slot = _words(denial.value), "" if older.slot in ("note", "decided", "always") else older.slot
    held = _words(f"{older.subject} {slot} {older.value}")
    if older.subject == USER_SUBJECT:
        return _OWN.match(denial.value) is not None and _words(older.value) <= said <= held
    return len(said) >= LEAST_WORDS and said <= held


def _denies_subject(denied: str, subject: str) -> bool:
    if denied == PARTNER:
        return subject in PARTNERS
    return subject in PETS if denied == "pet" else denied == subject


def _places_of(claim: Claim) -> Iterator[tuple[object, ...]]:
    """What a claim holds besides its slot: another claim that holds the same is ended by the newer of the two."""
    match claim.slot:
        case "likes" | "dislikes":
            yield "taste", claim.subject, _words(claim.value) or claim.value
        case "prefers":
            words = _words(claim.value)
            sides = frozenset(_SIDE_OF.get(word, word) for word in words)
            if sides != words:
                yield "prefers", sides
        case "always":
            order = _LEADS.sub("", claim.value)
            if _SPEAKS.search(order):
                yield ("language of answers",)
            elif found := _SETS.match(order.rstrip(". ")):
                yield "order", *((found[name] or "").lower() for name in ("head", "tail", "verb"))
        case "note" if _NUMBER.search(claim.value):
            yield "note", _words(_NUMBER.sub("", claim.value))
        case "uses":
            for version in _VERSION.findall(claim.value):
                yield "uses", version.rsplit(" ", 1)[0].lower()
        case "decided":
            if found := _INSTEAD.match(claim.value):
                yield (
                    "choice",
                    frozenset(_words(claim.value)) - _words("go with use chose picked switch settle stick opted"),
                )
        case _ if claim.is_single and claim.subject == PROJECT_SUBJECT:
            yield "setting", _slot_words(claim.slot)


def _implied(claim: Claim) -> Claim | None:
    """What a claim that is a fact itself denies besides."""
    if claim.slot == "decided" and (found := _OVER.match(claim.value)):
        what = found["what"] or f"{found['left']}{found['of'] or ''}"
        return Claim(claim.subject, f"{NO_LONGER}decided", what, False)
    return None


def _statement(claim: Claim) -> tuple[str, str]:
    """What a claim says; of likes and dislikes only which of the two."""
    return claim.slot, "" if claim.slot in _TASTES else claim.value.casefold()


def _slot_words(slot: str) -> frozenset[str]:
    return frozenset(slot.lower().split()) - _SLOT_IDLE
