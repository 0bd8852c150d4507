"""The room that a model's window has for a request: whether it is outgrown, and how long the answer may be."""

from __future__ import annotations

from math import ceil

from palimpsest.domain import Chat, frozen

AIM_SHARE = 0.5  # of the window, after a cut, and where none is made: less leaves too little, more is full again soon
ANSWER_SHARE = 0.125  # of the window, for an answer to which the client sets no limit
BLOCK_SHARE = 0.05  # of the window, for a block of memory: it would not be told shortly before each cut
RESTORE_TOKENS, RESTORE_SHARE = 2000, 0.1  # of what comes back after a cut, at most; it is a part of the half
COUNT_MARGIN = 0.05  # of a prompt by our count: how far a provider's may be from it


@frozen
class Room:
    """Tokens of the messages that a window has room for: `most` at all, and `aim` after a cut."""

    most: float
    aim: float


def stands_aside(chat: Chat) -> bool:
    """Whether trimming is not ours to do: the provider holds the history, or is asked to shorten it."""
    raw = chat.raw
    shortens = raw.get("truncation") == "auto" or bool(raw.get("context_management")) or bool(raw.get("transforms"))
    return chat.held or chat.compacts or shortens


def room_of(window_tokens: int, needed_tokens: int, outside_tokens: float) -> Room:
    """
    Room for messages.

    Args:
        needed_tokens: for the answer.
        outside_tokens: of what is sent beside messages, the tools.
    """
    most = window_tokens * (1 - BLOCK_SHARE) - needed_tokens
    aim = window_tokens * AIM_SHARE - min(RESTORE_TOKENS, window_tokens * RESTORE_SHARE)
    return Room(most - outside_tokens, aim - outside_tokens)


def answer_room(chat: Chat, window_tokens: int, reserve_tokens: int) -> int:
    """Tokens to keep free for the answer, however long it may be. `reserve_tokens`: more is kept for none."""
    return min(chat.max_reply_tokens or int(window_tokens * ANSWER_SHARE), reserve_tokens, window_tokens // 4)


def answer_limit(chat: Chat, prompt_tokens: int, window_tokens: int, needed_tokens: int) -> int | None:
    """The longest answer that a request may ask for beside its prompt; None: what it asks for fits, or is not said."""
    wanted = chat.max_reply_tokens
    left = window_tokens - ceil(prompt_tokens * (1 + COUNT_MARGIN))
    limit = max(left, needed_tokens)
    if wanted is None or wanted <= limit:
        return None
    thinking = chat.raw.get("thinking")
    budget = thinking.get("budget_tokens") if isinstance(thinking, dict) else None
    return None if isinstance(budget, int) and budget >= limit else limit
