"""A fair queue: tenants take turns, and the items of one conversation keep their order."""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class FairQueue(Generic[T]):
    """
    Items of many tenants.

    Whoever takes an item calls `done` for it afterwards; until then nothing else of its conversation is handed out, and
    of its tenant no more than `most_of_tenant` at once. So one tenant's work, however much and however slow, takes one
    place in turn with every other's. Not safe for threads.
    """

    def __init__(self, most_of_tenant: int) -> None:
        self._most_of_tenant = most_of_tenant
        # By tenant and conversation, those whose turn is next first.
        self._waiting: OrderedDict[str, OrderedDict[str, deque[T]]] = OrderedDict()
        self._taken: set[tuple[str, str]] = set()
        self._taken_of: Counter[str] = Counter()
        self._length = 0

    def __len__(self) -> int:
        """Items that wait; those that were taken do not count."""
        return self._length

    def put(self, tenant: str, conversation: str, item: T) -> None:
        self._waiting.setdefault(tenant, OrderedDict()).setdefault(conversation, deque()).append(item)
        self._length += 1

    def take(self, is_wanted: Callable[[T], bool] = lambda item: True) -> T | None:
        """The next wanted item, or None; an unwanted one stays, and with it all later items of its conversation."""
        for tenant, conversations in self._waiting.items():
            if self._taken_of[tenant] >= self._most_of_tenant:
                continue
            for conversation, items in conversations.items():
                if (tenant, conversation) not in self._taken and is_wanted(items[0]):
                    return self._hand_out(tenant, conversation)
        return None

    def done(self, tenant: str, conversation: str) -> None:
        """Note that the item taken of this conversation is done, so that its next one may be taken."""
        self._taken.remove((tenant, conversation))
        self._taken_of[tenant] -= 1
        if not self._taken_of[tenant]:
            del self._taken_of[tenant]

    def _hand_out(self, tenant: str, conversation: str) -> T:
        """Remove the first item of a conversation, and put the conversation and its tenant last."""
        conversations = self._waiting[tenant]
        item = conversations[conversation].popleft()
        if conversations[conversation]:
            conversations.move_to_end(conversation)
        else:
            del conversations[conversation]
        if conversations:
            self._waiting.move_to_end(tenant)
        else:
            del self._waiting[tenant]
        self._taken.add((tenant, conversation))
        self._taken_of[tenant] += 1
        self._length -= 1
        return item
