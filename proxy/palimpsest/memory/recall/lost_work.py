"""The restore after a compaction where no question is asked: an account of the lost work, and passages."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial

from palimpsest.core.archive.chunking import ASKS, WISHES, certainty_of, query_terms
from palimpsest.core.block.account_lines import QUOTE_CHARS, room_beside
from palimpsest.core.caller.client_table import Asides
from palimpsest.core.recall.coverage import LostPassage, by_coverage
from palimpsest.core.recall.human_text import human_text, untagged_words
from palimpsest.core.recall.utterance import says_nothing
from palimpsest.core.work.account import PREFIX, LostMessage, account, command_of
from palimpsest.core.work.calls import is_machine, written_edits
from palimpsest.core.work.excerpts import DIGITS
from palimpsest.core.work.names import is_file
from palimpsest.core.work.names import names as work_names
from palimpsest.core.work.need import LostText
from palimpsest.core.work.numbered import items_of, named_numbers
from palimpsest.core.work.statements import binds
from palimpsest.domain import TOOL_ROLES, Account, AccountLine, Candidate, Query
from palimpsest.store.engine import Ask, Row, ask_ahead
from palimpsest.store.search.passages import newest_texts, passages_of
from palimpsest.store.search.scope import Scope
from palimpsest.store.turns.cleared import cleared_in
from palimpsest.wire.frame import quotation

WORK_FILES = 2  # that several messages of a talk name: it is about work, though no tool was called
TYPED_CHARS, TYPED_WORDS = 600, 4  # of what somebody typed: more was pasted, less answers what is lost
REQUEST_START_CHARS, REQUEST_END_CHARS = 600, 200  # of such a one: it says first or last what to do
BINDING = 1  # the place of what is to hold, behind the newest
SAME_TASKS = 2  # in the same words but for names: of more the account says what was done
ALIKE = 0.7  # of the words of two requests that name the same, from which on they ask for the same
# Of lost work, the newest is read for its account. More gains nothing: all of it held .684 of what the rest of a
# session named, 80,000 characters .685, 50,000 .668 (`palimpsest bench work coding_sessions`, given so much).
READ_CHARS, READ_MESSAGES, MESSAGE_CHARS = 80_000, 400, 8_000


def uncleared(ask: Ask, scope: Scope, own: int, query: Query) -> list[Row]:
    """The passages of a conversation (`passages_of`), without what was cleared where the query leaves that out."""
    marks, passages = (
        partial(cleared_in, tenant=scope.tenant, own=own, since=math.inf),
        partial(passages_of, tenant=scope.tenant, conversation=own),
    )
    ask_ahead(ask, lambda: [marks, passages] if query.without_cleared else [passages])
    cleared = marks(ask).get(own, 0) if query.without_cleared else 0
    return [row for row in passages(ask) if row[1] > cleared]


def account_of(ask: Ask, rows: Sequence[Row], query: Query, quoted_chars: int = 0) -> Account | None:
    """The account of work in the lost messages of `passages_of`; shorter where so much is quoted beside it anyway."""
    if not query.account_chars or query.lost is None:
        return None
    lost = {
        occurrence: role in TOOL_ROLES
        for _, occurrence, full, role, *_ in rows
        if occurrence in query.lost and full not in query.visible_fulls
    }
    is_talk = not any(lost.values())
    # an empty result has no passage, and is how most commands say that they passed
    silent = query.lost.difference(occurrence for _, occurrence, *_ in rows) if lost else ()
    newest = max((at for _, at, full, role, *_ in rows if role == "user" and full in query.visible_fulls), default=0)
    asked = {newest, *lost, *(occurrence for occurrence in silent if occurrence > min(lost))}
    request = query.text
    room = READ_CHARS
    read: list[LostMessage] = []
    for row in reversed(newest_texts(ask, asked, READ_MESSAGES, MESSAGE_CHARS)):
        one = LostMessage(*row)
        if one.occurrence == newest and query.named is not None:  # nobody asks: the request is worked at
            request = one.text
        if one.occurrence not in lost and (one.role not in TOOL_ROLES or one.text):
            continue
        read.append(one)
        room -= len(read[-1].text)
        if room < 0:
            break
    if is_talk and not any(one.role == "assistant" and written_edits(one.text) for one in read):
        is_talk = not is_machine([one.text for one in read if one.role == "user"])
        files = Counter(name for one in read for name in {*work_names(one.text)} if is_file(name))
        # answers about anything name examples of files once; a talk about work comes back to some
        if sum(messages > is_talk for messages in files.values()) < WORK_FILES:
            return None
    else:
        is_talk = False
    # who asks something in a talk mostly wants an answer: all of an account held hardly an answer more
    chars = query.account_chars // 2
    if query.named is not None or not is_talk:
        chars = query.account_chars if is_talk else max(min(query.account_chars, room_beside(quoted_chars)), chars)
    due = (*_long_request(read, newest, query), *_listed(read, request, query))
    first = [line for line in due if 2 * line.chars <= query.account_chars][:1]  # that is half of what a block may say
    told = account(read[::-1], (*query.seen, *(line.text for line in first)), chars)
    return replace(told, lines=(*first, *told.lines), is_talk=is_talk)


def _long_request(read: Sequence[LostMessage], newest_visible: int, query: Query) -> list[AccountLine]:
    """
    How the newest request begins and ends, where it was lost, nobody asks now, and it is too long to be quoted.

    Of a command of the client's, what was typed is told, and not the text that it stands for.

    Args:
        read: what was lost, the newest first.
    """
    said = [one.text for one in read if one.role == "user"]
    lost = [] if query.named is None or is_machine(said) else read[::-1]
    for place in reversed(range(len(lost))):
        one = lost[place]
        command = command_of(lost, place) if len(one.text) > TYPED_CHARS else ""
        typed = human_text(one.text, Asides()) if one.role == "user" else ""
        text = command or " ".join(PREFIX.sub("", typed).split())
        is_long = len(text) > TYPED_CHARS and text[0] != "<"
        # what is short between tags, a client writes before and behind a request
        if not command and not is_long and typed[:1] in ("", "<", "["):
            continue
        if not (command or is_long) or one.occurrence <= newest_visible or one.occurrence in query.excluded:
            break
        start, end = text[:REQUEST_START_CHARS], text[-REQUEST_END_CHARS:]
        start, end = start.rpartition(" ")[0] or start, end.partition(" ")[2] or end
        end = end if len(one.text) < MESSAGE_CHARS else ""  # else it was read to no end
        told = f"{start} … {end}".rstrip() if is_long else text
        return [AccountLine("asked", told, (one.occurrence,))]
    return []


def _listed(read: Sequence[LostMessage], request: str, query: Query) -> list[AccountLine]:
    """The items that the request names by their numbers, of the newest lost list of an answer that has all of them."""
    numbers, seen = named_numbers(request), "\n".join(query.seen)
    for one in read if numbers else ():
        if one.role == "assistant" and (items := items_of(one.text, numbers)):
            told = [item for item in items if item not in seen]
            return [AccountLine("listed", "\n".join(told), (one.occurrence,))] if told else []
    return []


def typed_passages(rows: Sequence[Row], query: Query, limit: int) -> list[tuple[int, float]]:
    """
    The passages that people typed themselves in lost work, with a score of 1: wishes first, then the newest.

    The account tells what was done and named; what is long was pasted, or put together by a client.
    """
    chars: Counter[int] = Counter()
    for _, occurrence, _, role, length, _ in rows:
        chars[occurrence] += length if role == "user" else TYPED_CHARS + 1
    typed = [
        (id, tags)
        for id, occurrence, full, _, _, tags in reversed(rows)
        if chars[occurrence] <= TYPED_CHARS and full not in query.visible_fulls and _may_come(occurrence, query)
    ]
    wishes = [id for id, tags in typed if WISHES in tags.split()][: query.wishes]
    newest = [id for id, _ in typed if id not in wishes]
    return [(id, 1.0) for id in (*wishes, *newest)][:limit]


def covering_passages(rows: Sequence[Row], query: Query, named: frozenset[str], limit: int) -> list[tuple[int, float]]:
    """The lost passages that name most of what nothing visible names, each with its gain; wishes come first."""
    visible = query.visible_fulls
    shown = named.union(*(tags.split() for _, _, full, _, _, tags in rows if full in visible))
    lost = [
        LostPassage(
            *(id, chars, frozenset(tags.split()), role in TOOL_ROLES),
            certainty_of(tags.split()) if role == "user" else 0.0,
        )
        for id, occurrence, full, role, chars, tags in rows
        if full not in visible and _may_come(occurrence, query)
    ]
    wishes = [one for one in reversed(lost) if WISHES in one.tags][: query.wishes]
    held = {one.id for one in wishes}
    covering = by_coverage([one for one in lost if one.id not in held], shown, limit, with_prose=query.with_prose)
    most = covering[0][1] if covering else 0.0
    return [(one.id, gain) for one, gain in (*((one, most) for one in wishes), *covering)][:limit]


def worthwhile(found: Iterable[Candidate]) -> tuple[list[Candidate], int]:
    """
    Typed passages, and the characters of those that come in any case: the newest, and what is to hold; then tasks.

    Without a client's words, small talk, what a newer one says again, and of tasks in the same words all but two.
    """
    kept: list[tuple[int, Candidate]] = []
    told: list[tuple[set[str], set[str]]] = []
    alike: Counter[str] = Counter()
    for one in found:
        text = untagged_words(one.memory.text)
        if text.startswith(("<", "[")) or len(text.split()) < TYPED_WORDS or says_nothing(text):
            continue
        terms, named = set(query_terms(text)), work_names(text)
        if any(named == also and len(terms & other) >= ALIKE * len(terms | other) for other, also in told):
            continue
        told.append((terms, named))
        holds = WISHES in one.memory.tags or binds(LostText(one.memory.occurrence, "user", text))
        form = DIGITS.sub("0", " ".join(word for word in text.split() if not work_names(word)))
        alike[form] += 1
        if holds or alike[form] <= SAME_TASKS:
            kept.append((BINDING if holds else BINDING + 1 + (ASKS in one.memory.tags), one))
    newest = max((one.memory.occurrence for _, one in kept), default=0)
    kept.sort(key=lambda each: each[0] * (each[1].memory.occurrence != newest))
    surely = (one.memory for worth, one in kept if worth == BINDING or one.memory.occurrence == newest)
    return [one for _, one in kept], sum(len(quotation("user", one.text[:QUOTE_CHARS])) for one in surely)


def _may_come(occurrence: int, query: Query) -> bool:
    return occurrence not in query.excluded and (query.lost is None or occurrence in query.lost)
