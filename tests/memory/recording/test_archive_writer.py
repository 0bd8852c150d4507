"""What answers tell of the worth of memory, as it is counted."""

from __future__ import annotations

from dataclasses import replace

import orjson
import pytest
from palimpsest.core.archive.records import answer_record
from palimpsest.domain import AnswerRecord, Block, BlockKind, Completion, Ending, Message, Turn, Usage
from palimpsest.memory.recording.archive_writer import count_quotations, count_usage
from palimpsest.wire.frame import opened, quotation

from tests.memory.recording.test_archivist import Tally, turn_of
from tests.talking import user

SHOWN = opened(BlockKind.RECALL, "Quoted.") + quotation("user", "The archive is in room 3172.") + "</palimpsest-memory>"
USAGE = orjson.dumps({"usage": {"prompt_tokens": 50, "prompt_tokens_details": {"cached_tokens": 40}}})


@pytest.fixture
def counts() -> Tally:
    return Tally()


def heard(turn: Turn, text: str) -> AnswerRecord:
    said = Message("assistant", text, {"role": "assistant", "content": text})
    return answer_record(turn, Completion(said), Ending.COMPLETE, 0.0, b"k" * 32, str)


def test_passages_that_the_answer_quotes_are_counted_beside_those_that_it_was_shown(counts: Tally) -> None:
    turn = replace(turn_of(user("Where is the archive?")), block=Block(SHOWN, BlockKind.RECALL, (1,)))
    for text in ("Room 3172.", "I do not know."):
        count_quotations(counts, turn, heard(turn, text))
    assert (counts.added["passages_shown"], counts.added["passages_quoted"]) == (2, 1)


def test_a_block_that_was_not_sent_was_not_shown(counts: Tally) -> None:
    turn = replace(turn_of(user("hello")), block=Block(SHOWN, BlockKind.RECALL, (1,)), is_bare=True)
    count_quotations(counts, turn, heard(turn, "3172"))
    assert not counts.added


def test_tokens_are_counted_where_the_provider_tells_them(counts: Tally) -> None:
    assert count_usage(counts, [USAGE], False) == Usage(50, None, 40, None)
    assert count_usage(counts, [b"{}"], False) == Usage()
    assert +counts.added == {"prompt_tokens": 50, "cache_read_tokens": 40}


def test_what_cannot_be_counted_is_a_fault_and_no_failure(counts: Tally) -> None:
    assert count_usage(counts, [3], False) == Usage()  # type: ignore[list-item]
    assert counts.faults["answer_counts"] == 1
