"""The export format: what is written is read again, and what is wrong is said without a word of a message."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from palimpsest.domain import BlockKind, Ending, Event, Role
from palimpsest.domain.errors import WireError
from palimpsest.domain.portable_turn import PortableBlock, PortableMessage, PortableTurn
from palimpsest.features.transfer.lines import check_header, from_line, header_line, is_header, to_line

FULL = PortableTurn(
    id="t-2",
    conversation="c-1",
    created_at=1_700_000_000.25,
    messages=(
        PortableMessage(3, {"role": "user", "content": "é"}),
        PortableMessage(4, {"role": "user", "content": [{"type": "text", "text": "x"}]}, is_summary=True),
        PortableMessage(5, {"role": "user"}, is_erased=True),
    ),
    answer=PortableMessage(0, {"role": "assistant", "content": "yes"}),
    answered_at=1_700_000_001.5,
    ending=Ending.CLIENT_GONE,
    parent="t-1",
    kept=((0, 0, 2),),
    kept_elsewhere=((2, ("t-0", 7)),),
    role=Role.SUBAGENT,
    event=Event.SUMMARY,
    tenant="static:me",
    user="ann",
    scope="bees",
    serves="c-0",
    model="m",
    prompt_tokens=12,
    block=PortableBlock(BlockKind.RESTORE, "what was said", 4, "system", 9, (("t-0", 1),)),
    sheds_blocks=True,
)


@pytest.mark.parametrize(
    "turn",
    [FULL, PortableTurn("t-1", "c-1", 0.0, ending=None), PortableTurn("t-1", "c-1", 1.0, answered_at=2.0)],
    ids=["full", "open", "without an answer"],
)
def test_a_turn_is_read_as_it_was_written(turn: PortableTurn) -> None:
    line = to_line(turn)
    assert line.endswith(b"\n") and line.count(b"\n") == 1
    assert from_line(orjson.loads(line)) == turn


def test_what_is_not_there_takes_no_room() -> None:
    assert orjson.loads(to_line(PortableTurn("t-1", "c-1", 0.0))) == {
        "turn": "t-1",
        "conversation": "c-1",
        "created_at": 0.0,
        "role": "main",
        "event": "start",
        "ending": "complete",
    }


def test_an_export_of_a_newer_version_is_refused_in_words() -> None:
    assert is_header(orjson.loads(header_line()))
    check_header(orjson.loads(header_line()))
    with pytest.raises(WireError, match="version 2, and only versions up to 1 are known"):
        check_header({"palimpsest": "export", "version": 2})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"turn": ""}, "turn: missing"),
        ({"turn": 3}, "turn: not a text"),
        ({"created_at": "now"}, "created_at: not a number"),
        ({"created_at": 1e300}, "created_at: not a time from 1970 to 9999"),
        ({"ended_at": -1.0}, "ended_at: not a time from 1970 to 9999"),
        ({"messages": {}}, "messages: not a list"),
        ({"messages": [{"position": 0, "message": "secret words"}]}, "messages: one has no position"),
        ({"messages": [{"position": 0, "message": {"role": "user"}}] * 2}, "messages: two have the same position"),
        ({"role": "king"}, "role: not known"),
        ({"ending": "never"}, "ending: not known"),
        ({"kept": [[0, 1]]}, "kept: not a list of"),
        ({"kept": [[0, -1, 1]]}, "kept: not a list of"),
        ({"kept_elsewhere": [[0, "t-1"]]}, "kept_elsewhere: not a list of"),
        ({"kept_elsewhere": [[0, 1, 1]]}, "a place is not"),
        ({"prompt_tokens": "9"}, "prompt_tokens: not a whole number"),
        ({"added": []}, "added: not an object"),
        ({"added": {"kind": "recall"}}, "text: missing"),
    ],
)
def test_a_wrong_field_is_named(change: dict[str, Any], words: str) -> None:
    good = {"turn": "t-1", "conversation": "c-1", "created_at": 0.0, "ending": "complete"}
    assert from_line(good).id == "t-1"
    with pytest.raises(WireError) as wrong:
        from_line(good | change)
    assert words in str(wrong.value) and "secret" not in str(wrong.value)


def test_a_line_that_is_no_object_is_refused() -> None:
    with pytest.raises(WireError, match="not an object"):
        from_line([])
