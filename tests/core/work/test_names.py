"""Names of a text, verbatim."""

import pytest
from palimpsest.core.work.names import is_number, names, parts, placed


def test_paths_identifiers_versions_and_numbers_are_names_and_words_are_none() -> None:
    text = "Please open src/App.tsx, call getUser() with MAX_SIZE 5433 under v1.2.3, and nothing else."
    assert names(text) == {"src/App.tsx", "getUser", "MAX_SIZE", "5433", "v1.2.3"}


def test_a_name_keeps_its_case_and_not_the_signs_that_close_a_sentence() -> None:
    assert names("It is in lib/Parser.py.") == {"lib/Parser.py"}


def test_a_line_of_a_file_is_that_file_as_its_number_changes_with_the_next_edit() -> None:
    found = "lib/a.py:12: import_all cmd/main.go:1109:func(x) src/b.ts:88:14 http://127.0.0.1:8080 x_port:5432"
    assert names(found) == {"lib/a.py", "import_all", "cmd/main.go", "src/b.ts", "http://127.0.0.1:8080", "x_port:5432"}


def test_short_ones_data_measures_moments_and_ranges_of_lines_are_no_names() -> None:
    assert (
        names(f"a.b x_y 12 {'k1' * 80} sed -n '742,751p' 1,40p and/or 0.223s 63.2KB 2026-01-16T22:29:05Z 22:29:05")
        == set()
    )


def test_names_come_in_their_order_with_their_places() -> None:
    assert [*placed("(src/a.py): then parse_it, parse_it")] == [("src/a.py", 1), ("parse_it", 17), ("parse_it", 27)]


@pytest.mark.parametrize(("name", "is_one"), [("5433", True), ("v0.1.0", True), ("12:30", True), ("x86_64", False)])
def test_versions_dates_and_times_are_numbers(name: str, is_one: bool) -> None:
    assert is_number(name) is is_one


def test_a_name_is_made_of_the_words_between_its_signs_and_humps() -> None:
    assert set(parts("src/getUserName")) == {"src", "get", "user", "name"}
