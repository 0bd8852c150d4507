"""Passages that a compaction took away, ordered by what they name that nothing else says."""

from hypothesis import given
from hypothesis import strategies as st
from palimpsest.core.recall.coverage import LostPassage, by_coverage


def lost(id: int, *tags: str, chars: int = 100, is_result: bool = False, tells: float = 0.0) -> LostPassage:
    return LostPassage(id, chars, frozenset(tags), is_result, tells)


def order(passages: list[LostPassage], shown: frozenset[str] = frozenset(), limit: int = 100) -> list[int]:
    return [passage.id for passage, _ in by_coverage(passages, shown, limit)]


def test_what_names_most_for_its_length_comes_first() -> None:
    assert order([lost(1, "a.py", chars=900), lost(2, "b.py", chars=100)]) == [2, 1]
    assert order([lost(1, "a.py", "b.py"), lost(2, "c.py")]) == [1, 2]


def test_what_the_model_still_sees_named_does_not_count() -> None:
    assert order([lost(1, "a.py", "b.py"), lost(2, "c.py")], frozenset({"a.py", "b.py"})) == [2, 1]


def test_what_another_passage_names_already_comes_late() -> None:
    assert order([lost(1, "a.py", "b.py"), lost(2, "d.py"), lost(3, "a.py", "b.py", "c.py")]) == [3, 2, 1]


def test_results_of_tools_come_last() -> None:
    names = lost(2, "a.py", "b.py", "c.py", is_result=True)
    assert order([lost(1, "d.py"), names, lost(3, "e.py")]) == [3, 1, 2]


def test_of_equals_the_newer_comes_first() -> None:
    assert order([lost(1, "a.py"), lost(2, "b.py")]) == [2, 1]
    assert order([lost(1, tells=0.5), lost(2, tells=0.5)]) == [2, 1]


def test_speakers_and_question_marks_are_no_names() -> None:
    assert order([lost(1, "ann:", "?", "!", "=9")]) == []


def test_what_a_user_tells_comes_without_naming_anything_and_small_talk_does_not() -> None:
    assert order([lost(1, tells=0.9), lost(2, chars=20), lost(3, "?"), lost(4, tells=0.4)]) == [1, 4]
    assert order([lost(1, tells=1.0), lost(2, "a.py")]) == [1, 2], "a sure statement counts for a name"


def test_a_longer_line_comes_back_without_names_and_greetings_and_bare_questions_do_not() -> None:
    greeting, bare = lost(1, chars=50, tells=1 / 9), lost(2, "?", chars=100)
    assert order([greeting, bare, lost(3, chars=70), lost(4, "?", chars=130)]) == [3, 4]


def test_without_prose_only_what_tells_or_names_something_comes() -> None:
    passages = [lost(1, chars=500), lost(2, "a.py"), lost(3, tells=0.5)]
    assert [one.id for one, _ in by_coverage(passages, frozenset(), 9)] == [3, 2, 1]
    assert [one.id for one, _ in by_coverage(passages, frozenset(), 9, with_prose=False)] == [3, 2]


NAMES = st.frozensets(st.sampled_from("abcdefgh"), max_size=5)
PASSAGES = st.lists(st.tuples(NAMES, st.integers(1, 1000), st.booleans(), st.floats(0, 1)), max_size=20).map(
    lambda many: [LostPassage(at, *passage) for at, passage in enumerate((c, t, r, s) for t, c, r, s in many)]
)


@given(PASSAGES, NAMES, st.integers(0, 20))
def test_each_choice_is_the_best_that_is_left(passages: list[LostPassage], shown: frozenset[str], limit: int) -> None:
    chosen = by_coverage(passages, shown, limit)
    assert len({passage.id for passage, _ in chosen}) == len(chosen) <= min(limit, len(passages))
    assert by_coverage(passages, shown, len(passages))[:limit] == chosen
    gains = [gain for _, gain in chosen]
    assert gains == sorted(gains, reverse=True), "gains only shrink"
    assert by_coverage(passages, shown, limit) == chosen
