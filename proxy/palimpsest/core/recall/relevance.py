"""
The probability that a passage answers a question, and that memory helps with it at all.

Two logistic regressions over signals of the question, of a passage, and of how far it is ahead of the next best: how
near it is, how much of the question it covers, and how people ask who refer to something they told. None of them is of
the scope as a whole, its size or its average: whoever has a large archive asks no other questions for that. But what
the conversation itself lost is asked for more often than what was said elsewhere, however much that is.
Rank lists always have a first place; relevance does not. Who packs a block takes a passage in while its probability is
worth its length, so that size follows confidence, and adds none where no passage is.

The weights (`weights.py`) were fitted over several sets at once, each asked alone and behind other people's
conversations of up to millions of characters, and checked by leaving whole sets out: see docs/benchmarks.md, and
`scripts/fit.py` for how to do it again.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from palimpsest.core.recall.asking_back import asks_back
from palimpsest.core.recall.ranking import Bools, Floats, PassageTable, QueryMatches, RankedRows, term_matrix
from palimpsest.core.recall.utterance import ENGLISH, PERSONAL, informativeness, personal, question_form, read_utterance
from palimpsest.core.recall.weights import OF_SPEAKERS, OF_SPEAKERS_BY_WORDS, PLAIN, PLAIN_BY_WORDS, Tables, Weights
from palimpsest.domain.frozen import frozen

MOST_TERMS = 4  # of a question in one passage; more are no surer
MOST_ASKED = 6  # terms of a question; more are as many
RAREST = 4.0  # negative logarithm of the share of passages that hold a term
# Of a scope, where rarity is counted: on the first day each word stands in a large share of the few that there are.
# With one conversation stored 180 of 241 questions get the fact that it tells, without this 174, and unrelated prompts
# as often something: 2.
LEAST_PASSAGES = 100
SHORT_CHARS = 20  # shorter passages are all alike
USUAL_CHARS = 200
SATURATED = 2.5  # most that a term adds to BM25 for each unit of its weight: k1 + 1
LEAST_WEIGHT = 0.25  # as `ranking.IDF_FLOOR`
MOST_SPEAKERS = 0.5  # share of the best texts that name their speaker: more, and it is a talk between them
BEST_PASSAGES = 10  # that tell so: further back stands whatever else the scope holds
NEAR, VERY_NEAR = 0.25, 0.4  # cosines from which on each step says more
LEAST_HELP = 0.02  # nothing is less probable: what is wrongly left out costs more than a line
# Of what is asked for in a conversation that lost something, said there: a prior. Behind 1.2 million characters of
# others 58 of 72 facts come at 84 tokens a turn without it, 62 at 79 with .5, and 63 at 73 with .75; of 72 that were
# told in another conversation, 59, 56 and 54.
OWN_SHARE = 0.75
MOST_OF_OWN = 1.0  # log-odds that it adds, at most; 1.5 measures the same
# Log-odds that memory helps, and that the best passage is meant, where a request asks again for what was said. The sets
# that the weights were fitted to hold no such request; with 1.5 as many of 30 get their answer.
ASKING_BACK = 1.0
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
        """The probabilities if any of them helped with another probability: (m,)."""
        worth: Floats = self.passages * (max(helps, LEAST_HELP) / max(self.helps, LEAST_HELP)) ** 0.5
        return worth


def relevance(table: PassageTable, asked: QueryMatches, ranked: RankedRows) -> Relevance:
    """Judge ranked passages, at least one, best first: how probably each answers, and any of them helps."""
    tables = tables_for(table, asked, ranked)
    signals = passage_signals(table, asked, ranked)
    odds = _log_odds(signals, tables.passage) + _conversation_odds(table.conversations[ranked.rows] == asked.own)
    more = ASKING_BACK * asks_back(asked.text)
    odds[odds.argmax()] += more  # not of all of them, or others come with the one that is meant
    passages = 1 / (1 + np.exp(-odds))
    help = _log_odds(help_signals(table, asked, signals, passages), tables.help) + more
    helps = float(1 / (1 + np.exp(-help[0])))
    return Relevance(passages * max(helps, LEAST_HELP) ** 0.5, helps)


def tables_for(table: PassageTable, asked: QueryMatches, ranked: RankedRows) -> Tables:
    """The weights for a ranking, by whether it used vectors and whether its best texts name their speakers."""
    if names_speakers(table, ranked):
        return OF_SPEAKERS if asked.cosines is not None else OF_SPEAKERS_BY_WORDS
    return PLAIN if asked.cosines is not None else PLAIN_BY_WORDS


def names_speakers(table: PassageTable, ranked: RankedRows) -> bool:
    """Whether most of the best texts name their speakers."""
    return bool((table.speakers[ranked.rows[:BEST_PASSAGES]] > 0).mean() > MOST_SPEAKERS)


def passage_signals(table: PassageTable, asked: QueryMatches, ranked: RankedRows) -> dict[str, Floats]:
    """The signals of whether each of m ranked passages answers the question: name to values, (m,)."""
    rows, given = ranked.rows, ranked.signals
    ones = np.ones(len(rows))
    question, form = (
        read_utterance(asked.text),
        dict(zip(PERSONAL, question_form(asked.text), strict=False)),
    )  # all but the constant
    own = personal(asked.text)
    cosine = np.zeros(len(rows)) if asked.cosines is None else asked.cosines[rows]
    held = term_matrix(asked.found, rows)
    weights = [term_weight(len(holding), len(table)) for holding in asked.found.values()]
    covered = np.array(weights) @ held
    whole = sum(weights) + len(asked.absent) * term_weight(0, len(table))
    strongest = SATURATED * (
        sum(max(LEAST_WEIGHT, weight) for weight in weights) + len(asked.absent) * term_weight(0, len(table))
    )
    words = given["words"] / max(strongest, 1e-6)
    terms = held.sum(0)
    scores = ranked.scores / max(float(ranked.scores.max()), 1e-9)
    other = float(question.language != ENGLISH)
    return {
        "cosine": cosine,
        "ahead": _ahead(cosine),
        "personal_cosine": own * cosine,
        "meaning": given["meaning"],
        "words": words,
        "covered": covered / max(whole, 1e-6),
        "terms": np.minimum(terms, MOST_TERMS) / MOST_TERMS,
        "named": given["named"],
        "speaker": given["speaker"],
        "dated": given["dated"],
        "answers": given["answers"],
        "user": given["user"],
        "asks": table.only_asks(rows).astype(float),
        "tells": table.tells[rows].astype(float),
        "user_tells": table.tells[rows] * given["user"],
        "length": np.log(np.maximum(table.lengths[rows], SHORT_CHARS) / USUAL_CHARS),
        "score": scores,
        "score_ahead": _ahead(scores),
        "by_score": np.log1p(_places(ranked.scores)),
        "by_cosine": np.log1p(_places(cosine)),
        "by_covered": np.log1p(_places(covered + 1e-6 * cosine)),
        "absent": ones * len(asked.absent) / max(len(asked.absent) + len(asked.found), 1),
        "strangers": ones * asked.strangers * form["name"],
        "personal": ones * own,
        "function": ones * form["function"],
        "log_words": ones * form["log_words"],
        "long": ones * form["long"],
        "quotes": ones * form["quotes"],
        "small_talk": ones * form["small_talk"],
        "other": ones * other,
        "other_cosine": other * cosine,
        "other_words": other * words,
        "other_covered": other * covered / max(whole, 1e-6),
    }


def help_signals(
    table: PassageTable, asked: QueryMatches, signals: Mapping[str, Floats], passages: Floats
) -> dict[str, Floats]:
    """
    The signals of whether any of the m ranked passages helps: name to one value, (1,).

    Args:
        signals: of the passages, as `passage_signals` says.
        passages: (m,), the probability of each that it answers.
    """
    best = int(passages.argmax())
    surest = _logit(float(passages[best]))
    own = personal(asked.text)
    form = dict(zip(PERSONAL, question_form(asked.text), strict=False))  # all but the constant
    rarities = [_rarity(len(holding), len(table)) for holding in asked.found.values()] + [1.0] * len(asked.absent)
    found = {
        "best": surest,
        "second": _logit(float(np.partition(passages, -2)[-2])) if len(passages) > 1 else _logit(0.0),
        "personal": own,
        "personal_best": own * surest / 5,
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
        "other": float(read_utterance(asked.text).language != ENGLISH),
        "telling": float(1 / (1 + np.exp(-informativeness(asked.text)))),  # who tells something asks for nothing
        "content": min(sum(rarities) / MOST_TERMS, 1.0),
        "rarest_term": max(rarities, default=0.0),
        "terms_asked": min(len(rarities) / MOST_ASKED, 1.0),
        "cosine": float(signals["cosine"][best]),
        "near": max(0.0, float(signals["cosine"][best]) - NEAR),
        "very_near": max(0.0, float(signals["cosine"][best]) - VERY_NEAR),
        "ahead": float(signals["ahead"][best]),
        "covered": float(signals["covered"][best]),
        "user": float(signals["user"][best]),
        "tells": float(signals["tells"][best]),
        "asks": float(signals["asks"][best]),
        "absent": float(signals["absent"][best]),
    }
    return {name: np.array([value]) for name, value in found.items()}


def _conversation_odds(is_own: Bools) -> Floats:
    """What is added to the log-odds of m passages because they are of the conversation itself, or of others: (m,)."""
    share = float(is_own.mean())
    if share in (0.0, 1.0):
        return np.zeros(len(is_own))
    of_own = min(max(np.log(OWN_SHARE / share), 0.0), MOST_OF_OWN)
    odds: Floats = np.where(is_own, of_own, min(np.log((1 - OWN_SHARE) / (1 - share)), 0.0))
    return odds


def _log_odds(signals: Mapping[str, Floats], weights: Weights) -> Floats:
    names = [name for name in weights if name != "bias"]
    odds: Floats = np.array([weights[name] for name in names]) @ np.array([signals[name] for name in names])
    return odds + weights["bias"]


def term_weight(holding: int, passages: int) -> float:
    """Inverse document frequency that is never negative (Robertson and Spärck Jones; Lucene's form)."""
    return float(np.log1p((passages - holding + 0.5) / (holding + 0.5)))


def _rarity(holding: int, passages: int) -> float:
    """How rare a term is, 0..1: one in 50 passages or fewer is as rare as can be, so that size changes little."""
    return float(min(-np.log((holding + 0.5) / (max(passages, LEAST_PASSAGES) + 1)) / RAREST, 1.0))


def _ahead(values: Floats) -> Floats:
    """(m,): how far each value is ahead of the best of the others; 0 where there is no other."""
    if len(values) < 2:
        return np.zeros(len(values))
    best = int(values.argmax())
    others = np.full(len(values), values[best])
    others[best] = np.partition(values, -2)[-2]
    ahead: Floats = values - others
    return ahead


def _places(values: Floats) -> Floats:
    """0-based place of each value, highest first."""
    places = np.empty(len(values))
    places[np.argsort(-values, kind="stable")] = np.arange(len(values))
    return places


def _logit(probability: float) -> float:
    kept = min(max(probability, PROBABLE), 1 - PROBABLE)
    return float(np.log(kept / (1 - kept)))
