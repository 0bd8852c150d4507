from palimpsest.core.writing.entries import ENTRY_TOKENS, LONG_CHARS, cost, share
from palimpsest.domain import Item, SourceMessage

from tests.core.writing.talking import count


def test_an_item_costs_its_question_or_topic_its_text_and_its_day() -> None:
    assert cost(Item("Anna lives here", (), question="Who lives?"), count) == ENTRY_TOKENS + 5
    assert cost(Item("Anna lives here", (), topic="homes"), count) == ENTRY_TOKENS + 4


def test_a_clause_of_a_document_counts_less_than_one_of_a_message() -> None:
    assert share(SourceMessage(1, "user", "short")) == 1
    assert share(SourceMessage(1, "user", "x" * 2 * LONG_CHARS)) == 0.5
