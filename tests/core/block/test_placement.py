"""The place of a block, and which blocks of before are sent again."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from palimpsest.core.block.placement import Replay, insertions, place, replay
from palimpsest.domain import Block, BlockKind, Chat, Event, Head, Insertion, Lineage, Message, Role, StoredBlock

BLOCK = Block("<said>", BlockKind.RECALL, (1, 2), tokens=7)


def chat(*roles: str) -> Chat:
    messages = tuple(Message(role, f"{role} {at}", {}) for at, role in enumerate(roles))
    return Chat(messages, "m", b"", {})


def places(*roles: str) -> tuple[int, ...]:
    """Of the history in a request of messages of these roles."""
    return tuple(at for at, role in enumerate(roles) if role != "system")


def lineage(kept: tuple[int, ...], changed: tuple[int, ...] = ()) -> Lineage:
    head = Head(
        "c", 1, Role.MAIN, [10, 11, 12], [10, 11, 12], [100, 101, 102], [1, 2, 1], blocks=(StoredBlock(100, BLOCK),)
    )
    return Lineage(Event.APPEND, Role.MAIN, head, kept=kept, changed=changed)


def test_a_block_is_sent_again_while_its_anchor_is_there() -> None:
    replayed = replay(places("system", "user", "assistant", "user"), lineage((0, 1, -1)))
    assert replayed.repeated == ((1, StoredBlock(100, BLOCK)),)
    assert (replayed.tokens, replayed.occurrences) == (7, frozenset({1, 2}))


def test_a_conversation_that_just_began_has_no_blocks_to_say_again() -> None:
    assert replay(places("user"), Lineage(Event.START, Role.MAIN)) == Replay()


def test_a_block_goes_with_its_anchor() -> None:
    assert replay(places("assistant", "user"), lineage((1, -1))).repeated == ()


def test_a_block_that_the_provider_holds_counts_and_is_not_sent_again() -> None:
    replayed = replay(places("user"), replace(lineage((-1,)), held=(0, 1)))
    assert (replayed.repeated, replayed.held) == ((), (StoredBlock(100, BLOCK),))
    assert (replayed.tokens, replayed.visible_tokens, replayed.occurrences) == (0, 7, frozenset({1, 2}))


def test_a_block_goes_when_the_text_of_its_anchor_changed() -> None:
    assert replay(places("user"), lineage((0,), changed=(0,))).repeated == ()


def test_a_moved_anchor_carries_its_block_to_its_new_place() -> None:
    replayed = replay(places("user", "assistant", "user"), lineage((2, 1, 0)))
    assert [at for at, _ in replayed.repeated] == [2]


@given(st.lists(st.integers(0, 99), max_size=12, unique=True), st.sets(st.integers(0, 99), max_size=6), st.booleans())
def test_in_a_request_that_only_goes_on_blocks_are_found_as_in_any_other(
    occurrences: list[int], anchors: set[int], rises: bool
) -> None:
    listed = sorted(occurrences) if rises else occurrences
    blocks = tuple(StoredBlock(anchor, replace(BLOCK, tokens=anchor)) for anchor in sorted(anchors))
    head = Head("c", 1, Role.MAIN, listed, listed, listed, [1] * len(listed), blocks=blocks)
    other = Lineage(Event.APPEND, Role.MAIN, head, kept=(*range(len(listed)), -1))
    request = range(2, len(listed) + 3)
    assert replay(request, replace(other, goes_on=True)) == replay(request, other)


def test_a_new_block_stands_in_the_newest_user_message() -> None:
    assert place(chat("system", "user", "assistant", "tool"), 1, "user") == (1, "")


def test_without_a_user_message_it_stands_alone_behind_the_instructions() -> None:
    assert place(chat("system", "assistant", "tool"), -1, "user") == (1, "user")


def test_policy_can_put_it_behind_the_system_prompt() -> None:
    assert place(chat("system", "developer", "user"), 2, "system") == (2, "system")


def test_behind_a_held_history_it_stands_behind_the_results_of_its_calls() -> None:
    assert place(replace(chat("system", "tool", "user"), held=True), 2, "system") == (2, "system")
    assert place(replace(chat("tool", "tool"), held=True), -1, "system") == (2, "system")


def test_a_request_of_instructions_only_takes_the_block_in_front_of_the_last() -> None:
    assert place(chat("system"), -1, "user") == (0, "user")


def test_old_blocks_and_the_new_one_are_added_where_they_belong() -> None:
    old = replay(places("user", "assistant", "user"), lineage((0, 1, -1)))
    alone = Block("<new>", BlockKind.RESTORE, (), role="user")
    assert insertions(old, (2, alone)) == (Insertion(0, "<said>"), Insertion(2, "<new>", "user"))
    assert insertions(old, None) == (Insertion(0, "<said>"),)
