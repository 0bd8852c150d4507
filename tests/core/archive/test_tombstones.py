"""A resend of what was erased is known; what is said anew is not taken for one."""

from __future__ import annotations

from dataclasses import replace

import pytest
from palimpsest.core.archive.tombstones import SentMessage, Tombstone, resends, scope_print, scope_prints

from tests.talking import record

HERE, THERE = 77, 88  # conversations
ERASED_AT = 100.0


def stone(full: int, after: int = 0, opening: int | None = None) -> Tombstone:
    return Tombstone(full, full + 1000 if opening is None else opening, after, HERE, ERASED_AT)


def user(full: int, opening: int | None = None, *, new: bool = True, erased: bool = False) -> SentMessage:
    return SentMessage(full, full + 1000 if opening is None else opening, False, False, new, erased)


def answer(full: int, *, new: bool = True, erased: bool = False) -> SentMessage:
    return SentMessage(full, full + 1000, False, True, new, erased)


def system(full: int) -> SentMessage:
    return SentMessage(full, full + 1000, True, False, True)


ERASED = [stone(1), stone(2, after=1), stone(3, after=2)]  # a question, its answer, another question


def found(
    *sent: SentMessage, stones: list[Tombstone] = ERASED, conversation: int = THERE, at: float = 200.0
) -> list[int]:
    return sorted(resends(sent, stones, conversation, at))


def test_the_history_of_an_erased_conversation_is_known_whoever_sends_it() -> None:
    assert found(user(1), answer(2), user(9)) == [0, 1]


def test_a_window_that_slid_over_it_is_known_too() -> None:
    assert found(answer(2), user(3), answer(4), user(9)) == [0, 1, 2]


def test_what_stands_in_front_of_a_known_answer_is_history() -> None:
    assert found(user(1), answer(-1, new=False, erased=True), user(3), answer(-1, new=False), user(9)) == [0, 2]


def test_the_same_words_in_a_new_conversation_are_said_anew() -> None:
    assert found(user(1)) == []
    assert found(user(5), answer(6), user(1)) == []


def test_the_same_words_as_the_first_of_the_same_conversation_are_a_retry() -> None:
    assert found(user(1), conversation=HERE) == [0]


def test_a_retry_of_the_last_request_is_known_by_what_stands_before_it() -> None:
    assert found(user(1), answer(2), user(3)) == [0, 1, 2]


def test_a_request_that_came_before_the_erasure_is_known_wherever_it_stands() -> None:
    assert found(user(1), at=ERASED_AT) == [0]


def test_a_message_that_begins_alike_is_known_beside_a_resend_alone() -> None:
    glued = user(41, opening=1001)
    assert found(glued, answer(2), user(9)) == [0, 1]
    assert found(glued, answer(6), user(9)) == []


def test_an_answer_that_was_on_its_way_goes_with_its_question() -> None:
    assert found(user(1), answer(2), user(3), answer(50), user(9)) == [0, 1, 2, 3]


def test_an_answer_behind_a_common_word_of_another_conversation_stays() -> None:
    assert found(user(5), answer(6), user(3), answer(50), user(9)) == [2]


def test_what_an_erased_message_became_is_known_where_that_still_stands() -> None:
    kept = [user(1, new=False, erased=True), answer(51), user(9)]
    assert found(*kept, stones=[stone(1)]) == [1]


def test_instructions_go_with_the_history_that_they_led() -> None:
    stones = [*ERASED, stone(7)]
    assert found(system(7), user(1), answer(2), user(9), stones=stones) == [0, 1, 2]
    assert found(system(7), user(9), stones=stones) == []
    assert found(system(7), user(9), stones=stones, conversation=HERE) == [0]


def test_nothing_that_is_known_already_is_found_again() -> None:
    assert found(user(1, new=False), answer(2, new=False), user(9)) == []


@pytest.mark.parametrize("other", [("user", "bob"), ("scope", "ann"), ("user", "ann", "x")])
def test_prints_of_different_scopes_differ_and_so_do_tenants(other: tuple[str, ...]) -> None:
    mine = scope_print(b"key", "user", "ann")
    assert mine == scope_print(b"key", "user", "ann") < 1 << 63
    assert mine not in (scope_print(b"key", *other), scope_print(b"other key", "user", "ann"))


def test_a_request_is_reached_by_an_erasure_of_whatever_it_belongs_to_and_of_nothing_else() -> None:
    def prints(**more: str) -> set[int]:
        return set(scope_prints(replace(record([]).turn, **more), b"key"))  # type: ignore[arg-type]

    def of(kind: str, *names: str) -> int:
        return scope_print(b"key", kind, *names)

    plain = {of("conversation", "c-1"), of("tenant", "")}
    assert prints() == plain
    assert prints(parent_conversation="c-0") == plain | {of("conversation", "c-0")}
    assert prints(user="ann") == plain | {of("user", "ann")}
    assert prints(scope="ledger") == plain | {of("scope", "ledger")}
    assert prints(user="ann", scope="ledger") == plain | {
        of("user", "ann"),
        of("scope", "ledger"),
        of("user+scope", "ann", "ledger"),
    }


def test_its_own_conversation_comes_first() -> None:
    turn = replace(record([]).turn, parent_conversation="c-0", user="ann", scope="ledger")
    assert scope_prints(turn, b"key")[0] == scope_print(b"key", "conversation", "c-1")
