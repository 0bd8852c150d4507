"""
One request as it was read: its messages, a fingerprint of each, and how many tokens they are.

This is all that the decisions take of a body, whoever read it and however much of it was read before.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from dataclasses import dataclass, field
from functools import cached_property

from proxy.domain import Chat, Fingerprint, Message


@dataclass(frozen=True)
class Reading:
    """
    A request and what was made of its text.

    `prints` are of all `chat.messages`, in order. `tokens` are of the prompt as the client sent it, tools included;
    `history_tokens` of its history alone, needed only where the provider holds what stands in front (`chat.held`).
    """

    chat: Chat
    prints: tuple[Fingerprint, ...]
    tokens: int
    history_tokens: int = 0
    new_bytes: int = field(default=0, compare=False)  # of what was not read before, about: how much work it is

    def extend(self, before: Reading, same: int) -> Reading:
        """
        Take over from another reading what follows from the first messages, where these are the very same.

        Args:
            same: how many are.

        Returns:
            This reading.
        """
        cut = bisect_left(before.places, same)
        added = [(at, message.is_instruction) for at, message in enumerate(self.chat.messages[same:], same)]
        places = (*before.places[:cut], *(at for at, is_instruction in added if not is_instruction))
        new = places[cut:]
        self.__dict__["places"] = places
        self.__dict__["history_prints"] = (*before.history_prints[:cut], *(self.prints[at] for at in new))
        self.__dict__["instruction_prints"] = (
            *before.instruction_prints[: same - cut],
            *(self.prints[at] for at, is_instruction in added if is_instruction),
        )
        messages = self.chat.messages
        self.__dict__["history_fulls"] = before.history_fulls[:cut] + array("q", [self.prints[at].full for at in new])
        self.__dict__["opaque"] = (
            *before.opaque[: bisect_left(before.opaque, cut)],
            *(index for index, at in enumerate(new, cut) if messages[at].opaque),
        )
        self.chat.__dict__["history"] = (*before.chat.history[:cut], *(messages[at] for at in new))
        return self

    @cached_property
    def places(self) -> tuple[int, ...]:
        """Indexes into `chat.messages` of the history, which is what lineage compares."""
        return tuple(at for at, message in enumerate(self.chat.messages) if not message.is_instruction)

    @property
    def history(self) -> tuple[Message, ...]:
        return self.chat.history

    @cached_property
    def history_prints(self) -> tuple[Fingerprint, ...]:
        return tuple(self.prints[at] for at in self.places)

    @cached_property
    def history_fulls(self) -> array[int]:
        """The whole fingerprints of the history."""
        return array("q", [print.full for print in self.history_prints])

    @cached_property
    def opaque(self) -> tuple[int, ...]:
        """Indexes into the history of messages with something that only the provider can read."""
        return tuple(index for index, message in enumerate(self.history) if message.opaque)

    @cached_property
    def instruction_prints(self) -> tuple[Fingerprint, ...]:
        messages = zip(self.prints, self.chat.messages, strict=True)
        return tuple(print for print, message in messages if message.is_instruction)
