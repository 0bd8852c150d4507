"""Which passages may come: lost or of other conversations in reach, not visible, not cleared, each message once."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from posixpath import commonprefix

import numpy as np

from palimpsest.core.archive.chunking import query_terms
from palimpsest.core.recall.ranking import (
    LEAST_TELLING,
    Bools,
    Floats,
    PassageTable,
    QueryMatches,
    Rows,
    sum_term_weights,
)
from palimpsest.core.recall.utterance import has_question, read_utterance, words
from palimpsest.core.work.statements import is_order, tells_nothing
from palimpsest.domain import Query
from palimpsest.memory.recall.scope_reader import ScopeReader
from palimpsest.settings.policy import RecallPolicy

EVERY_KIND = len(RecallPolicy().kinds)
LEAST_MESSAGE_CHARS = 10  # on average; more lost messages are no small loss, and need not be looked at
LAST_BITS = 0xFFFF  # of a number, in which 99 of 100 differ from each of a conversation's messages
REPEAT_SECONDS = 3600.0  # within which a message that is sent again is another attempt at its answer
MOST_COPIES = 16  # of a request, whose texts are read
TEMPLATE_WORDS, LEAST_OF_TEMPLATE = 3, 3  # that open so many requests alike: "Proofread this sentence: ..."
TEMPLATE_TERMS = 2  # in its words: "can you help me" has one, and opens anything
MOST_OF_TEMPLATE = 200  # requests, the newest, whose texts are read
MOST_REPORTED = 1  # term beside those of an order, of a mere report of its own conversation: "Deploy passes."
ORDER_CHARS = 60  # of an order for the next step, or of a report that it was done
REPEATED = 3  # times as many passages are looked at as are wanted, before all are: few messages are said twice


def eligible_passages(table: PassageTable, query: Query, own: int) -> Bools:
    """Which passages may come: lost here, or of other conversations in reach; neither visible nor excluded."""
    kept = np.ones(len(table), np.bool_)
    if query.lost is not None:
        rows = np.flatnonzero(table.conversations == own)
        kept[rows] = among(table.occurrences[rows], query.lost)
    for values, unwanted in ((table.fulls, query.visible_fulls), (table.occurrences, query.excluded)):
        if unwanted:
            kept &= ~among(values, unwanted)
    return kept


def uncleared_passages(table: PassageTable, cleared: Mapping[int, int]) -> Bools | None:
    """Which passages users did not clear on purpose; None: all. `cleared`: last occurrences by conversation."""
    if not cleared:
        return None
    kept = np.ones(len(table), np.bool_)
    for conversation, last in cleared.items():
        kept &= (table.conversations != conversation) | (table.occurrences > last)
    return kept


def without_rejected(table: PassageTable, query: Query, own: int, now: float) -> Bools:
    """
    Which passages are no answer that its user, it seems, has rejected: the message that it answers was soon sent again.

    That is so where the message began its conversation, the user has said nothing more there, and this conversation or
    a later one begins with it: most clients send no id, so an answer made again begins another one. Of what was sent
    again in the past only lone answers count: what agents did stays known.
    """
    kept = np.ones(len(table), np.bool_)
    openings = np.flatnonzero(table.before < 0)  # of conversations; those that say the same stand together, by time
    openings = openings[np.lexsort((table.created_at[openings], table.fulls[openings]))]
    fulls, sent_at = table.fulls[openings], table.created_at[openings]
    was_again = (fulls == np.append(fulls[1:], 0)) & (np.append(sent_at[1:], np.inf) - sent_at < REPEAT_SECONDS)
    is_again_now = among(fulls, query.visible_fulls) & (now - sent_at < REPEAT_SECONDS)
    is_again = (was_again | is_again_now) & (table.conversations[openings] != own)
    conversations, places = np.unique(table.conversations[openings[is_again]], return_index=True)
    openings, is_again_now = openings[is_again][places], is_again_now[is_again][places]  # one for each conversation
    rows = np.flatnonzero(np.isin(table.conversations, conversations))
    of = np.searchsorted(conversations, table.conversations[rows])  # for each row the place of its conversation
    is_behind = table.occurrences[rows] > table.occurrences[openings[of]]
    rows, of, last = rows[is_behind], of[is_behind], np.zeros(len(openings), np.int64)
    last[of] = table.occurrences[rows]  # rows rise, so the last message of each is what is left
    is_no_lone_answer = table.users[rows] | ((table.occurrences[rows] != last[of]) & ~is_again_now[of])
    kept[rows[~np.isin(of, of[is_no_lone_answer])]] = False
    return kept


def lost_passages(table: PassageTable, query: Query, own: int) -> Bools:
    """Which passages this conversation lost and no visible message or block repeats: (n,)."""
    lost = np.zeros(len(table), np.bool_)
    if query.whole_chars and query.lost and len(query.lost) <= query.whole_chars // LEAST_MESSAGE_CHARS:
        rows = np.flatnonzero(table.conversations == own)
        rows = rows[among(table.occurrences[rows], query.lost)]
        lost[rows[~among(table.fulls[rows], query.visible_fulls)]] = True
    return lost


def without_copies(reader: ScopeReader, eligible: Bools, asked: QueryMatches) -> Bools:
    """The eligible passages without earlier copies of the request, which would rank first and answer nothing."""
    table = reader.table
    terms = len(asked.found) + len(asked.absent)
    is_alike = (2 * _held(table, asked, asked.found) > terms) & (table.lengths <= len(asked.text))
    rows = np.flatnonzero(eligible & _requests(table) & is_alike)[-MOST_COPIES:]
    kept = eligible.copy()
    kept[[row for row, text in reader.texts_of(rows).items() if repeats(text, asked.text)]] = False
    return kept


def without_template(reader: ScopeReader, eligible: Bools, asked: QueryMatches) -> Bools:
    """
    The eligible passages without requests that begin as this one does and have no other word in common with it.

    Programs ask in one wording for ever new material, and some people do: what is near for the wording tells nothing.
    Material behind a colon may look like a statement: "Proofread this sentence: The office is in Lisbon." But who asks
    a question behind one ("Trip to Lisbon: where do we sleep?") looks for what was noted under the same title.
    """
    table, said = reader.table, words(asked.text)
    opening = {*query_terms(" ".join(said[:TEMPLATE_WORDS]))}
    before, colon, _ = asked.text.partition(":")
    if not opening or not opening <= asked.found.keys() or (colon and has_question(asked.text)):
        return eligible
    least = max(TEMPLATE_WORDS, len(words(before)) if colon else 0)
    is_request = table.users & ~table.wishes if colon else _requests(table)
    rows = np.flatnonzero(eligible & is_request & (_held(table, asked, opening) == len(opening)))
    if len(rows) < LEAST_OF_TEMPLATE:
        return eligible
    read = reader.texts_of(rows[-MOST_OF_TEMPLATE:])
    alike = {row: len(commonprefix([words(text), said])) for row, text in read.items()}  # words, from the first
    length = sorted((0,) * LEAST_OF_TEMPLATE + (*alike.values(),))[-LEAST_OF_TEMPLATE]
    template = {*query_terms(" ".join(said[:length]))}
    material = {*query_terms(" ".join(said[length:]))} - template
    if length < least or len(template) < (1 if colon else TEMPLATE_TERMS) or not material:
        return eligible
    shares = _held(table, asked, material & asked.found.keys()) > 0
    kept = eligible.copy()
    kept[[row for row, count in alike.items() if count >= length and not shares[row]]] = False
    return kept


def without_orders(reader: ScopeReader, eligible: Bools, asked: QueryMatches) -> Bools:
    """For an order ("ok. run the tests"), the eligible passages without the same order and mere reports ("Pushed.")."""
    if not is_order(asked.text):
        return eligible
    table = reader.table
    brief = eligible & ~table.wishes & (table.lengths <= ORDER_CHARS)
    read = reader.texts_of(np.flatnonzero(brief)[-MOST_OF_TEMPLATE:]).items()
    asked_for = {*query_terms(asked.text)}

    def is_empty(row: int, text: str) -> bool:
        if table.users[row]:
            return repeats_order(text, asked.text)
        is_own = table.conversations[row] == asked.own
        return tells_nothing(text) and not (is_own and len({*query_terms(text)} - asked_for) > MOST_REPORTED)

    kept = eligible.copy()
    kept[[row for row, text in read if is_empty(row, text)]] = False
    return kept


def _requests(table: PassageTable) -> Bools:
    """Which passages are requests, and tell little beside: (n,)."""
    requests: Bools = table.users & ~table.wishes & (table.asks | (table.tells < LEAST_TELLING))
    return requests


def _held(table: PassageTable, asked: QueryMatches, terms: Collection[str]) -> Floats:
    """How many of these terms of the question each passage holds: (n,)."""
    return sum_term_weights({term: asked.found[term] for term in terms}, dict.fromkeys(terms, 1.0), len(table))


def repeats_order(text: str, request: str) -> bool:
    """Whether a text is an order that says no more than the request; "run the tests with two workers" says more."""
    return is_order(text) and {*query_terms(request)}.issuperset(query_terms(text))


def repeats(text: str, request: str) -> bool:
    """
    Whether a text is the same request and adds no word: "Never deploy" is no copy of "Deploy".

    What is no question says as much as the request, but for its thanks: "Size 43" is no copy of "Do I wear size 43?"
    """
    said, requested = set(words(text)), set(words(request))
    asks, is_question = has_question(text), has_question(request)
    politeness = " ".join(sorted(requested - said))
    return said <= requested and (asks or (not is_question and (not politeness or _is_polite(politeness))))


def _is_polite(more: str) -> bool:
    """Whether words are small talk, of which "not" is none."""
    read = read_utterance(more)
    return read.is_small_talk and not read.function_share


def first_of_equals(table: PassageTable, rows: Rows, count: int) -> Rows:
    """Places of the first `count` of these rows; of messages that say the same only the one that comes first."""
    first: Rows = np.empty(0, np.int64)
    for looked_at in (REPEATED * count, len(rows)):
        fulls, occurrences = table.fulls[rows[:looked_at]], table.occurrences[rows[:looked_at]]
        _, at, group = np.unique(fulls, return_index=True, return_inverse=True)
        first = np.flatnonzero(occurrences == occurrences[at][group])[:count]
        if len(first) == count:
            break
    return first


def among(values: Rows, wanted: Collection[int]) -> Bools:
    """
    Which of n values are among some wanted ones: (n,).

    Sorting a hundred thousand takes 4 ms. So those that end in other bits than all wanted ones are left out first.
    """
    numbers = np.fromiter(wanted, np.int64, len(wanted))
    ends = np.zeros(LAST_BITS + 1, np.bool_)
    ends[numbers & LAST_BITS] = True
    rows = np.flatnonzero(ends.take(values & LAST_BITS))
    found = np.zeros(len(values), np.bool_)
    found[rows] = np.isin(values[rows], numbers)
    return found
