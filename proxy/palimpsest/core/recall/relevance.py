"""
The probability that a passage answers a question, and that memory helps with it at all.

Two logistic regressions over signals that mean the same in every scope and language: how far a passage stands out from
its scope for this question, how much of the question it covers, and how people ask who refer to something they told.
Rank lists always have a first place; relevance does not. Who packs a block takes a passage in while its probability is
worth its length, so that size follows confidence, and says nothing where no passage is.

The weights (`weights.py`) were fitted over eleven sets at once and checked by leaving whole sets out, or conversations
of the one set whose texts name their speakers: see docs/benchmarks.md, and `scripts/fit.py` for how to do it again.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from palimpsest.core.recall.ranking import Asked, Bools, Floats, PassageTable, Ranked, holds
from palimpsest.core.recall.utterance import ENGLISH, PERSONAL, asking, personal, read
from palimpsest.core.recall.weights import (
    OF_SPEAKERS,
    OF_SPEAKERS_BY_WORDS,
    PLAIN,
    PLAIN_BY_WORDS,
    Tables,
    Weights,
)
from palimpsest.domain.frozen import frozen

LEAST_SPREAD = 0.03  # cosine: in a scope of alike texts every deviation looks large
MOST_DEVIATION = 8.0  # standard deviations; what stands out more is no surer
MOST_TERMS = 4  # of a question in one passage; more are no surer
SHORT_CHARS = 20  # shorter passages are all alike
USUAL_CHARS = 200
SATURATED = 2.5  # most that a term adds to BM25 for each unit of its weight: k1 + 1
LEAST_WEIGHT = 0.25  # as `ranking.IDF_FLOOR`
MOST_SPEAKERS = 0.5  # share of the best texts that name their speaker: more, and it is a talk between them
BEST_PASSAGES = 10  # that tell so: further back stands whatever else the scope holds
LEAST_HELP = 0.02  # nothing is less probable: a wrong silence costs more than a line
PROBABLE = 1e-5  # probabilities are kept this far from 0 and 1 where logarithms are taken of them


@frozen
class Relevance:
    """
    What m ranked passages are worth, (m,), in their order, and the probability that any of them helps.

    A passage's worth is its probability of being the answer, times the root of the probability that one is needed: the
    second is often wrong, and a line too many costs less than the line that was asked for.
    """

    passages: Floats
    helps: float

    def at(self, helps: float) -> Floats:
        """What they are worth where any of them helps with another probability: (m,)."""
        worth: Floats = self.passages * (max(helps, LEAST_HELP) / max(self.helps, LEAST_HELP)) ** 0.5
        return worth


def relevance(shelf: PassageTable, asked: Asked, eligible: Bools, ranked: Ranked) -> Relevance:
    """
    Judge what was ranked.

    Args:
        eligible: (n,), which passages of the shelf may come; they are the background that others stand out from.
        ranked: m of them, best first, at least one.
    """
    tables = tables_for(shelf, asked, ranked)
    signals = passage_signals(shelf, asked, eligible, ranked)
    passages = 1 / (1 + np.exp(-_log_odds(signals, tables.passage)))
    help = _log_odds(help_signals(shelf, asked, ranked, signals, passages), tables.help)
    helps = float(1 / (1 + np.exp(-help[0])))
    return Relevance(passages * max(helps, LEAST_HELP) ** 0.5, helps)


def tables_for(shelf: PassageTable, asked: Asked, ranked: Ranked) -> Tables:
    """The weights for what was ranked: with or without vectors, and by whether its best texts name their speakers."""
    if is_talk(shelf, ranked):
        return OF_SPEAKERS if asked.cosines is not None else OF_SPEAKERS_BY_WORDS
    return PLAIN if asked.cosines is not None else PLAIN_BY_WORDS


def is_talk(shelf: PassageTable, ranked: Ranked) -> bool:
    """Whether what was ranked best is of a talk whose texts name their speakers."""
    return bool((shelf.speakers[ranked.rows[:BEST_PASSAGES]] > 0).mean() > MOST_SPEAKERS)


def passage_signals(shelf: PassageTable, asked: Asked, eligible: Bools, ranked: Ranked) -> dict[str, Floats]:
    """What tells whether each of m ranked passages answers the question: name to values, (m,)."""
    rows, given = ranked.rows, ranked.signals
    ones = np.ones(len(rows))
    question, form = read(asked.text), dict(zip(PERSONAL, asking(asked.text), strict=False))  # all but the constant
    own = personal(asked.text)
    cosines = np.zeros(len(shelf)) if asked.cosines is None else asked.cosines
    background = cosines[eligible]
    middle, spread = float(background.mean()), max(float(background.std()), LEAST_SPREAD)
    cosine = cosines[rows]
    deviation = np.minimum((cosine - middle) / spread, MOST_DEVIATION) / 4
    held = holds(asked.found, rows)
    weights = [_weight(len(holding), len(shelf)) for holding in asked.found.values()]
    covered = np.array(weights) @ held
    whole = sum(weights) + len(asked.absent) * _weight(0, len(shelf))
    strongest = SATURATED * (
        sum(max(LEAST_WEIGHT, weight) for weight in weights) + len(asked.absent) * _weight(0, len(shelf))
    )
    words = given["words"] / max(strongest, 1e-6)
    terms = held.sum(0)
    scores = ranked.scores / max(float(ranked.scores.max()), 1e-9)
    other = float(question.language != ENGLISH)
    return {
        "cosine": cosine,
        "above": cosine - middle,
        "deviation": deviation,
        "behind": cosine - float(background.max()),
        "meaning": given["meaning"],
        "words": words,
        "covered": covered / max(whole, 1e-6),
        "terms": np.minimum(terms, MOST_TERMS) / MOST_TERMS,
        "named": given["named"],
        "speaker": given["speaker"],
        "dated": given["dated"],
        "answers": given["answers"],
        "user": given["user"],
        "asks": shelf.asks[rows].astype(float),
        "tells": shelf.tells[rows].astype(float),
        "user_tells": shelf.tells[rows] * given["user"],
        "length": np.log(np.maximum(shelf.lengths[rows], SHORT_CHARS) / USUAL_CHARS),
        "score": scores,
        "by_score": np.log1p(_places(ranked.scores)),
        "by_cosine": np.log1p(_places(cosine)),
        "by_covered": np.log1p(_places(covered + 1e-6 * cosine)),
        "absent": ones * len(asked.absent) / max(len(asked.absent) + len(asked.found), 1),
        "strangers": ones * asked.strangers * form["name"],
        "middle": ones * middle,
        "personal": ones * own,
        "personal_above": own * (cosine - middle),
        "function": ones * form["function"],
        "log_words": ones * form["log_words"],
        "long": ones * form["long"],
        "quotes": ones * form["quotes"],
        "small_talk": ones * form["small_talk"],
        "other": ones * other,
        "other_cosine": other * cosine,
        "other_deviation": other * deviation,
        "other_words": other * words,
        "other_covered": other * covered / max(whole, 1e-6),
    }


def help_signals(
    shelf: PassageTable, asked: Asked, ranked: Ranked, signals: Mapping[str, Floats], passages: Floats
) -> dict[str, Floats]:
    """What tells whether any of the m ranked passages helps: name to one value, (1,)."""
    best = int(passages.argmax())
    form = dict(zip(PERSONAL, asking(asked.text), strict=False))  # all but the constant
    found = {
        "best": _logit(float(passages[best])),
        "together": float(np.log(min(float(passages.sum()), 20.0) + 1e-4)),
        "personal": personal(asked.text),
        "own": min(form["own"], 1.0),
        "back": form["back"],
        "particular": form["particular"],
        "general": form["general"],
        "function": form["function"],
        "log_words": form["log_words"],
        "long": form["long"],
        "quotes": form["quotes"],
        "small_talk": form["small_talk"],
        "acquainted": form["name"] * (1 - asked.strangers),
        "strangers": form["name"] * asked.strangers,
        "other": float(read(asked.text).language != ENGLISH),
        "deviation": float(signals["deviation"].max()),
        "above": float(signals["above"][best]),
        "covered": float(signals["covered"][best]),
        "user": float(signals["user"][best]),
        "tells": float(signals["tells"][best]),
        "asks": float(signals["asks"][best]),
        "absent": float(signals["absent"][best]),
        "log_passages": float(np.log(max(len(shelf), 1))) / 5,
    }
    return {name: np.array([value]) for name, value in found.items()}


def _log_odds(signals: Mapping[str, Floats], weights: Weights) -> Floats:
    names = [name for name in weights if name != "bias"]
    odds: Floats = np.array([weights[name] for name in names]) @ np.array([signals[name] for name in names])
    return odds + weights["bias"]


def _weight(holding: int, passages: int) -> float:
    """Inverse document frequency that is never negative (Robertson and Spärck Jones; Lucene's form)."""
    return float(np.log1p((passages - holding + 0.5) / (holding + 0.5)))


def _places(values: Floats) -> Floats:
    """0-based place of each value, highest first."""
    places = np.empty(len(values))
    places[np.argsort(-values, kind="stable")] = np.arange(len(values))
    return places


def _logit(probability: float) -> float:
    kept = min(max(probability, PROBABLE), 1 - PROBABLE)
    return float(np.log(kept / (1 - kept)))
