"""
Caches of functions that keep words of messages in memory to save time: an erasure empties all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import _lru_cache_wrapper, lru_cache
from typing import Any, TypeVar

T = TypeVar("T")

CACHES: list[_lru_cache_wrapper[Any]] = []
"""Of all modules that are imported."""


def word_cache(entries: int) -> Callable[[Callable[..., T]], _lru_cache_wrapper[T]]:
    """As `functools.lru_cache`, for functions of texts."""

    def decorate(function: Callable[..., T]) -> _lru_cache_wrapper[T]:
        cached = lru_cache(entries)(function)
        CACHES.append(cached)
        return cached

    return decorate
