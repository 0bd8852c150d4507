"""Why a provider reads anew what its prefix cache could have held, from what was sent and what it tells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from palimpsest.core.block.placement import Replay
from palimpsest.core.decision import Decision
from palimpsest.core.prefix_cache import change_of
from palimpsest.core.prefix_rebuild import CACHE_LIFE_SECONDS, SMALLEST_PREFIX_TOKENS, PreviousPrompt, rebuild_of
from palimpsest.core.reading import Reading
from palimpsest.domain import (
    Added,
    Block,
    BlockKind,
    Chat,
    Cost,
    Diagnosis,
    Event,
    Fingerprint,
    Head,
    Lineage,
    Message,
    Pressure,
    Rebuild,
    Role,
    Shape,
    Speaker,
    StoredBlock,
    Tier,
    Usage,
)

NOTHING_ADDED = Added(0, 9_000)
BEFORE = PreviousPrompt(1000.0, 0, Usage(9_000, 10, 8_960, None))
SHAPE = Shape(model="m", tool_names=("read",), instructions=(5,), tools_tokens=70)


def cost(usage: Usage, change: Rebuild | None = None, added: Added = NOTHING_ADDED) -> Cost:
    return Cost(added, change, usage)


def after(seconds: float, of: Cost, before: PreviousPrompt | None = BEFORE) -> tuple[Rebuild, int] | None:
    return rebuild_of(of, 1000.0 + seconds, before, is_first=False)


READ = Usage(9_500, 10, 9_088, None)  # all that was sent before
LOST = Usage(9_500, 10, 0, None)


@pytest.mark.parametrize(
    ("seconds", "now", "found"),
    [
        (10, cost(READ), (Rebuild.NONE, 0)),
        (9_999, cost(READ, Rebuild.CLIENT), (Rebuild.NONE, 0)),  # whatever was done, it cost nothing
        (10, cost(LOST), (Rebuild.UNEXPECTED, 9_000)),
        (CACHE_LIFE_SECONDS, cost(LOST), (Rebuild.UNEXPECTED, 9_000)),
        (CACHE_LIFE_SECONDS + 1, cost(LOST), (Rebuild.IDLE, 9_000)),
        (10, cost(LOST, Rebuild.CLIENT), (Rebuild.CLIENT, 9_000)),
        (9_999, cost(LOST, Rebuild.OURS), (Rebuild.OURS, 9_000)),
        (10, cost(LOST, added=Added(90, 9_000, 40)), (Rebuild.OURS, 9_000)),  # blocks that the one before went without
        (10, cost(LOST, Rebuild.CLIENT, Added(90, 9_000, 40)), (Rebuild.CLIENT, 9_000)),
        (10, cost(Usage(3_000, 10, 512, None), Rebuild.CLIENT), (Rebuild.CLIENT, 2_488)),  # it is shorter by now
        (10, cost(Usage(9_500, 10, 9_001 - SMALLEST_PREFIX_TOKENS, None)), (Rebuild.NONE, 0)),  # too little to matter
    ],
)
def test_a_rebuild_has_one_cause(seconds: float, now: Cost, found: tuple[Rebuild, int]) -> None:
    assert after(seconds, now) == found


def test_the_first_request_builds_what_no_cache_had() -> None:
    assert rebuild_of(cost(Usage(9_000, 10, 1_024, None)), 0.0, None, is_first=True) == (Rebuild.FIRST, 7_976)


@pytest.mark.parametrize("usage", [Usage(), Usage(9_500, 10, None, None), Usage(None, 10, 0, None)])
def test_what_the_provider_does_not_say_is_unknown(usage: Usage) -> None:
    assert after(10, cost(usage)) is None
    assert rebuild_of(cost(usage), 0.0, None, is_first=True) is None
    assert after(10, cost(LOST), replace(BEFORE, usage=usage)) is None
    assert after(10, cost(LOST), None) is None


def test_a_prompt_that_is_too_short_for_a_cache_is_not_missed_there() -> None:
    assert after(10, cost(LOST), replace(BEFORE, usage=Usage(900, 10, 0, None))) == (Rebuild.NONE, 0)


def test_only_what_the_client_let_cache_is_missed_there() -> None:
    marked, unmarked = Usage(9_000, 10, 2_000, 4_000), Usage(9_000, 10, 0, 0)
    assert after(10, cost(Usage(9_500, 10, 0, 6_500)), replace(BEFORE, usage=marked)) == (Rebuild.UNEXPECTED, 6_000)
    assert after(10, cost(Usage(9_500, 10, 0, 0)), replace(BEFORE, usage=unmarked)) == (Rebuild.NONE, 0)


HEAD = Head(
    conversation="c-1", turn=1, role=Role.MAIN, fulls=(1, 2, 3, 4), openings=(1, 2, 3, 4), occurrences=(11, 12, 13, 14),
    flags=(1, 2, 1, 2), shape=SHAPE, request_length=3,
)  # fmt: skip
EARLIER = StoredBlock(11, Block("earlier", BlockKind.RECALL, (), 5))
NEWER = StoredBlock(13, Block("newer", BlockKind.RECALL, (), 5))
ALL = (0, 1, 2, 3, -1)


def decided(
    kept: Sequence[int] = ALL, head: Head | None = HEAD, replayed: Replay | None = None, **more: Any
) -> Decision:
    """A request with a system prompt and as many messages as `kept` has; `more` is of the decision."""
    roles = ["system", *("user" if at % 2 == 0 else "assistant" for at in range(len(kept)))]
    messages = tuple(Message(role, role, {}) for role in roles)
    reading = Reading(Chat(messages, "m", b"", {}), (Fingerprint(0, 0),) * len(messages), 40)
    held = more.pop("held", ())
    lineage = Lineage(Event.APPEND, Role.MAIN, head, tuple(kept), more.pop("changed", ()), held=held)
    pressure = Pressure(40, 1000, 100, 0.1, Tier.CALM)
    return replace(
        Decision(reading, SHAPE, Diagnosis(Speaker("acme"), "c-1", lineage, pressure), 40, replayed or Replay()), **more
    )


def with_blocks(*blocks: StoredBlock) -> Head:
    return replace(HEAD, blocks=blocks)


def repeated(*blocks: StoredBlock) -> Replay:
    return Replay(tuple((1, block) for block in blocks))


@pytest.mark.parametrize(
    ("decision", "found"),
    [
        (decided(), None),
        (decided(head=None), None),
        (decided((0, 1, 2, -1, -1)), None),  # the answer was never a part of the prompt
        (decided((0, 2, 3, -1)), Rebuild.CLIENT),
        (decided((-1, 2, 3, -1)), Rebuild.CLIENT),
        (decided((0, 1)), Rebuild.CLIENT),
        (decided(changed=(2,)), Rebuild.CLIENT),
        (decided((-1,), held=(0, 1, 2, 3)), None),
        (decided((-1,), held=(2, 3)), Rebuild.CLIENT),
        (decided(shape=replace(SHAPE, model="another")), Rebuild.CLIENT),
        (decided(shape=replace(SHAPE, instructions=(6,))), Rebuild.CLIENT),
        (decided(shape=replace(SHAPE, tools_tokens=71)), Rebuild.CLIENT),
        (decided(shape=replace(SHAPE, stream=True, user_agent="another")), None),
        # blocks
        (decided(head=with_blocks(EARLIER, NEWER), replayed=repeated(EARLIER, NEWER)), None),
        (decided(head=with_blocks(EARLIER, NEWER), replayed=repeated(NEWER)), Rebuild.OURS),
        (decided((0, 1, -1), head=with_blocks(EARLIER)), Rebuild.OURS),  # ours stood further in front
        (decided((-1, 1, 2), head=with_blocks(EARLIER)), Rebuild.CLIENT),  # it went with its message
        (decided(block=NEWER.block, anchor=5), None),  # in the newest message
        (decided(block=NEWER.block, anchor=3), Rebuild.OURS),  # in one that was sent before
        (decided(block=replace(NEWER.block, role="system"), anchor=1), Rebuild.OURS),
    ],
)
def test_who_changed_what_was_sent_before_is_told(decision: Decision, found: Rebuild | None) -> None:
    assert change_of(decision) is found


def test_of_a_short_prompt_no_cache_has_a_token_and_of_a_longer_one_all() -> None:
    assert replace(BEFORE, usage=Usage(900, 10, 0, None)).cached_tokens == 0
    assert replace(BEFORE, usage=Usage(9_000, 10, 0, None)).cached_tokens == 9_000
    assert replace(BEFORE, usage=Usage(9_000, 10, None, None)).cached_tokens is None
