"""Names of a text, verbatim."""

import pytest
from palimpsest.core.work.names import is_number, names, parts, place_of


def test_paths_identifiers_versions_and_numbers_are_names_and_words_are_none() -> None:
    text = "Please open src/App.tsx, call getUser() with MAX_SIZE 5433 under v1.2.3, and nothing else."
    assert names(text) == {"src/App.tsx", "getUser", "MAX_SIZE", "5433", "v1.2.3"}


def test_a_name_keeps_its_case_and_not_the_signs_that_close_a_sentence() -> None:
    assert names("It is in lib/Parser.py.") == {"lib/Parser.py"}


def test_short_ones_and_data_are_no_names() -> None:
    assert names(f"a.b x_y 12 {'k1' * 80}") == set()


def test_a_name_stands_where_its_letters_are_a_word_of_their_own() -> None:
    assert place_of("parse_it", "reparse_it parse_its parse_it") == 21
    assert place_of("parse_it", "parse_its") == -1


@pytest.mark.parametrize(("name", "is_one"), [("5433", True), ("v0.1.0", True), ("12:30", True), ("x86_64", False)])
def test_versions_dates_and_times_are_numbers(name: str, is_one: bool) -> None:
    assert is_number(name) is is_one


def test_a_name_is_made_of_the_words_between_its_signs_and_humps() -> None:
    assert set(parts("src/getUserName")) == {"src", "get", "user", "name"}
