"""A running proxy between a client and a provider that writes down what reaches it."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from palimpsest.domain.errors import MemoryFault
from palimpsest.evaluation import running
from palimpsest.evaluation.scripted import Reply

pytestmark = pytest.mark.slow

HEADERS = {"authorization": "Bearer sk-1", "x_palimpsest_user": "one"}


@pytest.mark.usefixtures("model_folder")
async def test_what_was_said_before_is_forwarded_to_another_conversation_of_the_user() -> None:
    told = [{"role": "user", "content": "The gate code of the allotment is 4471."}]
    asked = [{"role": "user", "content": "What is the gate code of the allotment?"}]
    async with running.opened("m-1") as proxy:
        first = await proxy.send(told, "All right.", **HEADERS)
        assert (first.messages, first.recalled) == (told, 0)
        await proxy.indexed()
        second = await proxy.send(asked, "?", **HEADERS, x_palimpsest_conversation="other")
        assert second.recalled > 0 and "4471" in second.messages[-1]["content"]
        with pytest.raises(MemoryFault, match="it answered with status 500"):
            await proxy.send(told, Reply("no", status=500), **HEADERS)


@pytest.fixture
def wrong_setting() -> Iterator[None]:
    name = "PALIMPSEST_MEMORY__DEADLINE_MS"
    os.environ[name] = "never"
    yield
    del os.environ[name]


@pytest.mark.usefixtures("wrong_setting")
async def test_a_proxy_that_does_not_start_says_why_at_once() -> None:
    with pytest.raises(MemoryFault, match=r"it ended with status 2: .*(?i:deadline_ms)"):
        async with running.opened("m-1"):
            pass
