"""Caches of functions that keep words of messages in memory to save time: an erasure empties all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import _lru_cache_wrapper, lru_cache
from typing import Any, TypeVar

T = TypeVar("T")

CACHES: list[_lru_cache_wrapper[Any]] = []
"""Of all modules that are imported."""


def word_cache(entries: int) -> Callable[[Callable[..., T]], _lru_cache_wrapper[T]]:
    """Decorate a function of texts as `functools.lru_cache` does, so that `forget_words` can clear it."""

    def decorate(function: Callable[..., T]) -> _lru_cache_wrapper[T]:
        cached = lru_cache(entries)(function)
        CACHES.append(cached)
        return cached

    return decorate


def forget_words(others: Sequence[Callable[[], None]] = ()) -> None:
    """Clear this process's caches of message text, as is due after an erasure by any process."""
    for cache in CACHES:
        cache.cache_clear()
    for other in others:
        other()
