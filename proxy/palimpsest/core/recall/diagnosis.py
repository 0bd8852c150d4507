"""
The diagnosis of a request: what to look for and how much to add, from identity, lineage and pressure.

    side request, sub-agents' first words, twins      nothing
    a compaction, and a human asks something          a restore block: what it took away and is needed now
    a compaction, and nobody does                     a restore block: what it took away and nothing else says
    an edit of the message that got that block        the same: the model sees what it saw then
    a full sliding window, a human message            a recall block
    something was lost before, a human message        a recall block
    a tool loop, cleared tool results, a retry        nothing new; what was said before is replayed

What the user dropped on purpose (an edit, a cleared history) is not lost and does not come back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

from palimpsest.core.archive.chunking import tags
from palimpsest.core.block.pressure import counts_chars, limited_by_client, recall_budget, restore_budget, roomy_budget
from palimpsest.core.caller.client_table import Asides
from palimpsest.core.recall.generosity import Demand, demanded
from palimpsest.core.recall.human_text import is_unspoken, newest_spoken, typed_behind
from palimpsest.core.recall.utterance import QUESTION_MARKS, read_utterance, says_nothing
from palimpsest.domain import (
    TOOL_ROLES,
    BlockKind,
    Budget,
    Chat,
    Diagnosis,
    Event,
    Head,
    HeadFlag,
    Lineage,
    Message,
    Note,
    Pressure,
    Query,
    Reach,
    Role,
    Speaker,
    frozen,
)
from palimpsest.settings.policy import Policy
from palimpsest.wire.message import readable

NO_ASIDES = Asides()
QUERY_CHARS = 2000  # MiniLM reads some 1,000 characters; the rest still serves full text
CONTEXT_CHARS = 1500  # of what stands around the question: the last messages, a summary's opening
WISHES_UNASKED = 24  # lasting wishes that come back where nobody asks: some 2,000 characters of 6,000
ACCOUNT_CHARS = 2700  # of the work that was lost: with the frame and some quotes, half of what a restore may say
ANSWER_CHARS = 600  # of a passage that answers a question: some paragraphs (CALMem 6)
REPLAY_SHARE = 0.04  # of the window, replayed blocks together: about three restores in 128,000 tokens
CUT_REPLAY_SHARE = 0.3  # ... where the proxy makes the room itself: a restore and some recalls in 16,000
WARNED_MESSAGES = 20  # within which a full window gets no precaution again, however soon its block slid out
MIN_BLOCK_CHARS = 300  # the frame takes half of it; less says nothing


@frozen
class SeenBlocks:
    """Earlier blocks that the model sees: repeated, or held by the provider."""

    tokens: int = 0
    occurrences: frozenset[int] = frozenset()  # that they carry
    texts: Sequence[str] = ()


@frozen
class _HumanWords:
    """The newest words of a person in a request."""

    newest: int  # index of the newest user message with a text, or -1
    place: int  # of that in the history
    at: int  # index of the newest that a person wrote, or -1
    text: str
    is_last: bool  # the request ends with it
    is_summary: bool  # nothing was typed in it

    @staticmethod
    def of(chat: Chat, asides: Asides, summary_at: Sequence[int]) -> _HumanWords:
        newest = newest_human(chat)
        at, text = newest_spoken(chat, asides)
        behind = sum(not message.is_instruction for message in chat.messages[newest:])
        place = len(chat.history) - behind if newest >= 0 else -1
        is_summary = newest >= 0 and place in summary_at
        if is_summary and at == newest and (typed := typed_behind(chat.messages[at], asides)):
            text, is_summary = typed, False  # some clients put it into the message of the summary
        return _HumanWords(newest, place, at, text, at == newest and _speaks_last(chat, newest), is_summary)


NO_BLOCKS = SeenBlocks()


def diagnose(
    chat: Chat,
    fulls: Sequence[int],
    speaker: Speaker,
    lineage: Lineage,
    conversation: str,
    now: Pressure,
    policy: Policy,
    blocks: SeenBlocks = NO_BLOCKS,
    asides: Asides = NO_ASIDES,
    *,
    makes_room: bool = False,
) -> Diagnosis:
    """
    Decide before the look-up what to look for and how much may be said.

    Args:
        fulls: fingerprints of `chat.history`, in order.
        now: with the replayed blocks in it.
        asides: what clients write in messages of the user's: no question, and nobody speaks there.
        makes_room: what is too much of the history stays behind, so that a block never makes the window full.
    """
    found = Diagnosis(speaker, conversation, lineage, now)
    if lineage.role is Role.SIDE:
        return replace(found, note=Note.SIDE_REQUEST)
    if lineage.ambiguous:
        return replace(found, note=Note.AMBIGUOUS)
    spoken = _HumanWords.of(chat, asides, lineage.summary_at)
    lost, restores = lost_occurrences(lineage), lineage.restores
    if lineage.event is not Event.RETRY and (spoken.is_last or restores):
        found = replace(found, anchor=spoken.newest)
    reach = speaker.reach(policy.memory.reach)
    if lineage.event is Event.RETRY or (reach is Reach.CONVERSATION and not lost):
        return replace(found, note=Note.CALM)
    if (not spoken.is_last and not restores) or (spoken.newest < 0 and (chat.held or _begins_compacted(chat))):
        return replace(found, note=Note.TOOL_LOOP if _ends_in_result(chat, asides) else Note.NO_QUESTION)
    share = CUT_REPLAY_SHARE if makes_room else REPLAY_SHARE
    at_cap = blocks.tokens >= share * now.window_tokens > 0
    sheds = at_cap and (restores or makes_room)  # after a cut, who asks for what was said means it
    found = replace(found, tells_facts=policy.facts.are_told and lineage.role is Role.MAIN and (sheds or not at_cap))
    is_idle = spoken.is_last and says_nothing(spoken.text)
    if is_idle and not (restores and _goes_on(chat, spoken)):
        return replace(found, note=Note.NOTHING_RELEVANT)
    budget = _restore_budget(now, makes_room) if restores else _recall_budget(chat, now, at_cap, makes_room)
    if isinstance(budget, Note):
        return replace(found, note=budget)
    kind = BlockKind.RESTORE if restores else BlockKind.RECALL
    demand = demanded(policy.memory.generosity, kind, lineage.head)
    asks = not restores or (not is_idle and _asks(lineage, spoken))
    text, ask_journal = _question(chat, lineage, spoken, asks)
    told = () if sheds else tuple(blocks.texts)
    held = () if lineage.head is None else (lineage.head.fulls[index] for index in lineage.held)
    query = Query(
        tenant=speaker.tenant,
        conversation=conversation,
        text=text,
        reach=reach,
        user=speaker.user,
        scope=speaker.scope,
        folder=speaker.folder if lineage.role is Role.MAIN else None,
        lost=lost,
        visible_fulls=frozenset(chain(fulls, held)),
        excluded=frozenset() if sheds else blocks.occurrences,
        named=None if asks else _new_names(chat, lineage),
        with_prose=not is_idle,  # who says "go on" in a chat needs what was told
        without_cleared=True,
        least_help=demand.least_help,
        wishes=demand.wishes if asks else WISHES_UNASKED * bool(demand.wishes),
        # In a full window rules would come again every few messages.
        told=None if lineage.window_full else (*(one.text for one in chat.messages if one.role == "user"), *told),
        warned=_told_lately(lineage.head) if lineage.head and lineage.window_full else frozenset(),
        whole_chars=demand.whole_chars,
        account_chars=min(ACCOUNT_CHARS, budget.chars // 2) if restores else 0,
        seen=_visible_texts(chat, told),
    )
    return replace(
        found,
        kind=kind,
        budget=answering(budget, demand) if asks else budget,
        query=query,
        anchor=spoken.newest,
        ask_journal=ask_journal,
        sheds=sheds,
    )


def _restore_budget(now: Pressure, makes_room: bool) -> Budget | Note:
    """How much a restore may say; or why it may say nothing."""
    budget = restore_budget(now)
    if budget is not None and makes_room:
        budget = min(budget, roomy_budget(now), key=lambda one: one.chars)
    return Note.WINDOW_FULL if budget is None or budget.chars < MIN_BLOCK_CHARS else budget


def _recall_budget(chat: Chat, now: Pressure, at_cap: bool, makes_room: bool) -> Budget | Note:
    """How much a recall may say beside what the client sends; or why it may say nothing."""
    budget = roomy_budget(now) if makes_room else recall_budget(now.tier)
    if budget is None:
        return Note.PRESSURE
    if at_cap and not makes_room:
        return Note.REPLAY_CAP
    return limited_by_client(budget, _chars(chat, counts_chars(budget)))


def newest_question(chat: Chat, asides: Asides = NO_ASIDES) -> str:
    """The user's message at the end of the request; "" if it ends otherwise."""
    at, said = newest_spoken(chat, asides)
    return _both_ends(said, QUERY_CHARS) if _speaks_last(chat, at) and at == newest_human(chat) else ""


def lost_occurrences(lineage: Lineage) -> frozenset[int]:
    """Occurrences that compactions of this branch removed so far, including this request's."""
    if lineage.head is None:
        return frozenset()
    return frozenset(lineage.head.lost) | frozenset(newly_lost(lineage))


def newly_lost(lineage: Lineage) -> tuple[int, ...]:
    """Occurrences that this request's compaction removed: messages dropped, cut or replaced in place."""
    head = lineage.head
    if head is None or not lineage.event.is_compaction:
        return ()
    replaced = [lineage.kept[at] for at in lineage.changed]
    return tuple(sorted(head.occurrences[index] for index in {*lineage.dropped, *replaced}))


def answering(budget: Budget, demand: Demand) -> Budget:
    """Limit a budget to passages that are worth their room, none of which fills the block."""
    return replace(budget, passage_chars=min(budget.passage_chars, ANSWER_CHARS), least_worth=demand.least_worth)


def _told_lately(head: Head) -> frozenset[int]:
    """The occurrences that blocks quoted within the last messages, though they may have slid out of the window."""
    first = min(sorted({*head.lost, *head.occurrences})[-WARNED_MESSAGES:], default=0)
    return frozenset(at for one in head.blocks if one.occurrence >= first for at in one.block.occurrences)


def _goes_on(chat: Chat, spoken: _HumanWords) -> bool:
    """Whether small talk means that the work goes on: it asks for that, or it agrees to what was just proposed."""
    asks = read_utterance(spoken.text).go_on > 0
    if asks or spoken.text.endswith(QUESTION_MARKS):
        return asks
    before = next(
        (m for m in reversed(chat.messages[: spoken.newest]) if m.role == "assistant" and m.text.strip()), None
    )
    return before is not None and before.text.rstrip().endswith(QUESTION_MARKS)


def _asks(lineage: Lineage, spoken: _HumanWords) -> bool:
    """Whether the request ends with a human message in words that was never there before."""
    if not spoken.is_last or not read_utterance(spoken.text).words:
        return False
    at = spoken.place
    is_reworded = lineage.restores_again and at in lineage.changed
    is_new = at >= len(lineage.kept) or lineage.kept[at] < 0 or is_reworded
    return is_new and not spoken.is_summary


def _new_names(chat: Chat, lineage: Lineage) -> frozenset[str]:
    """What the new messages name, the client's summary among them; what the others name is stored with them."""
    history = chat.history
    new = [history[at] for at in lineage.fresh if at < len(history)]
    return frozenset(tag for message in new for tag in tags(readable(message.text, message.calls)))


def _visible_texts(chat: Chat, replayed: Sequence[str]) -> tuple[str, ...]:
    """All that the model sees: messages with their calls, and earlier blocks."""
    return (*(readable(message.text, message.calls) for message in chat.messages), *replayed)


def _question(chat: Chat, lineage: Lineage, spoken: _HumanWords, asks: bool) -> tuple[str, tuple[int, ...]]:
    """The query text, and occurrences of the journal that belong into it."""
    if spoken.is_last:
        text = _both_ends(spoken.text, QUERY_CHARS)
        if asks:
            return text, ()
        return f"{text}\n{_context(chat, lineage, spoken.at)}", ()
    # inside a tool loop the human message may be among what was dropped
    tools = [m.text for m in chat.messages[spoken.at + 1 :] if m.role in TOOL_ROLES]
    text = "\n".join(
        _both_ends(part, CONTEXT_CHARS // 2) for part in [*([spoken.text] if spoken.text else []), *tools[-2:]]
    )
    around = _context(chat, lineage, len(chat.messages))
    return f"{text}\n{around}"[:QUERY_CHARS], _last_human_lost(lineage) if spoken.at < 0 else ()


def _context(chat: Chat, lineage: Lineage, before: int) -> str:
    """What stands around the question: the summary, then the messages just before."""
    history = chat.history
    summary = [history[at].text[:CONTEXT_CHARS] for at in lineage.summary_at[:1] if 0 <= at < len(history)]
    recent = [m.text for m in chat.messages[max(0, before - 4) : before] if not m.is_instruction and m.text]
    room = CONTEXT_CHARS // 4
    return "\n".join([*summary, *(_both_ends(text, room) for text in recent)])


def _last_human_lost(lineage: Lineage) -> tuple[int, ...]:
    """The occurrence of the last user message that was dropped, or empty."""
    head = lineage.head
    if head is None:
        return ()
    said = [head.occurrences[index] for index in lineage.dropped if head.flags[index] & HeadFlag.USER]
    return tuple(said[-1:])


def newest_human(chat: Chat) -> int:
    """Index of the newest user message with a text, or -1."""
    return next((at for at in range(len(chat.messages) - 1, -1, -1) if _is_human(chat.messages[at])), -1)


def _ends_in_result(chat: Chat, asides: Asides) -> bool:
    """Whether a tool has spoken last, but for instructions and what a client wrote in the user's name."""
    said = (one for one in reversed(chat.messages) if not (one.is_instruction or is_unspoken(one, asides)))
    return next((one.role in TOOL_ROLES for one in said), False)


def _begins_compacted(chat: Chat) -> bool:
    """Whether the provider compacted the beginning: it ignores whatever stands in front of that."""
    return bool(chat.history and chat.history[0].opaque)


def _speaks_last(chat: Chat, newest: int) -> bool:
    """Whether nothing follows a message but instructions (lists, reminders), and how its answer is to begin."""
    behind = [message for message in chat.messages[newest + 1 :] if not message.is_instruction]
    return newest >= 0 and len(behind) < 2 and all(one.role == "assistant" and not one.calls for one in behind)


def _chars(chat: Chat, most: int) -> int:
    """Characters of what the client sends, at most `most`."""
    chars = 0
    for message in reversed(chat.messages):
        chars += len(message.text) + sum(len(call.arguments) for call in message.calls)
        if chars >= most:
            return most
    return chars


def _is_human(message: Message) -> bool:
    return message.role == "user" and bool(message.text.strip())


def _both_ends(text: str, chars: int) -> str:
    """Both ends of a long text: what it wants stands at either one."""
    return text if len(text) <= chars else f"{text[: chars // 2]} … {text[-chars // 2 :]}"
