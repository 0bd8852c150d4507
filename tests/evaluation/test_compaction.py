import pytest
from palimpsest.domain.errors import PolicyError
from palimpsest.evaluation.compaction import KEPT_MESSAGES, SUMMARY_CHARS, Strategy, compacted, query_after, until
from palimpsest.settings.policy import Policy

from tests.evaluation.told import told

TALK = told(*[line for at in range(20) for line in (f"user: about file_{at}.py", f"assistant: It is fine. Port {at}.")])


def test_a_conversation_is_cut_at_a_share_of_its_messages() -> None:
    assert len(until(TALK, 0.3).messages) == 12


async def test_the_last_messages_stay_and_a_sliding_window_says_nothing_of_the_others() -> None:
    after = await compacted(TALK, Strategy.SLIDING)
    assert (after.dropped, after.kept) == (36, TALK.messages[-KEPT_MESSAGES:])
    assert after.summary == ""
    assert "file_17.py" not in after.visible
    assert "file_18.py" in after.visible


async def test_an_extractive_summary_is_spread_over_what_was_dropped() -> None:
    after = await compacted(TALK, Strategy.EXTRACTIVE)
    assert "about file_0.py" in after.summary
    assert "Port" not in after.summary, "the first sentence of each"
    assert len(after.summary) < SUMMARY_CHARS


async def test_an_abstractive_summary_needs_a_model() -> None:
    class Tired:
        async def complete(self, prompt: str, max_tokens: int = 0) -> str:
            assert "file_0.py" in prompt
            assert "file_18.py" not in prompt
            return "we looked at files"

    assert "we looked at files" in (await compacted(TALK, Strategy.ABSTRACTIVE, Tired())).visible
    with pytest.raises(PolicyError, match="--model"):
        await compacted(TALK, Strategy.ABSTRACTIVE)


async def test_memory_is_asked_what_the_proxy_would_ask() -> None:
    query = query_after(TALK, await compacted(TALK, Strategy.EXTRACTIVE), Policy())
    assert query is not None
    assert query.lost == frozenset(range(36))
    assert query.named is not None, "nobody asks anything new"
    assert "file_0.py" in query.named, "the summary says it"
    assert "file_18.py" in query.text


async def test_instructions_are_no_part_of_what_was_lost() -> None:
    talk = told("system: be kind", *[f"user: word {at}" for at in range(10)])
    query = query_after(talk, await compacted(talk, Strategy.SLIDING), Policy())
    assert query is not None
    assert query.lost == frozenset(range(1, 7))
