"""The interface of a memory to be measured: it is given a conversation and questions, and answers with text."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from palimpsest.evaluation.datasets import Conversation


@dataclass(frozen=True, slots=True)
class Pack:
    """
    What a memory answers.

    `text` is what a model would be given, all of it within the budget. `messages` are indexes into the conversation's
    messages, those that the text holds, best first; `ranked` the candidates before packing, best first. A memory that
    keeps no messages, but what was made of them, names those that it was made of.
    """

    text: str
    messages: tuple[int, ...]
    ranked: tuple[int, ...]
    elapsed_ms: float  # from the question to the text, its embedding included
    admitted: bool = True  # False: nothing was found relevant, there is no text


class Reader(Protocol):
    """One conversation, remembered."""

    async def pack(self, query: str, budget_chars: int, dropped: int | None = None) -> Pack:
        """
        Answer a question within a budget of characters.

        Args:
            budget_chars: of the whole text, frame and dates included.
            dropped: so many messages, the first ones, were lost; the others are still seen by whoever asks and must
                not come. None: all were lost.
        """

    async def stored(self) -> Sequence[str]:
        """Everything that is kept and could come back, in the order in which it was said."""


class System(Protocol):
    """A way to remember."""

    @property
    def name(self) -> str:
        """The name in tables, and behind `--systems`."""

    def opened(self, conversation: Conversation) -> AbstractAsyncContextManager[Reader]:
        """A reader of this conversation that remembers nothing else."""
