"""
One request as it was read: its messages, a fingerprint of each, and how many tokens they are.

This is all that the decisions take of a body, whoever read it and however much of it was read before.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from palimpsest.domain import Chat, Fingerprint, Message, PersistentList


@dataclass(frozen=True)
class Reading:
    """
    A request and what was made of its text.

    `prints` are of all `chat.messages`, in order. `tokens` are of the prompt as the client sent it, tools included;
    `tools_tokens` of those alone, in the model's encoding; `history_tokens` of its history alone, needed only where
    the provider holds what stands in front (`chat.held`); `message_tokens` of each message, in the model's encoding.
    """

    chat: Chat
    prints: Sequence[Fingerprint]
    tokens: int
    history_tokens: int = 0
    tools_tokens: int = 0
    message_tokens: Sequence[int] = ()
    new_bytes: int = field(default=0, compare=False)  # of what was not read before, about: how much work it is

    def fill_caches(self, before: Reading, same: int) -> None:
        """
        Fill the caches of this reading and its chat, the `cached_property` below, from one whose first messages are the
        `same`. A frozen value keeps them in its `__dict__`, as `cached_property` does; no field changes.
        """
        cut = len(before.places) if same == len(before.prints) else bisect_left(before.places, same)
        added = [*zip(range(same, len(self.prints)), self.chat.messages[same:], self.prints[same:], strict=True)]
        said = [one for one in added if not one[1].is_instruction]
        new = [fingerprint for _, _, fingerprint in said]
        known = vars(self)
        known["places"] = PersistentList.of(before.places).then(cut, [at for at, _, _ in said])
        known["history_prints"] = PersistentList.of(before.history_prints).then(cut, new)
        known["instruction_prints"] = (
            *before.instruction_prints[: same - cut],
            *(fingerprint for _, message, fingerprint in added if message.is_instruction),
        )
        known["history_fulls"] = before.history_fulls[:cut] + array("q", [fingerprint.full for fingerprint in new])
        known["opaque"] = (
            *before.opaque[: bisect_left(before.opaque, cut)],
            *(index for index, (_, message, _) in enumerate(said, cut) if message.opaque),
        )
        history = PersistentList.of(before.chat.history).then(cut, [message for _, message, _ in said])
        vars(self.chat)["history"] = history

    @cached_property
    def places(self) -> Sequence[int]:
        """Indexes into `chat.messages` of the history, which is what lineage compares."""
        return tuple(at for at, message in enumerate(self.chat.messages) if not message.is_instruction)

    @cached_property
    def scaled_tokens(self) -> Sequence[float]:
        """The model's own tokens of each message."""
        total = sum(self.message_tokens) + self.tools_tokens
        ratio = self.tokens / total if total else 0.0
        return [tokens * ratio for tokens in self.message_tokens]

    @property
    def history(self) -> Sequence[Message]:
        return self.chat.history

    @cached_property
    def history_prints(self) -> Sequence[Fingerprint]:
        return tuple(self.prints[at] for at in self.places)

    @cached_property
    def history_fulls(self) -> array[int]:
        """The whole fingerprints of the history."""
        return array("q", [fingerprint.full for fingerprint in self.history_prints])

    @cached_property
    def opaque(self) -> tuple[int, ...]:
        """Indexes into the history of messages with something that only the provider can read."""
        return tuple(index for index, message in enumerate(self.history) if message.opaque)

    @cached_property
    def instruction_prints(self) -> tuple[Fingerprint, ...]:
        messages = zip(self.prints, self.chat.messages, strict=True)
        return tuple(fingerprint for fingerprint, message in messages if message.is_instruction)
