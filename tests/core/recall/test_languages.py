"""The words of the languages that are known."""

import pytest
from palimpsest.core.recall import languages
from palimpsest.core.recall.utterance import words

TABLES = ("FUNCTION", "OWN", "BACK", "SMALL", "WISH", "PARTICULAR", "GENERAL", "GO_ON")


@pytest.mark.parametrize("name", TABLES)
def test_every_language_has_words_of_every_kind(name: str) -> None:
    table = getattr(languages, name)
    assert list(table) == list(languages.FUNCTION)
    assert all(words(entries) for entries in table.values())


def test_every_script_without_spaces_has_entries_of_every_kind() -> None:
    kinds = {name.lower() for name in TABLES} - {"function"}
    assert set(languages.UNSPACED) == kinds
    assert {tuple(entries) for entries in languages.UNSPACED.values()} == {("zh", "ja", "ko", "th")}
