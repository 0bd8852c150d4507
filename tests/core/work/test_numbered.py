"""Items of a list that a request names by their numbers."""

import pytest
from palimpsest.core.work.numbered import MOST_NAMED, REQUEST_CHARS, items_of, named_numbers

LIST = """## What I would do

1. **Rename** the parser.
- (2) Test empty lines
**3. Drop the cache.** It is slow.
#4: write it down
"""


@pytest.mark.parametrize(
    ("request_", "numbers"),
    [
        ("Improve tests, 2-4, 7", {2, 3, 4, 7}),
        ("Address #2 and #3", {2, 3}),
        ("Nimm 1 und 3.", {1, 3}),
        ("Go with option 1. The rest can wait.", {1}),
        ("7", {7}),
        ("Write 3 pages by 8 March, in 1.5 hours, at 10:30 on port :80", set()),
        ("Take 5% of v2, a4 and 2026.", set()),
        (f"Fix 2. {'It fails. ' * (REQUEST_CHARS // 10)}", set()),
        (f"Sum up 1-{MOST_NAMED}, 40", set()),
    ],
)
def test_a_number_is_of_a_list_where_nothing_follows_that_it_counts(request_: str, numbers: set[int]) -> None:
    assert named_numbers(request_) == numbers


def test_items_come_in_their_lines_where_a_list_has_all_that_are_named() -> None:
    assert items_of(LIST, frozenset({2, 4})) == ["- (2) Test empty lines", "#4: write it down"]
    assert items_of(LIST, frozenset({1, 3})) == ["1. **Rename** the parser.", "**3. Drop the cache.** It is slow."]
    assert items_of(LIST, frozenset({2, 5})) == items_of(LIST, frozenset()) == []
    assert items_of("1. One thing\n2. Another", frozenset({1})) == [], "two are no list"
