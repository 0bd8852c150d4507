"""
The ranking of passages: signals of each passage of a scope, fused into one order. Pure NumPy; every method names its
source.

A turn of a conversation often says only "Yes, last week!": what it is about stands next to it. So a passage is scored
with its surroundings, at query time, instead of embedding and indexing every passage once more together with its
neighbours. On LoCoMo (1,018 questions, 6,000 characters) that finds as much as windows embedded for the purpose, for
half the embedding and nothing to index again when the next message arrives.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from rank_bm25 import BM25Okapi  # type: ignore[import-untyped]

from palimpsest.core.recall.similarity import Signs
from palimpsest.domain.frozen import frozen

Rows = npt.NDArray[np.int64]
Floats = npt.NDArray[np.floating[Any]]
Bools = npt.NDArray[np.bool_]

REACH_PASSAGES = 5  # how far a passage's surroundings go; 8 measures the same, 3 worse
REACH_CHARS = 750  # between the middles of two passages: long ones have context enough of their own (BEAM)
MEANING_SHARE = 0.5  # what surroundings count in a vector's favour; words spread further than meaning
IDF_FLOOR = 0.25  # a word in more than half of all passages still says a little
SHORT_CHARS = 350  # a longer passage must be worth the room: twice as long, 1.4 times the score (BEAM +17 points)
NAMED_MESSAGES = 3  # an identifier that stands in more messages names none of them
HALF_LIFE_DAYS = 7.0  # of recency, LANTERN 3.2
CALLS_BONUS, FILES_BONUS = 0.5, 0.3  # LANTERN 3.2
RRF_DAMPING_RANKS = 60  # Cormack et al. 2009
PROBABILITY = "probability"  # the signal that judges all others: see `core/recall/relevance.py`
LEAST_TELLING = 0.5  # of `PassageTable.tells`: a person's statement, and no question or task
LEAST_BESIDE = 0.4  # ... of what stands beside a question: `MIXED_LEVEL` lets it tell no more than .44
WORTH_CHARS = 300  # 200 and 350 measure alike on LoCoMo and BEAM
LEAST_PROBABILITY = 1e-6  # logarithms need more than 0
CANDIDATES = 200  # passages that each index hands on: many more than a block holds, few enough to rank at once
MMR_LAMBDA = 0.7  # 1 is relevance alone, less is more variety; LANTERN's value, and flat from 0.5 to 0.9 on LoCoMo
ALIKE_AT_ONCE = 8  # passages of 80: the product of larger matrices starts threads, which wait for each other
SAMPLED = 8  # each eighth passage: enough to leave out all but some hundreds of a large scope
MMR_DEPTH = 80  # a block holds some forty short passages: order behind twice as many is never looked at

# Round numbers on a flat optimum: halving or doubling the small ones moves LoCoMo by less than a point, and each of its
# conversations agrees with the other four.
WEIGHTS = {"meaning": 1.0, "words": 1.0, "speaker": 0.2, "user": 0.2, "dated": 0.3, "answers": 0.1, "importance": 0.05}


@frozen
class PassageTable:
    """
    The n passages that one question may look at, as parallel arrays; a row is a passage, rows rise with memory ids.

    `before` and `after` are the rows of the neighbours in the same conversation, -1 where there is none. `centres` are
    characters from the beginning of the conversation to the middle of the passage. Rows whose vector is not there yet
    hold zeros in `vectors`. `names` tells which number stands for a speaker in `speakers`, 0 for nobody. `known` is
    what `memory/index/full_text.py` remembers of terms: how many rows it has looked through, and which hold the term.
    """

    ids: Rows
    occurrences: Rows
    conversations: Rows
    fulls: Rows
    lengths: Floats  # characters
    centres: Floats
    before: Rows
    after: Rows
    created_at: Floats  # Unix seconds
    asks: Bools
    consequence: Floats  # LANTERN's D, see `consequence`
    speakers: Rows
    users: Bools  # said by the user; not where the text itself names its speaker, who may be anybody
    tells: Floats  # 0..1, how surely it tells something: `digest.judged`
    wishes: Bools  # a user's wish that holds from now on
    warns: Bools  # a user's statement of what may harm somebody
    names: Mapping[str, int]
    vectors: Floats  # (n, d), unit length; d is a multiple of 64
    embedded: Bools  # has its vector
    signs: Signs | None = None  # see `core/recall/similarity.py`
    known: dict[str, tuple[int, Rows]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.ids)

    def only_asks(self, rows: Rows | slice) -> Bools:
        """Which of these rows ask something, and tell nothing beside it."""
        return self.asks[rows] & (self.tells[rows] < LEAST_BESIDE)

    def rows_of(self, ids: Rows) -> Rows:
        """Rows of these memory ids; those that are not here are left out."""
        if len(self) and self.ids[-1] - self.ids[0] == len(self) - 1:  # no id is missing in between
            rows: Rows = ids - self.ids[0]
            return rows[(rows >= 0) & (rows < len(self))]
        at = np.searchsorted(self.ids, ids)
        here = at < len(self)
        rows = at[here][self.ids[at[here]] == ids[here]]
        return rows


@frozen
class QueryMatches:
    """
    One question, looked up.

    `found` are the question's terms with the rows that hold them, `absent` those that no passage of the scope holds.
    `cosines`, (n,), are those of every passage to the question, None without a model; the gate judges by them. `about`,
    (n,), are those to the middle between the question and what it says without the names in it, None where it has none:
    a name draws everything near that its bearer ever said. `own` is the conversation in which it is asked, 0 for none.
    """

    cosines: Floats | None
    found: Mapping[str, Rows]
    text: str = ""
    own: int = 0
    absent: tuple[str, ...] = ()
    identifiers: tuple[str, ...] = ()  # among `found`: terms that name one thing exactly
    about: Floats | None = None
    words: frozenset[str] = frozenset()  # among which may be a speaker's name
    periods: tuple[tuple[float, float], ...] = ()  # Unix seconds, first and last: when it asks about
    strangers: float = 0.0  # share of the names in the question that no passage of the scope holds
    standing: Floats | None = None  # (n,), F * c * s of LANTERN's importance, where it is counted


@frozen
class RankedRows:
    """Rows with their scores, best first, and each signal's raw values for the same rows."""

    rows: Rows
    scores: Floats
    signals: Mapping[str, Floats]

    def part(self, which: Rows | Bools | slice) -> RankedRows:
        """These rows only, in this order."""
        return RankedRows(self.rows[which], self.scores[which], {name: v[which] for name, v in self.signals.items()})


@frozen
class Recipe:
    """
    The parameters of `rank`. The defaults are what measures best; other values are for measuring that again.

    `weights` by signal, 0 leaves one out; `reach_passages` is how far surroundings go, 0 for none; `damping_ranks` is
    the constant of reciprocal rank fusion; `by_room` divides scores by the root of the room that a passage takes.
    """

    weights: Mapping[str, float] = field(default_factory=lambda: WEIGHTS)
    reach_passages: int = REACH_PASSAGES
    damping_ranks: int = RRF_DAMPING_RANKS
    fusion: Literal["minmax", "rrf"] = "minmax"
    candidates: int = CANDIDATES
    mmr_lambda: float = MMR_LAMBDA
    by_room: bool = True


RECIPE = Recipe()


class ScopedBM25(BM25Okapi):  # type: ignore[misc]
    """
    BM25 (Okapi, the variant of rank_bm25) with the statistics of one scope, no corpus to be indexed.

    Source: Robertson and Zaragoza, The Probabilistic Relevance Framework, 2009; k1 and b are rank_bm25's.

    Args:
        passages: N, how many passages the scope holds.
        mean_length: of a passage, in the unit of the lengths that are scored.
        holding: for each term, how many passages hold it, > 0.
    """

    idf: dict[str, float]

    def __init__(self, passages: int, mean_length: float, holding: Mapping[str, int]) -> None:
        self._statistics = passages, mean_length, holding
        super().__init__(corpus=())

    def _initialize(self, _corpus: Sequence[Sequence[str]]) -> Mapping[str, int]:
        """Skip the library's count of a corpus, which is done already."""
        self.corpus_size, self.avgdl, holding = self._statistics
        return holding

    def _calc_idf(self, nd: Mapping[str, int]) -> None:
        """Compute the weights of terms as the library does, but none below `IDF_FLOOR`."""
        if nd:
            super()._calc_idf(nd)
        self.idf = {term: max(idf, IDF_FLOOR) for term, idf in self.idf.items()}

    def score(self, terms: Sequence[str], frequencies: Floats, lengths: Floats) -> Floats:
        """Scores of m passages, (m,), from how often each of t terms stands in them, (t, m)."""
        idf = np.array([self.idf[term] for term in terms])
        norm = self.k1 * (1 - self.b + self.b * lengths / max(self.avgdl, 1.0))
        saturated: Floats = frequencies * (self.k1 + 1) / (frequencies + norm)
        return idf @ saturated


def rank(table: PassageTable, asked: QueryMatches, eligible: Bools, now: float, recipe: Recipe = RECIPE) -> RankedRows:
    """
    Score the best passages by vector, the best by words, and what stands around them.

    Args:
        eligible: (n,), which passages may come; the others only stand around them.
        now: Unix seconds, for recency.

    Returns:
        The eligible passages of the pool, best first; ties go to the lower row. Scores compare within one call only:
        fused signals, divided by the root of the room that a passage takes, in characters.

    Source: LANTERN 3.2 (signals, fusion). Surroundings, speakers, users and room are what measured best here: see
    docs/papers.md.
    """
    bm25 = ScopedBM25(
        len(table), float(table.lengths.mean()) if len(table) else 0.0, {t: len(r) for t, r in asked.found.items()}
    )
    about = asked.cosines if asked.about is None else asked.about
    cosine = np.zeros(len(table)) if about is None else about
    spread = sum_term_weights(asked.found, bm25.idf, len(table))
    rows = np.concatenate([*_best(cosine, eligible, recipe.candidates), *_best(spread, eligible, recipe.candidates)])
    rows = widened(table, rows, recipe.reach_passages)
    rows = rows[eligible[rows]]
    around, weights = surroundings(table, rows, recipe.reach_passages)
    share = MEANING_SHARE * weights
    meaning = (cosine[rows] + (share * cosine.take(around)).sum(0)) / (1 + share.sum(0))
    length = (table.lengths[rows] + (weights * table.lengths.take(around)).sum(0)) / (1 + weights.sum(0))
    near = nearby(asked.found, len(table), rows, around, weights)
    named = [table.names[name] for name in sorted(asked.words) if name in table.names]
    preceding = table.before[rows]
    signals: dict[str, Floats] = {
        "meaning": meaning,
        "words": bm25.score(tuple(asked.found), near, length) if asked.found else np.zeros(len(rows)),
        "speaker": np.isin(table.speakers[rows], named).astype(float),
        "user": table.users[rows].astype(float),  # what a model says can be said again; only the user knows the rest
        "dated": in_periods(table.created_at[rows], asked.periods),
        "answers": ((preceding >= 0) & table.asks[preceding]).astype(float) - table.only_asks(rows),
        "importance": recency((now - table.created_at[rows]) / 86_400) * table.consequence[rows],
    }
    if asked.standing is not None:
        signals["importance"] = signals["importance"] * asked.standing[rows]
    if recipe.fusion == "minmax":
        scores = min_max_fusion(signals, recipe.weights)
    else:
        scores = reciprocal_rank_fusion(signals, recipe.weights, recipe.damping_ranks)
    if recipe.by_room:
        scores = scores / np.sqrt(np.maximum(table.lengths[rows], SHORT_CHARS))
    signals["named"] = exactly_named(table, asked)[rows].astype(float)
    named_weight = recipe.weights.get("named", 1.0)
    scores = scores + named_weight * signals["named"] * scores.max(initial=0.0)  # no likeness outdoes the very name
    return RankedRows(rows, scores, signals).part(_falling(scores))


def sum_term_weights(found: Mapping[str, Rows], weights: Mapping[str, float], passages: int) -> Floats:
    """Sum the weights of the terms that each of n passages holds: (n,)."""
    if not found:
        return np.zeros(passages)
    each = np.repeat([weights[term] for term in found], [len(rows) for rows in found.values()])
    return np.bincount(np.concatenate([*found.values()]), each, minlength=passages).astype(np.float64, copy=False)


def exactly_named(table: PassageTable, asked: QueryMatches) -> Bools:
    """Which passages hold an identifier of the question that stands in few messages: (n,)."""
    named = np.zeros(len(table), np.bool_)
    for name in asked.identifiers:
        if in_few_messages(table, asked.found[name]):
            named[asked.found[name]] = True
    return named


def in_few_messages(table: PassageTable, rows: Rows) -> bool:
    """Whether what these passages hold stands in few messages, however often each repeats it."""
    return len(np.unique(table.occurrences[rows])) <= NAMED_MESSAGES


def term_matrix(found: Mapping[str, Rows], rows: Rows) -> Bools:
    """Which of t terms each of m passages holds: (t, m)."""
    held = [holding.take(np.searchsorted(holding, rows), mode="clip") == rows for holding in found.values()]
    return np.array(held, np.bool_).reshape(len(found), len(rows))


def nearby(found: Mapping[str, Rows], passages: int, rows: Rows, around: Rows, weights: Floats) -> Floats:
    """
    How much of each of t terms stands in m passages and, weighed, in those around them: (t, m).

    Args:
        found: at most 32 terms.
        passages: n, of the whole scope.
        around: rows of those around, (k, m), with their weights, (k, m).
    """
    held = np.zeros(passages, np.uint32)  # a bit for each term: (t, n) would be filled and read in three times the time
    for term, holding in enumerate(found.values()):
        held[holding] |= np.uint32(1 << term)
    term_bits = np.arange(len(found), dtype=np.uint32)[:, None]
    near = np.zeros((len(found), len(rows)))
    for beside, weight in zip(around, weights, strict=True):
        near += (held.take(beside) >> term_bits & 1) * weight
    near += held.take(rows) >> term_bits & 1
    return near


def widened(table: PassageTable, rows: Rows, reach_passages: int = REACH_PASSAGES) -> Rows:
    """The rows and their neighbours within reach, (at most 11 m,) for m rows, rising, each once."""
    within = np.zeros(len(table), np.bool_)
    within[rows] = True
    for step in (table.before, table.after):
        at = rows
        for _ in range(reach_passages):
            at = step[at]
            at = at[at >= 0]
            within[at] = True
    return np.flatnonzero(within)


def surroundings(table: PassageTable, rows: Rows, reach_passages: int = REACH_PASSAGES) -> tuple[Rows, Floats]:
    """
    Neighbours of m passages in their conversations, and what each counts.

    Returns:
        Rows (k, m) and weights of the same shape: 1 / (1 + passages between the middles), 0 where the conversation ends
        or more than `REACH_CHARS` lie between them. k is at most 2 * reach_passages, as far as any of them counts.
    """
    around, weights = [], []
    middles = table.centres[rows]
    for step in (table.before, table.after):
        at = rows
        for passages in range(1, reach_passages + 1):
            at = np.where(at >= 0, step[at], -1)
            near = (at >= 0) & (np.abs(table.centres.take(at) - middles) <= REACH_CHARS)
            if not near.any():  # nor are those behind them
                break
            around.append(at)
            weights.append(near / (passages + 1.0))
    shape = len(around), len(rows)
    return np.array(around, np.int64).reshape(shape), np.array(weights, np.float64).reshape(shape)


def recency(age_days: Floats) -> Floats:
    """R of LANTERN's importance, I = R * F * D * c * s: it halves every seven days. Ages below 0 count as 0."""
    fresh: Floats = np.exp2(-np.maximum(age_days, 0.0) / HALF_LIFE_DAYS)
    return fresh


def consequence(has_calls: bool, has_files: bool) -> float:
    """
    D of LANTERN's importance: what called tools or names files mattered more.

    F, c and s count how often a message was recalled: `core/recall/reinforcement.py`, where the policy wants it.
    """
    return 1.0 + CALLS_BONUS * has_calls + FILES_BONUS * has_files


def min_max_fusion(signals: Mapping[str, Floats], weights: Mapping[str, float]) -> Floats:
    """
    Weighted sum of signals, each (m,), that are first stretched to 0..1 where they differ at all.

    Source: CombSUM of Fox and Shaw, TREC-2 1994, on scores stretched as by Lee, SIGIR 1997.
    """
    total: Floats = np.zeros(len(next(iter(signals.values()))))
    for name, values in signals.items():
        low, high = values.min(initial=np.inf), values.max(initial=-np.inf)
        if high > low:
            total = total + weights[name] * (values - low) / (high - low)
    return total


def reciprocal_rank_fusion(
    signals: Mapping[str, Floats], weights: Mapping[str, float], damping_ranks: int = RRF_DAMPING_RANKS
) -> Floats:
    """
    Weighted sum over signals, each (m,), of 1 / (damping + rank); alike values share a rank.

    Source: Cormack, Clarke and Büttcher, SIGIR 2009 (k = 60 there too), without weights.
    """
    total: Floats = np.zeros(len(next(iter(signals.values()))))
    for name, values in signals.items():
        total = total + weights[name] / (damping_ranks + ranks(values))
    return total


def ranks(values: Floats) -> Rows:
    """1-based rank of each of (m,) values, highest first; alike values share the best rank of theirs."""
    return len(values) - np.searchsorted(np.sort(values), values, side="right") + 1


def by_worth(ranked: RankedRows, probabilities: Floats, lengths: Floats) -> RankedRows:
    """
    Reorder by what each passage is worth for its room; the logarithm of that is the new score.

    Args:
        probabilities: (m,), of answering the question; they become a signal.
        lengths: (m,), characters. A short passage needs as much room as one of 300: its line and what it is cut from.
    """
    worth = np.log(np.maximum(probabilities, LEAST_PROBABILITY) / np.maximum(lengths, WORTH_CHARS))
    judged = RankedRows(ranked.rows, worth, {**ranked.signals, PROBABILITY: probabilities})
    return judged.part(_falling(worth))


def keep_order(ranked: RankedRows) -> RankedRows:
    """Keep the order, and give every passage a probability of 1: none of it is judged."""
    return RankedRows(ranked.rows, ranked.scores, {**ranked.signals, PROBABILITY: np.ones(len(ranked.rows))})


def diversified(ranked: RankedRows, vectors: Floats, balance: float) -> RankedRows:
    """
    Reorder so that what comes next is relevant and not yet said: maximal marginal relevance.

    Args:
        vectors: (n, d) of the whole table, unit length.
        balance: lambda, 0..1; 1 keeps the order.

    Source: Carbonell and Goldstein, SIGIR 1998; lambda 0.7 in LANTERN. Only the first 80 are reordered.
    """
    depth = min(len(ranked.rows), MMR_DEPTH)
    if balance >= 1 or depth < 2:
        return ranked
    scores, near = ranked.scores[:depth], vectors[ranked.rows[:depth]].astype(np.float32)
    relevance = balance * (scores - scores[-1]) / max(float(scores[0] - scores[-1]), 1e-9)
    parts = np.array_split((1 - balance) * near, range(ALIKE_AT_ONCE, depth, ALIKE_AT_ONCE))
    behind = relevance - np.concatenate([part @ near.T for part in parts])  # what each is worth after each other
    np.fill_diagonal(behind, -np.inf)  # and after itself
    after = list(behind)
    gains = relevance.copy()  # after what was chosen: they only shrink
    order = []
    for _ in range(depth):
        order.append(chosen := int(gains.argmax()))
        np.minimum(gains, after[chosen], out=gains)
    return ranked.part(np.concatenate([order, np.arange(depth, len(ranked.rows))]))


def _falling(values: Floats) -> Rows:
    """Places of (m,) values, highest first, equal ones in order."""
    order = np.argsort(-values)
    sorted_values = values[order]
    return np.argsort(-values, kind="stable") if (sorted_values[1:] == sorted_values[:-1]).any() else order


def in_periods(created_at: Floats, periods: Sequence[tuple[float, float]]) -> Floats:
    """Whether each was said in one of the periods: 1 or 0, (m,)."""
    said = np.zeros(len(created_at))
    for first, last in periods:
        said[(first <= created_at) & (created_at <= last)] = 1
    return said


def _best(values: Floats, eligible: Bools, count: int) -> tuple[Rows, Rows]:
    """
    Rows of the highest values above 0, at most `count` of all and `count` of those that may come; ties go to the lower
    row. What may not come lends its neighbours weight.
    """
    # what is no higher than the `count`-th of an eighth of them is none of the `count` highest
    some = values[::SAMPLED] * eligible[::SAMPLED]
    low = np.partition(some, -count)[-count] if len(some) > count else 0
    rows = np.flatnonzero(values >= low if low > 0 else values > 0)
    if len(rows) > count:
        high = values.take(rows)
        least = np.partition(high * eligible.take(rows), -count)[-count]
        rows = rows[np.flatnonzero(high >= least)]
    high, may = values[rows], eligible[rows]
    best = _highest(rows, high, count)
    return best, best if may.all() else _highest(rows[may], high[may], count)


def _highest(rows: Rows, values: Floats, count: int) -> Rows:
    """Of rows, rising, those of the highest values; ties go to the lower row."""
    if len(rows) <= count:
        return rows
    least = np.partition(values, -count)[-count]
    above = rows[values > least]
    return np.concatenate([above, rows[values == least][: count - len(above)]])
