"""
One request as it was read: its messages, a fingerprint of each, and how many tokens they are.

This is all that the decisions take of a body, whoever read it and however much of it was read before.
"""

from __future__ import annotations

from dataclasses import dataclass
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

    @cached_property
    def places(self) -> tuple[int, ...]:
        """Indexes into `chat.messages` of the history, which is what lineage compares."""
        return tuple(at for at, message in enumerate(self.chat.messages) if not message.is_instruction)

    @cached_property
    def history(self) -> tuple[Message, ...]:
        return tuple(self.chat.messages[at] for at in self.places)

    @cached_property
    def history_prints(self) -> tuple[Fingerprint, ...]:
        return tuple(self.prints[at] for at in self.places)

    @cached_property
    def instruction_prints(self) -> tuple[Fingerprint, ...]:
        messages = zip(self.prints, self.chat.messages, strict=True)
        return tuple(print for print, message in messages if message.is_instruction)
