"""
The probability that a passage answers a question, and that memory helps with it at all.

Two logistic regressions over signals that mean the same in every scope and language: how far a passage stands out from
its scope for this question, how much of the question it covers, and how people ask who refer to something they told.
Rank lists always have a first place; relevance does not. Who packs a block takes a passage in while its probability is
worth its length, so that size follows confidence, and says nothing where no passage is.

The weights were fitted over eleven sets at once and checked by leaving whole sets out: see docs/benchmarks.md, and
`scripts/fit.py` for how to do it again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from proxy.core.recall.ranking import Asked, Bools, Floats, PassageTable, Ranked, holds
from proxy.core.recall.utterance import ENGLISH, PERSONAL, asking, personal, read

Weights = Mapping[str, float]

LEAST_SPREAD = 0.03  # cosine: in a scope of alike texts every deviation looks large
MOST_DEVIATION = 8.0  # standard deviations; what stands out more is no surer
MOST_TERMS = 4  # of a question in one passage; more are no surer
SHORT_CHARS = 20  # shorter passages are all alike
USUAL_CHARS = 200
SATURATED = 2.5  # most that a term adds to BM25 for each unit of its weight: k1 + 1
LEAST_WEIGHT = 0.25  # as `ranking.IDF_FLOOR`
LEAST_HELP = 0.02  # nothing is less probable: a wrong silence costs more than a line
PROBABLE = 1e-5  # probabilities are kept this far from 0 and 1 where logarithms are taken of them

# Log-odds per unit of each signal; "bias" is the constant.
PASSAGE: Weights = {
    **{"cosine": 1.823, "above": 1.661, "deviation": 2.209, "behind": -0.436, "meaning": 0.371, "words": 0.981},
    **{"covered": 0.345, "terms": 0.721, "named": 0.877, "speaker": 0.51, "dated": 0.849, "answers": 0.101},
    **{"user": 0.698, "asks": -0.183, "tells": 0.876, "user_tells": 0.719, "length": 0.204, "score": 2.226},
    **{"by_score": -0.216, "by_cosine": 0.083, "by_covered": -0.203, "absent": 0.014, "strangers": -1.037},
    **{"middle": 2.459, "personal": 0.055, "personal_above": 0.396, "function": 0.357, "log_words": 0.066},
    **{"long": 1.383, "quotes": -0.699, "small_talk": -1.422, "other": 0.396, "other_cosine": -0.689},
    **{"other_deviation": -0.522, "other_words": -1.078, "other_covered": 4.867, "speakers_score": 0.809},
    **{"speakers_words": 2.731, "speakers_cosine": -1.894, "speakers_by_score": -0.048, "bias": -9.394},
}
PASSAGE_BY_WORDS: Weights = {
    **{"words": 1.791, "covered": 1.382, "terms": 1.928, "named": 0.621, "speaker": 0.477, "dated": 0.654},
    **{"answers": 0.079, "user": 0.614, "asks": -0.225, "tells": 0.759, "user_tells": 0.918, "length": -0.007},
    **{"score": 2.606, "by_score": -0.42, "by_covered": -0.139, "absent": -0.136, "strangers": -1.137},
    **{"personal": 0.153, "function": 0.421, "log_words": -0.041, "long": 1.459, "quotes": -0.706},
    **{"small_talk": -1.605, "other": 0.678, "other_words": -5.353, "other_covered": 3.975},
    **{"speakers_score": 0.531, "speakers_words": 0.15, "speakers_by_score": -0.014, "bias": -7.267},
}
HELP: Weights = {
    **{"best": 0.177, "together": 1.805, "personal": -0.297, "own": 1.772, "back": 0.702, "particular": 0.732},
    **{"general": -0.683, "function": 1.282, "log_words": 0.232, "long": -3.298, "quotes": -1.47},
    **{"small_talk": -3.181, "acquainted": -0.758, "strangers": 0.874, "other": -0.872, "deviation": 0.42},
    **{"above": -0.605, "covered": 1.894, "user": -0.643, "tells": 0.182, "asks": 0.222, "absent": -0.912},
    **{"log_passages": -5.485, "bias": 6.67},
}
HELP_BY_WORDS: Weights = {
    **{"best": 0.626, "together": 1.364, "personal": -0.296, "own": 1.58, "back": 0.693, "particular": 0.812},
    **{"general": -0.657, "function": 1.211, "log_words": 0.173, "long": -3.015, "quotes": -1.557},
    **{"small_talk": -3.082, "acquainted": -0.455, "strangers": 0.867, "other": -0.665, "covered": 1.243},
    **{"user": -0.481, "tells": -0.641, "asks": -0.362, "absent": -0.407, "log_passages": -3.365, "bias": 5.162},
}


@dataclass(frozen=True, slots=True)
class Relevance:
    """
    What m ranked passages are worth, (m,), in their order, and the probability that any of them helps.

    A passage's worth is its probability of being the answer, times the root of the probability that one is needed: the
    second is often wrong, and a line too many costs less than the line that was asked for.
    """

    passages: Floats
    helps: float


def relevance(shelf: PassageTable, asked: Asked, eligible: Bools, ranked: Ranked) -> Relevance:
    """
    Judge what was ranked.

    Args:
        eligible: (n,), which passages of the shelf may come; they are the background that others stand out from.
        ranked: m of them, best first, at least one.
    """
    known = asked.cosines is not None
    signals = passage_signals(shelf, asked, eligible, ranked)
    odds = _log_odds(signals, PASSAGE if known else PASSAGE_BY_WORDS)
    passages = 1 / (1 + np.exp(-odds))
    help = _log_odds(help_signals(shelf, asked, ranked, signals, passages), HELP if known else HELP_BY_WORDS)
    helps = float(1 / (1 + np.exp(-help[0])))
    return Relevance(passages * max(helps, LEAST_HELP) ** 0.5, helps)


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
    held = holds(asked.found, len(shelf))[:, rows]
    weights = [_weight(len(holding), len(shelf)) for holding in asked.found.values()]
    covered = np.array(weights) @ held
    whole = sum(weights) + len(asked.absent) * _weight(0, len(shelf))
    strongest = SATURATED * (
        sum(max(LEAST_WEIGHT, weight) for weight in weights) + len(asked.absent) * _weight(0, len(shelf))
    )
    words = given["words"] / max(strongest, 1e-6)
    terms = held.sum(0)
    scores = ranked.scores / max(float(ranked.scores.max()), 1e-9)
    by_score = np.log1p(_places(ranked.scores))
    other = float(question.language != ENGLISH)
    of_speakers = float((shelf.speakers[rows] > 0).mean() > 0.5)
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
        "by_score": by_score,
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
        "speakers_score": of_speakers * scores,
        "speakers_words": of_speakers * words,
        "speakers_cosine": of_speakers * cosine,
        "speakers_by_score": of_speakers * by_score,
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
