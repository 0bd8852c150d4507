"""
Related statements: which others of a user's are about the same thing as one that a block will quote, updates above all.

A question leads to the statement whose words it shares, and that may be the old one: "Which port has the database?" is
nearer to "Our database is Postgres on port 5432" than to "We moved it to 5433". From one statement to the other it is
a shorter way, as both name the same thing. In the same way a rare name leads on: from "Our dog is called Bruno" to what
Bruno must not eat.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence, Set

import numpy as np

from palimpsest.core.archive.chunking import names, query_terms
from palimpsest.core.recall.ranking import LEAST_TELLING, Bools, Floats, PassageTable, QueryMatches, RankedRows, Rows
from palimpsest.domain.frozen import frozen

UPDATE = "update"  # the signal of what was said later about the same thing: how much alike they are
# Of `PassageTable.tells`: "Lena left the company" tells little by its form, and "My bike is a Cube Nuroad" not much.
LEAST_UPDATING = 0.2
STATEMENTS = 3  # of those that come first: each is looked up once more
LOOKED_AT = 8  # likest later statements, whose texts are read
MOST_NAMED = 12  # passages that hold a name: who is named more often is not told apart by it
NAMESAKES = 2  # statements that share a name, behind one
# Cosine to the question, against what has nothing but the name. Of the 18 needs of second_statements.json as many are
# reached as without it: 12 while the window slides, 16 after a summary; at .2, 7 and 10.
LEAST_NAMESAKE_NEARNESS = 0.1
LEAST_LATER_NEARNESS = 0.25  # ... or to the statement, of what was said later: "Mum moved" is far from "the trip"
FOLLOWED = 8  # passages to what the user said next: farther on, much lies between
MOST_STEPS = 64  # passages from a task to what came of it: nine of ten tasks of coding agents take no more
FOLLOWING_CHARS = 200  # of what the user said next, or of what came of an order: a longer one is a matter of its own
# Of `PassageTable.tells`, of an outcome that also asks: "Pushed to staging, 12 passed. Shall I open the PR?" has .44,
# "The VPN is down. Shall I wait?" .11.
LEAST_REPORTING = 0.4
BRIEF_CHARS = 60  # of an answer that tells nothing without what it answers: "5 attempts."
# Cosine, the weighed share of the words that both have among the words of either (Jaccard), and what the two have of
# the earlier one's subject. 27 of 27 corrections are as much alike ("My dentist is Dr. Okafor" / "Dr. Okafor retired,
# my dentist is Dr. Lindgren now"), and 21 of 462 statements and the likest later one; without the subject, 25 and 14.
LEAST_ALIKE = 0.65
# ... of two clauses and the cosine of the messages, where words tell of a change: "the port is 5441, rate 500" / "rate
# 540 now, port 5442". Of any later message BEAM's questions with all evidence in 3,000 characters fall by .05.
LEAST_ALIKE_CLAUSES = 0.7
# ... of one whose words say that something changed. Those of two lives that `LEAST_ALIKE` misses are from .59 ("mamma's
# operation was postponed, write her") to .64.
LEAST_ALIKE_CHANGED = 0.55
LEAST_ALIKE_RANKED = 0.45  # of one that is among the first itself: the question leads to both
SUBJECT_TERMS, SUBJECT_WEIGHT = 3, 0.2  # "Parents' evening is on Tuesday" / "They moved parents' evening, it's ..."
_CALLED = re.compile(r"\b(?:(?:is|are|was) (?:called|named)|heißt|s'appelle|se llama|si chiama) ['\"]?(\w[\w-]+)")
_OPENING = re.compile(r"(?:^|[.!?]\s)([A-Z][^\W\d_]{2,})")
_CLAUSE_ENDS = re.compile(r"[.!?;]\s+|\n+|, | - | (?:and|und|et|y|e) ")
CLAUSE_TERMS = 2  # of a clause that says something
_WORD = re.compile(r"\d[\d.,]*(?<![.,])|\w[\w'-]*")
_CHANGE = re.compile(  # not "now write the tests": where the word begins, the next task does
    r"(?i)\b(?:moved|changed|postponed|cancell?ed|rescheduled|switched|renamed|replaced|no longer|any ?more"
    r"|instead(?! of)|on leave|change of plan|as of|new (?:time|date|number|address|port|price|account)|not \d[\d.,:]*"
    r"|from (?:now on|next|(?:mon|tues|wednes|thurs|fri|satur|sun)day|march|april|may|june|july"
    r"|(?:jan|feb|aug|sept?|oct|nov|dec)\w*)|(?:is|are|it.s|\w{2,}s) now|now (?:is|are|it.?s|on|at|\d)|pushed to"
    r"|(?:fine|okay|healed|back) again|(?:gone|went) (?:up|down)|\d[\d/.,:]*\w{0,3} now"
    r"|(?:have|has|\w['\u2019](?:ve|s)) sold (?:the|my|our)|nicht mehr|jetzt|ab sofort|verlegt|statt(?:dessen)?"
    r"|verschoben|abgesagt|geändert|ya no|ahora es|cambi(?:ó|aron|amos)|aplazad[oa]|n.est plus|désormais|maintenant"
    r"|(?:ai|avons) vendu|reportée?|annulée?|déplacée?)\b"
)
REJECTION = re.compile(  # how a user's message begins that says that what it answers is wrong
    r"(?i)\W*(?:no\b(?!\W+(?:problem|worries|need|thanks?|one|idea|rush|matter|doubt|no)\b)|nope|wrong|incorrect|nein"
    r"|falsch|das stimmt nicht|non|you.re wrong|(?:that|this|it)(?:(?:.?s| is| was)"
    r" (?:wrong|incorrect|not (?:true|right))| (?:is|was)n.t (?:true|right)))\b(?!-)"
)


def statements(table: PassageTable, best: RankedRows) -> Rows:
    """
    The rows that are looked up once more: the first of all if it is an answer, and the user's first messages that do
    not only ask.
    """
    rows = best.rows
    stated = rows[table.users[rows] & ~table.only_asks(rows)][:STATEMENTS]
    answer = rows[:1][~table.users[rows[:1]]]
    return np.concatenate([answer, stated])


def states(table: PassageTable, rows: Rows) -> Bools:
    """Which of these rows state something, (n,)."""
    return np.logical_and(~table.only_asks(rows), table.tells[rows] >= LEAST_UPDATING)


def clauses(text: str) -> list[tuple[str, ...]]:
    """The terms of each clause of a text, those of all of it where none has enough of them."""
    parts = [query_terms(part) for part in _CLAUSE_ENDS.split(text)]
    return [part for part in parts if len({*part}) >= CLAUSE_TERMS] or [query_terms(text)]


def tells_of_change(text: str) -> bool:
    """Whether a text says that something is no longer as it was, whatever else it tells or orders."""
    return _CHANGE.search(text) is not None


@frozen
class Numbers:
    """The numbers of a text, and those beside each of its words, by term."""

    every: Set[str]
    beside: Mapping[str, Set[str]]

    def are_replaced_in(self, later: Numbers) -> bool:
        """Whether a later text gives another number of something in place of one of these."""
        return any(
            not numbers.isdisjoint(later.every) and not later.beside.get(term, frozenset()) <= numbers
            for term, numbers in self.beside.items()
        )


def gives_other_number(said: str, later: str) -> bool:
    """Whether a later text gives another number of something in place of a statement's: "16 chairs, not 14. Total?"."""
    return numbers_of(said).are_replaced_in(numbers_of(later))


def numbers_of(text: str) -> Numbers:
    """The numbers of a text, with the terms of the words beside each."""
    spoken = _WORD.findall(text)
    numbers = [(word, spoken[max(at - 1, 0) : at + 3]) for at, word in enumerate(spoken) if word[0].isdigit()]
    beside: dict[str, set[str]] = {}
    for number, words in numbers:
        for term in filter(str.isalpha, query_terms(" ".join(words))):
            beside.setdefault(term, set()).add(number)
    return Numbers({number for number, _ in numbers}, beside)


def later_statements(
    table: PassageTable, row: int, found: Mapping[str, Rows], weights: Mapping[str, float], eligible: Bools
) -> tuple[Rows, Floats]:
    """
    The user's later statements that share words with one, most alike first, behind them other messages, and how much.

    Args:
        found: terms of the statement, with the rows that hold them.
        weights: of its terms, what each tells.

    Returns:
        At most `LOOKED_AT` rows of each, and their cosines to the statement; 0 where one of the two has no vector.
    """
    rows = union(found.values())
    rows = rows[eligible[rows] & table.users[rows] & (rows > row) & (table.fulls[rows] != table.fulls[row])]
    shared = np.zeros(len(rows))
    for term, holding in found.items():
        shared += weights[term] * np.isin(rows, holding)
    some = np.argsort(-shared, kind="stable")[: LOOKED_AT**2]
    cosines = table.vectors[rows[some]].astype(np.float32) @ table.vectors[row].astype(np.float32)
    order = np.argsort(-(cosines + shared[some] / max(sum(weights.values()), 1e-9)), kind="stable")
    stated = states(table, rows[some][order])
    order = np.concatenate([order[stated][:LOOKED_AT], order[~stated][:LOOKED_AT]])
    return rows[some][order], cosines[order]


def likeness(one: Sequence[str], later: Collection[str], weights: Mapping[str, float], unknown: float) -> float:
    """
    How much a later statement has of the words of an earlier one, 0..1.2: of all that either says, and of its subject.

    Args:
        one: terms in their order.
        weights: of terms; any other weighs `unknown`.
    """

    def weight(some: Collection[str]) -> float:
        return sum(weights.get(term, unknown) for term in some)

    first, second = set(one), set(later)
    subject = set([*dict.fromkeys(one)][:SUBJECT_TERMS])
    if not first:
        return 0.0
    return weight(first & second) / weight(first | second) + SUBJECT_WEIGHT * weight(subject & second) / weight(subject)


def namesakes(
    table: PassageTable,
    row: int,
    found: Mapping[str, Rows],
    named: Mapping[str, Collection[str]],
    eligible: Bools,
    asked: QueryMatches,
) -> Rows:
    """
    The user's other statements that share a rare name with one, nearest to the question first, or later and like it.

    "Which treats for the dog?" leads to "Our dog is called Bruno", and only from there to what Bruno must not eat.

    Args:
        found: terms of the statement, with the rows that hold them.
        named: its names with their terms.

    Returns:
        At most `LOOKED_AT` rows, whose texts are still to be looked at: terms have lost their capitals.
    """
    terms = {term for each in named.values() for term in each}
    rare = [rows for term, rows in found.items() if term in terms and len(rows) <= MOST_NAMED]
    rows = union(rare)
    rows = rows[eligible[rows] & table.users[rows] & ~table.only_asks(rows) & (table.fulls[rows] != table.fulls[row])]
    if asked.cosines is not None:
        cosines = table.vectors[rows].astype(np.float32) @ table.vectors[row].astype(np.float32)
        is_update = (rows > row) & (cosines >= LEAST_LATER_NEARNESS)
        rows = rows[is_update | (asked.cosines[rows] >= LEAST_NAMESAKE_NEARNESS)]
    return nearest_first(rows, asked)[:LOOKED_AT]


def next_said(table: PassageTable, row: int) -> int:
    """The row of what the user said next in the conversation of a passage; -1: nothing near it."""
    at = int(table.after[row])
    for _ in range(FOLLOWED):
        if at >= 0 and (not table.users[at] or table.fulls[at] == table.fulls[row]):
            at = int(table.after[at])
    return at if at >= 0 and table.users[at] else -1


def answered(table: PassageTable, row: int) -> int:
    """The row of the user's message to which a passage is a brief answer; -1: it is none."""
    at = int(table.before[row])
    is_brief = not table.users[row] and table.lengths[row] <= BRIEF_CHARS
    return at if is_brief and at >= 0 and table.users[at] else -1


def answer_to(table: PassageTable, row: int, asked: QueryMatches) -> int:
    """
    The row of the answer to a user's message: of the last before the user spoke again, the passage nearest to the
    question; -1: none.
    """
    at, answer = int(table.after[row]), -1
    for _ in range(MOST_STEPS if table.users[row] else 0):
        if at < 0 or (table.users[at] and table.fulls[at] != table.fulls[row]):
            break
        answer = answer if table.users[at] else at
        at = int(table.after[at])
    of_answer = np.flatnonzero(table.occurrences == table.occurrences[answer]) if answer >= 0 else table.ids[:0]
    return int(nearest_first(of_answer, asked)[0]) if len(of_answer) else -1


def outcome(table: PassageTable, row: int) -> int:
    """
    The row of the last message before the user spoke again, which is the outcome of a task; -1: none near.

    Whatever tools were used for was a task, if it asks or tells something, too. A long answer that no step leads to is
    no report, but what was asked for: a poem, or a recipe.
    """
    is_order = not table.asks[row] and table.tells[row] < LEAST_TELLING
    at, last = int(table.after[row]), -1
    for _ in range(MOST_STEPS if table.users[row] and not table.wishes[row] else 0):
        if at < 0 or (table.users[at] and table.fulls[at] != table.fulls[row]):
            is_brief = is_order and last >= 0 and table.lengths[last] <= FOLLOWING_CHARS
            if last >= 0 and table.asks[last] and table.tells[last] < LEAST_REPORTING:
                return -1
            return last if is_brief or (last >= 0 and not table.users[table.before[last]]) else -1
        if not table.users[at] and (last < 0 or table.occurrences[at] != table.occurrences[last]):
            last = at
        at = int(table.after[at])
    return -1


def next_statement(table: PassageTable, row: int, eligible: Bools, asked: QueryMatches) -> list[int]:
    """
    The row of what the user said next in the conversation of a statement, where it tells something near the question.

    "The vet put him on tablets" follows "Our dog is called Bruno", and neither names him nor calls him a dog.
    """
    at = next_said(table, row)
    tells = at >= 0 and eligible[at] and states(table, np.array([at]))
    is_near = asked.cosines is None or asked.cosines[at] >= LEAST_NAMESAKE_NEARNESS
    return [at] if tells and is_near and table.lengths[at] <= FOLLOWING_CHARS else []


def all_names(text: str) -> dict[str, None]:
    """The names in a statement, and what it says that something is called, as hosts and pets often have no capital."""
    return dict.fromkeys((*names(text), *_CALLED.findall(text)))


def opening_words(text: str) -> list[str]:
    """The capitalised words that open the sentences of a statement, any of which may be a name."""
    return _OPENING.findall(text)


def has_name(text: str, named: Collection[str], openings: Collection[str] = ()) -> bool:
    """Whether a text holds one of these names, as it is written, or one of some opening words inside a sentence."""
    is_named = any(re.search(rf"\b{re.escape(name)}\b", text) for name in named)
    return is_named or not {*names(text)}.isdisjoint(openings)


def union(some: Iterable[Rows]) -> Rows:
    """All rows of several lists, each once, in order."""
    return np.unique(np.concatenate([*some, np.empty(0, np.int64)])).astype(np.int64)


def nearest_first(rows: Rows, asked: QueryMatches) -> Rows:
    """Rows in the order of their nearness to the question."""
    near = np.zeros(len(rows)) if asked.cosines is None else asked.cosines[rows]
    return rows[np.argsort(-near, kind="stable")]
