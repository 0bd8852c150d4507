"""What comes back from LiteLLM becomes events of the client's wire."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from palimpsest.upstream.failures import is_broken
from palimpsest.upstream.litellm_bridge import messages_events


async def test_stream_that_ends_before_its_first_chunk_is_a_broken_connection() -> None:
    async def empty() -> AsyncIterator[object]:
        for chunk in ():
            yield chunk

    with pytest.raises(ConnectionError) as failure:
        await anext(messages_events(None, empty(), "a-model", {}))
    assert is_broken(failure.value)
