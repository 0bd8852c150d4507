"""Keys of rows, as statements take lists of them."""

from __future__ import annotations

from collections.abc import Iterable

import orjson


def ids(values: Iterable[int]) -> str:
    """Numbers as the JSON list that `numbers` takes."""
    return orjson.dumps(list(values)).decode()
