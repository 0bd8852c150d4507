"""
The selection of what a cut leaves out, from a request that is longer than its window.

Old results of tools become stubs first, then old calls lose their arguments, then the oldest exchanges go as a whole,
until half of the window is free. What stays: instructions, the first thing that the user said, the user's lasting
wishes, the newest five steps of the model, thoughts, and whatever only the provider can read. Of a result that is
longer than half of the window both ends stay.

Where these alone leave so little room that the next cut would be due in a few turns, they are given up in this order:
thoughts, with the whole exchanges that they stand in; wishes; of the newest five steps all but three, and all but one.
The rest is never given up.

A cut to what just fits would be due again at the next turn, and each makes the provider read everything anew: with half
of the window free there is one in many turns. So earlier blocks of memory are dropped there; between two cuts they are
dropped only where they do not fit into the window beside the prompt and the answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from math import inf
from types import MappingProxyType

from palimpsest.core.overflow.room import Room
from palimpsest.core.overflow.steps import Step
from palimpsest.core.recall.wishes import is_material, log_odds
from palimpsest.domain import TOOL_ROLES, Chat, Omission
from palimpsest.wire.trimming import clip_chars, stub_chars, thinks

STUB_TOKENS = 12.0  # of the words of a stub, and of what stands around it
CLIP_TOKENS = 40.0  # likewise, of a result that has lost its middle
KEPT_STEPS = 5  # of the model, the newest: with fewer, agents did again what they had just done
# How many of them stay, and whether wishes and thoughts do: one after the other, until the cut lasts.
ATTEMPTS = (
    (KEPT_STEPS, True, True),
    (KEPT_STEPS, True, False),
    (KEPT_STEPS, False, False),
    (3, False, False),
    (1, False, False),
)
WISH_ODDS = 1.5  # log-odds from which on a wish stays where it was said; weaker ones may come back in a block
WISHES_SHARE = 0.05  # of the window, for them and what was answered to each
NO_BLOCKS: Mapping[int, int] = MappingProxyType({})

Unit = Sequence[Step]
"""Steps that are dropped together."""


def select(
    chat: Chat,
    steps: Sequence[Step],
    tokens: Sequence[float],
    before: Omission,
    room: Room,
    blocks: Mapping[int, int] = NO_BLOCKS,
) -> Omission:
    """
    What to leave out.

    Args:
        tokens: of each message as the client sent it.
        before: what is left out already, in whole steps; all of it stays so.
        room: where `tokens` without that, and `blocks`, are no more than `room.most`, nothing more is left out.
        blocks: tokens of the earlier blocks, by message; a cut sheds them.

    Returns:
        What was left out before, and more. Where nothing helps, more than fits is left.
    """
    left = _Remainder(chat, tokens, before)
    beside = Room(room.most - sum(size for at, size in blocks.items() if at not in before.drops), room.aim)
    newest = [at for step in steps[_kept_from(steps, KEPT_STEPS) :] for at in step.messages]
    left.clip(newest, room.aim, beside)
    if left.tokens <= beside.most:
        return left.omission
    for kept, keeps_wishes, keeps_thoughts in ATTEMPTS:
        stop = _kept_from(steps, kept)
        units = _units(chat, steps, stop, keeps_thoughts)
        if keeps_wishes:
            units = _beside_wishes(chat, tokens, units, WISHES_SHARE * 2 * room.aim)
        if kept < KEPT_STEPS:  # a stub among the newest steps would be imitated
            left.drop(units, room.aim)
        left.stub((at for step in steps[:stop] for at in step.messages), room.aim)
        left.drop(units, room.aim)
        if left.tokens <= (room.most + room.aim) / 2:  # with more left, the next cut would be due in a few turns
            break
    left.clip(newest, 0, room)
    return left.omission


def carried_over(chat: Chat, steps: Sequence[Step], tokens: Sequence[float], before: Omission, room: Room) -> Omission:
    """
    What an earlier cut leaves out; nothing where a new one would leave more than twice as much.

    After an edit further up the newest messages, which it kept, are gone; and a window may be found to be larger.
    """
    left = sum(tokens_left(chat, tokens, before))
    if not before or left * 2 >= room.most:
        return before
    anew = select(chat, steps, tokens, Omission(), room)
    return before if sum(tokens_left(chat, tokens, anew)) <= left * 2 else Omission()


def complete(omission: Omission, steps: Sequence[Step]) -> Omission:
    """The omission with all of each step that it drops anything of: a client may have changed a part of one since."""
    drops = set(omission.drops)
    for step in steps:
        if not drops.isdisjoint(step.messages):
            drops.update(step.messages)
    clips = {at: chars for at, chars in omission.clips.items() if at not in drops}
    return Omission(frozenset(drops), omission.stubs - drops, clips)


def tokens_left(chat: Chat, tokens: Sequence[float], omission: Omission) -> list[float]:
    """Tokens of each message once this is left out."""
    left = list(tokens)
    for at in omission.stubs:
        left[at] = _stubbed(chat, left[at], at)
    for at, chars in omission.clips.items():
        left[at] = min(left[at], CLIP_TOKENS + left[at] * chars / len(chat.messages[at].text))
    for at in omission.drops:
        left[at] = 0.0
    return left


class _Remainder:
    """What is left of a request while more and more is left out."""

    def __init__(self, chat: Chat, tokens: Sequence[float], omission: Omission) -> None:
        self._chat = chat
        self._drops, self._stubs, self._clips = set(omission.drops), set(omission.stubs), dict(omission.clips)
        self._own = tokens
        self._each = tokens_left(chat, tokens, omission)
        self.tokens = sum(self._each)

    @property
    def omission(self) -> Omission:
        gone = self._drops | self._stubs
        clips = {at: chars for at, chars in self._clips.items() if at not in gone}
        return Omission(frozenset(self._drops), frozenset(self._stubs - self._drops), clips)

    def stub(self, where: Iterable[int], aim: float) -> None:
        """Make stubs, the oldest first, results before calls, until no more than `aim` is left."""
        messages, every = self._chat.messages, list(where)
        results = (at for at in every if messages[at].role in TOOL_ROLES)
        calls = (at for at in every if messages[at].calls)
        for at in chain(results, calls):
            if self.tokens <= aim:
                return
            if at not in self._drops and at not in self._stubs and stub_chars(messages[at]):
                self._stubs.add(at)
                self._set(at, _stubbed(self._chat, self._each[at], at))

    def drop(self, units: Iterable[Unit], aim: float) -> None:
        """Drop units, the oldest first, until no more than `aim` is left."""
        for unit in units:
            if self.tokens <= aim:
                return
            for at in (at for step in unit for at in step.messages):
                self._drops.add(at)
                self._set(at, 0.0)

    def clip(self, where: Iterable[int], least: float, room: Room) -> None:
        """Where there is no room, take the middle out of results of more than `least` tokens: half of it stays free."""
        messages, gone = self._chat.messages, self._drops | self._stubs
        results = (at for at in where if at not in gone and clip_chars(messages[at]))
        long = {at: self._each[at] for at in results if self._each[at] > least}
        free = max(least / 2, (room.most - self.tokens + sum(long.values())) / 2)
        if self.tokens <= room.most or free <= 0:
            return
        limit = _level(long.values(), free)
        for at in (at for at, size in long.items() if size > limit):
            share = max(0.0, limit - CLIP_TOKENS) / self._own[at]
            self._clips[at] = max(1, int(share * len(messages[at].text)))
            self._set(at, limit)

    def _set(self, at: int, tokens: float) -> None:
        self.tokens += tokens - self._each[at]
        self._each[at] = tokens


def _level(sizes: Iterable[float], free: float) -> float:
    """The size to which the largest come down, so that all are no more than `free` together."""
    rising = sorted(sizes)
    for at, size in enumerate(rising):
        share = free / (len(rising) - at)
        if size >= share:
            return share
        free -= size
    return inf


def _stubbed(chat: Chat, tokens: float, at: int) -> float:
    """Tokens of a message as a stub."""
    message = chat.messages[at]
    if message.role in TOOL_ROLES:
        return min(tokens, STUB_TOKENS)
    chars = len(message.text) + sum(len(call.name) + len(call.arguments) for call in message.calls)
    return tokens * (1 - stub_chars(message) / chars) if chars else tokens


def _kept_from(steps: Sequence[Step], count: int) -> int:
    """Index of the oldest of the model's newest steps; 0 where there are no more than these."""
    of_model = [index for index, step in enumerate(steps) if not step.is_users]
    return of_model[-count] if len(of_model) > count else 0


def _units(chat: Chat, steps: Sequence[Step], stop: int, keeps_thoughts: bool) -> list[Unit]:
    """
    What may be dropped, the oldest first.

    Each is a whole exchange; or one step of the model's where the user's words stay: then the last step of a finished
    exchange stays with them, so that roles alternate as before.
    """
    found: list[Unit] = []
    exchanges = [(begin, end) for begin, end in _exchanges(steps) if steps[begin].is_users and begin < stop]
    for index, (begin, end) in enumerate(exchanges):
        whole = steps[begin:end]
        if index and end <= stop and not _stays(chat, whole, keeps_thoughts):
            found.append(whole)
        else:
            inner = steps[begin + 1 : end - 1 if end <= stop else stop]
            found += ([step] for step in inner if not _stays(chat, [step], keeps_thoughts))
    return found


def _exchanges(steps: Sequence[Step]) -> Iterator[tuple[int, int]]:
    """What a user says and all that the model does about it, as indexes of steps; what stands in front is one, too."""
    begins = [index for index, step in enumerate(steps) if step.is_users or index == 0]
    return zip(begins, [*begins[1:], len(steps)], strict=True)


def _stays(chat: Chat, steps: Unit, keeps_thoughts: bool) -> bool:
    """Whether anything in it stands for a history that only the provider can read, or is a thought that is kept."""
    messages = (chat.messages[at] for step in steps for at in step.messages)
    return any(message.opaque or (keeps_thoughts and thinks(message.raw)) for message in messages)


def _beside_wishes(chat: Chat, tokens: Sequence[float], units: Sequence[Unit], most: float) -> list[Unit]:
    """The units without the user's lasting wishes, the clearest first, and the answers to them: `most` tokens."""
    wishes = [(_wish_odds(chat, unit[0]), index) for index, unit in enumerate(units) if unit[0].is_users]
    kept: dict[int, list[Unit]] = {}
    for odds, index in sorted(wishes, reverse=True):
        unit = units[index]
        cost = sum(tokens[at] for step in (unit[0], unit[-1]) for at in step.messages)
        if odds >= WISH_ODDS and cost <= most:
            most -= cost
            kept[index] = [[step] for step in unit[1:-1]]
    return [part for index, unit in enumerate(units) for part in kept.get(index, [unit])]


def _wish_odds(chat: Chat, step: Step) -> float:
    texts = [chat.messages[at].text for at in step.messages]
    return max((log_odds(text) for text in texts if text and not is_material(text)), default=-inf)
