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
from palimpsest.core.block.pressure import beside_own, counts_chars, recall_budget, restore_budget
from palimpsest.core.caller.client_table import Asides
from palimpsest.core.recall.generosity import Demand, demanded
from palimpsest.core.recall.spoken import newest_spoken
from palimpsest.core.recall.utterance import QUESTION_MARKS, Utterance, read
from palimpsest.domain import (
    BlockKind,
    Budget,
    Chat,
    Diagnosis,
    Event,
    HeadFlag,
    Lineage,
    Message,
    Note,
    Pressure,
    Query,
    Reach,
    Role,
    Speaker,
)
from palimpsest.settings.policy import Policy
from palimpsest.wire.message import readable

NO_ASIDES = Asides()
QUERY_CHARS = 2000  # MiniLM reads some 1,000 characters; the rest still serves full text
CONTEXT_CHARS = 1500  # of what stands around the question: the last messages, a summary's opening
WISHES_UNASKED = 24  # lasting wishes that come back where nobody asks: some 2,000 characters of 6,000
ACCOUNT_CHARS = 2800  # of the work that was lost: with the frame and some quotes, half of what a restore may say
ANSWER_CHARS = 600  # of a passage that answers a question: some paragraphs (CALMem 6)
REPLAY_SHARE = 0.04  # of the window, replayed blocks together: about three restores in 128,000 tokens
MIN_BLOCK_CHARS = 300  # the frame takes half of it; less says nothing


def diagnose(
    chat: Chat,
    fulls: Sequence[int],
    speaker: Speaker,
    lineage: Lineage,
    conversation: str,
    now: Pressure,
    replayed_tokens: int,
    policy: Policy,
    excluded: frozenset[int] = frozenset(),
    asides: Asides = NO_ASIDES,
    replayed: Sequence[str] = (),
) -> Diagnosis:
    """
    Decide before the look-up what to look for and how much may be said.

    Args:
        fulls: fingerprints of `chat.history`, in order.
        now: with the replayed blocks in it.
        replayed_tokens: of blocks of before that the model sees: repeated, or held by the provider.
        excluded: occurrences that those blocks carry.
        asides: what clients write in messages of the user's: no question, and nobody speaks there.
        replayed: what they say.
    """

    tells_facts = False

    def silent(note: Note) -> Diagnosis:
        anchor = newest if tells_facts else -1
        return Diagnosis(speaker, conversation, lineage, now, note=note, anchor=anchor, tells_facts=tells_facts)

    if lineage.role is Role.SIDE:
        return silent(Note.SIDE_REQUEST)
    if lineage.ambiguous:
        return silent(Note.AMBIGUOUS)
    newest = newest_human(chat)
    spoken_at, said = newest_spoken(chat, asides)
    human_speaks = spoken_at == newest and _speaks_last(chat, newest)
    reach = speaker.reach(policy.memory.reach)
    lost = lost_occurrences(lineage)
    if lineage.event is Event.RETRY or (reach is Reach.CONVERSATION and not lost):
        return silent(Note.CALM)
    restores = lineage.restores
    at_cap = replayed_tokens >= REPLAY_SHARE * now.window_tokens > 0
    sheds = restores and at_cap
    if (not human_speaks and not restores) or (newest < 0 and (chat.held or _begins_compacted(chat))):
        return silent(Note.TOOL_LOOP)
    tells_facts = policy.facts.are_told and lineage.role is Role.MAIN and (sheds or not at_cap)
    uttered = read(said) if human_speaks else None
    if uttered is not None and uttered.is_small_talk and not (restores and _goes_on(chat, newest, said, uttered)):
        return silent(Note.NOTHING_RELEVANT)
    if restores:
        kind, budget = BlockKind.RESTORE, restore_budget(now)
        if budget is None or budget.chars < MIN_BLOCK_CHARS:
            return silent(Note.WINDOW_FULL)
    else:
        kind, budget = BlockKind.RECALL, recall_budget(now.tier)
        if budget is None:
            return silent(Note.PRESSURE)
        if at_cap:
            return silent(Note.REPLAY_CAP)
        budget = beside_own(budget, _chars(chat, counts_chars(budget)))
    demand = demanded(policy.memory.generosity, kind, lineage.head)
    asks = not restores or _asks(chat, lineage, newest, uttered)
    text, ask_journal = _question(chat, lineage, spoken_at, said, human_speaks, asks)
    held = () if lineage.head is None else (lineage.head.fulls[index] for index in lineage.held)
    query = Query(
        tenant=speaker.tenant,
        conversation=conversation,
        text=text,
        reach=reach,
        user=speaker.user,
        scope=speaker.scope,
        lost=lost,
        visible_fulls=frozenset(chain(fulls, held)),
        excluded=frozenset() if sheds else excluded,
        named=None if asks else _named(chat, lineage),
        with_prose=uttered is None or not uttered.is_small_talk,  # who says "go on" in a chat needs what was told
        without_cleared=True,
        least_help=demand.least_help,
        wishes=demand.wishes if asks else WISHES_UNASKED * bool(demand.wishes),
        whole_chars=demand.whole_chars,
        account_chars=min(ACCOUNT_CHARS, budget.chars // 2) if restores else 0,
        seen=_seen(chat, replayed) if restores else (),
    )
    return Diagnosis(
        speaker,
        conversation,
        lineage,
        now,
        kind,
        None,
        answering(budget, demand) if asks else budget,
        query,
        anchor=newest,
        ask_journal=ask_journal,
        sheds=sheds,
        tells_facts=tells_facts,
    )


def newest_question(chat: Chat, asides: Asides = NO_ASIDES) -> str:
    """The user's message at the end of the request; "" if it ends otherwise."""
    at, said = newest_spoken(chat, asides)
    return _end(said, QUERY_CHARS) if _speaks_last(chat, at) and at == newest_human(chat) else ""


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
    """A budget for what answers a question: each passage must be worth its room, and none fills the block."""
    return replace(budget, passage_chars=min(budget.passage_chars, ANSWER_CHARS), least_worth=demand.least_worth)


def _goes_on(chat: Chat, newest: int, said: str, uttered: Utterance) -> bool:
    """Whether small talk means that the work goes on: it asks for that, or it agrees to what was just proposed."""
    if uttered.goes_on or said.endswith(QUESTION_MARKS):
        return uttered.goes_on
    before = next((m for m in reversed(chat.messages[:newest]) if m.role == "assistant" and m.text.strip()), None)
    return before is not None and before.text.rstrip().endswith(QUESTION_MARKS)


def _asks(chat: Chat, lineage: Lineage, newest: int, uttered: Utterance | None) -> bool:
    """Whether the request ends with a human message that was never there before and says what it wants."""
    if uttered is None or uttered.is_small_talk or not uttered.words:
        return False
    at = newest - sum(message.is_instruction for message in chat.messages[: newest + 1])
    is_reworded = lineage.restores_again and at in lineage.changed
    is_new = at >= len(lineage.kept) or lineage.kept[at] < 0 or is_reworded
    return is_new and at not in lineage.summary_at


def _named(chat: Chat, lineage: Lineage) -> frozenset[str]:
    """What the new messages name, the client's summary among them; what the others name is stored with them."""
    history = chat.history
    new = [history[at] for at in lineage.fresh if at < len(history)]
    return frozenset(tag for message in new for tag in tags(readable(message.text, message.calls)))


def _seen(chat: Chat, replayed: Sequence[str]) -> tuple[str, ...]:
    """All that the model sees: messages with their calls, and earlier blocks."""
    return (*(readable(message.text, message.calls) for message in chat.messages), *replayed)


def _question(
    chat: Chat, lineage: Lineage, spoken_at: int, said: str, human_speaks: bool, asks: bool
) -> tuple[str, tuple[int, ...]]:
    """The query text, and occurrences of the journal that belong into it."""
    if human_speaks:
        text = _end(said, QUERY_CHARS)
        if asks:
            return text, ()
        return f"{text}\n{_context(chat, lineage, spoken_at)}", ()
    # inside a tool loop the human message may be among what was dropped
    tools = [m.text for m in chat.messages[spoken_at + 1 :] if m.role in ("tool", "function")]
    text = "\n".join(_end(part, CONTEXT_CHARS // 2) for part in [*([said] if said else []), *tools[-2:]])
    around = _context(chat, lineage, len(chat.messages))
    return f"{text}\n{around}"[:QUERY_CHARS], _last_human_lost(lineage) if spoken_at < 0 else ()


def _context(chat: Chat, lineage: Lineage, before: int) -> str:
    """What stands around the question: the summary, then the messages just before."""
    history = chat.history
    summary = [history[at].text[:CONTEXT_CHARS] for at in lineage.summary_at[:1] if 0 <= at < len(history)]
    recent = [m.text for m in chat.messages[max(0, before - 4) : before] if not m.is_instruction and m.text]
    room = CONTEXT_CHARS // 4
    return "\n".join([*summary, *(_end(text, room) for text in recent)])


def _last_human_lost(lineage: Lineage) -> tuple[int, ...]:
    head = lineage.head
    if head is None:
        return ()
    said = [head.occurrences[index] for index in lineage.dropped if head.flags[index] & HeadFlag.USER]
    return tuple(said[-1:])


def newest_human(chat: Chat) -> int:
    """Index of the newest user message with a text, or -1."""
    return next(
        (at for at in range(len(chat.messages) - 1, -1, -1) if _is_human(chat.messages[at])),
        -1,
    )


def _begins_compacted(chat: Chat) -> bool:
    """Whether the provider compacted the beginning: it ignores whatever stands in front of that."""
    return bool(chat.history and chat.history[0].opaque)


def _speaks_last(chat: Chat, newest: int) -> bool:
    """Nothing follows but instructions: clients put lists of skills and reminders behind the question."""
    return newest >= 0 and all(message.is_instruction for message in chat.messages[newest + 1 :])


def _chars(chat: Chat, most: int) -> int:
    """Characters of what the client sends, from the newest message on; where they are more than `most`, so many."""
    chars = 0
    for message in reversed(chat.messages):
        chars += len(message.text) + sum(len(call.arguments) for call in message.calls)
        if chars >= most:
            return most
    return chars


def _is_human(message: Message) -> bool:
    return message.role == "user" and bool(message.text.strip())


def _end(text: str, chars: int) -> str:
    """A long message says what it wants at either end: keep both."""
    return text if len(text) <= chars else f"{text[: chars // 2]} … {text[-chars // 2 :]}"
