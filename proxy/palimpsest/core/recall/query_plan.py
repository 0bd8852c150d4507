"""
The plan of a look-up: which questions are asked for one, and which answers are preferred.

By rules it is this much: a compound question ("When did I move, and who helped me?") is also asked in its parts, and
who asks about what they themselves said gets that first. Measured on LoCoMo the parts change nothing and names taken
apart ("Tim and John") lose half a point, so names are left together; on BEAM both rules gain (docs/papers.md).

Source: LightMem-SLM 3.3 and 3.4 (hypothetical queries, constraints, a candidate budget that is split among them).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import numpy as np

from palimpsest.core.recall.ranking import PROBABILITY, Floats, PassageTable, RankedRows, in_periods
from palimpsest.domain import Json, Plan, Teller

READ_CHARS = 500  # a longer text brings material along, and is no question to be taken apart
MOST_QUESTIONS = 4  # beside the one that is asked; each takes as long as that one
QUESTION_CHARS = 300
PART_WORDS = 3  # of a part, at least: fewer ask nothing by themselves
PREFERRED_ODDS = 2.0  # of a passage that was told by whom the question means, or when; 1.5 to 5 measure alike on BEAM

_PARTS = re.compile(
    r"[,;]?\s+(?:and|or|but|then)\s+(?=(?:what|when|where|who|whom|whose|which|why|how|did|do|does|is|are|was|were|has|"
    r"have|had|can|could|will|would|should)\b)",
    re.IGNORECASE,
)
_ONESELF = re.compile(r"\b(?:i|i['\u2019](?:m|d|ve|ll)|my|me|mine)\b", re.IGNORECASE)
_YOU = re.compile(r"\byou(?:r|rs|['\u2019](?:d|ve))?\b", re.IGNORECASE)


def plan_by_rules(text: str) -> Plan | None:
    """Split a compound question, and prefer the user's own words where it is about them; None: ask it unchanged."""
    if len(text) > READ_CHARS:
        return None
    parts = [part.strip(" ,;?") for part in _PARTS.split(text)]
    parts = [part for part in parts if len(part.split()) >= PART_WORDS]
    questions = tuple(parts[:MOST_QUESTIONS]) if len(parts) > 1 else ()
    is_own = bool(_ONESELF.search(text)) and not _YOU.search(text)
    return Plan(questions, (), Teller.USER if is_own else Teller.ANYONE) if questions or is_own else None


def plan_of(answer: Json, text: str) -> Plan | None:
    """
    The plan that a model made, without empty parts.

    Args:
        answer: as `features/assist/query_controller.SCHEMA` has it.
        text: the question.
    """
    asked = {text.strip().lower()}
    questions = []
    for question in answer["questions"]:
        bare = " ".join(question.split())[:QUESTION_CHARS]
        if bare and bare.lower() not in asked:
            asked.add(bare.lower())
            questions.append(bare)
    first, last = _day(answer["first_day"]), _day(answer["last_day"])
    period = ((first.timestamp(), (last + timedelta(days=1)).timestamp()),) if first and last and first <= last else ()
    plan = Plan(tuple(questions[:MOST_QUESTIONS]), period, Teller(answer["said_by"]))
    return None if plan == Plan() else plan


def apply_preferences(table: PassageTable, ranked: RankedRows, probabilities: Floats, plan: Plan) -> Floats:
    """
    The probabilities, (m,), with better odds for what was said by whom and when the plan means.

    They order what may come. Whether anything does is judged before, by the question alone.
    """
    if plan.teller is Teller.ANYONE and not plan.periods:
        return probabilities
    rows = ranked.rows
    told_by = {
        Teller.ANYONE: np.zeros(len(rows), np.bool_),
        Teller.USER: table.users[rows],
        Teller.OTHERS: ~table.users[rows],
        Teller.TOOLS: table.consequence[rows] > 1.0,
    }[plan.teller]
    told_then = in_periods(table.created_at[rows], plan.periods)
    odds: Floats = probabilities * PREFERRED_ODDS ** (told_by.astype(float) + told_then)
    return odds / (1.0 + odds - probabilities)


def interleave(lists: Sequence[RankedRows], limit: int) -> RankedRows:
    """
    Merge rankings round-robin. A row keeps its first place and its highest probability.

    Each list has an even share of the limit until another one ends, as LightMem-SLM splits its budget.
    """
    first = lists[0]
    names = [*first.signals]
    rows = np.concatenate([one.rows for one in lists])
    scores = np.concatenate([one.scores for one in lists])
    signals = {
        name: np.concatenate([one.signals.get(name, np.zeros(len(one.rows))) for one in lists]) for name in names
    }
    turn = np.concatenate([np.arange(len(one.rows)) for one in lists])
    order = np.argsort(turn, kind="stable")
    _, at = np.unique(rows[order], return_index=True)
    chosen = order[np.sort(at)][:limit]
    best = signals[PROBABILITY].copy()
    for place in chosen:
        best[place] = signals[PROBABILITY][rows == rows[place]].max()
    return RankedRows(rows, scores, {**signals, PROBABILITY: best}).part(chosen)


def _day(text: str) -> datetime | None:
    """A day as YYYY-MM-DD; None: it is none."""
    try:
        return datetime.strptime(text.strip(), "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        return None
