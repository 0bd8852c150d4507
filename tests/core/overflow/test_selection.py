"""What is left out of a request that is too long: never half of a pair, never what has to stay."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from palimpsest.core.overflow.room import Room
from palimpsest.core.overflow.selection import KEPT_STEPS, complete, select, tokens_left
from palimpsest.core.overflow.steps import steps_of
from palimpsest.domain import Chat, Omission, Trim
from palimpsest.evaluation.scripted.rules import violations
from palimpsest.wire.trimming import thinks, trimmed

from tests.overflowing import CHAT, MESSAGES, RESPONSES, WIRES, WISH, Call, Exchange, body_of, talks

PATHS = st.sampled_from([CHAT, MESSAGES, RESPONSES])
NOTHING = Omission()


def read(path: str, exchanges: tuple[Exchange, ...]) -> Chat:
    return WIRES[path].parse(orjson.dumps(body_of(path, exchanges)))


def sizes(chat: Chat) -> list[float]:
    return [4 + (len(m.text) + sum(len(call.arguments) for call in m.calls)) / 4 for m in chat.messages]


def cut(chat: Chat, window: float, before: Omission = NOTHING) -> Omission:
    steps = steps_of(chat)
    return select(chat, steps, sizes(chat), complete(before, steps), Room(window * 0.8, window / 2))


def left_of(path: str, chat: Chat, omission: Omission) -> Chat:
    return trimmed(Trim(chat, omission), WIRES[path])


@settings(deadline=None)
@given(PATHS, talks(), st.integers(100, 20_000))
def test_what_is_left_keeps_every_rule_of_its_wire(path: str, talk: tuple[Exchange, ...], window: int) -> None:
    chat = read(path, talk)
    assert violations(path, chat.raw) == []
    left = left_of(path, chat, cut(chat, window))
    assert violations(path, left.raw) == []


@settings(deadline=None)
@given(PATHS, talks(), st.integers(100, 20_000))
def test_instructions_first_words_and_newest_steps_stay(path: str, talk: tuple[Exchange, ...], window: int) -> None:
    chat = read(path, talk)
    omission = cut(chat, window)
    steps = steps_of(chat)
    of_model = [step for step in steps if not step.is_users]
    fits = sum(tokens_left(chat, sizes(chat), omission)) <= window * 0.8
    newest = of_model[-KEPT_STEPS:] if fits and has_room_for_newest(chat, window) else of_model[-1:]
    stays = {at for step in (*newest, steps[0], steps[-1]) for at in step.messages}
    assert not stays & omission.drops and not {at for step in newest for at in step.messages} & omission.stubs
    assert not any(chat.messages[at].is_instruction for at in omission.drops if path != MESSAGES)
    assert chat.messages[0].is_instruction and 0 not in omission.drops | omission.stubs


def has_room_for_newest(chat: Chat, window: float) -> bool:
    """Whether a cut of all that is older leaves few enough tokens."""
    steps = steps_of(chat)
    of_model = [index for index, step in enumerate(steps) if not step.is_users]
    oldest = of_model[-KEPT_STEPS:][0] if of_model else 0
    tokens = sizes(chat)
    kept = sum(tokens[at] for step in steps[max(0, oldest - 1) :] for at in step.messages)
    users = sum(tokens[at] for step in steps[:oldest] for at in step.messages if step.is_users)
    finals = sum(tokens[at] for step in steps[:oldest][:4] for at in step.messages)
    return kept + users + finals <= window / 4


@settings(deadline=None)
@given(PATHS, talks(), st.integers(100, 20_000))
def test_nothing_is_left_out_of_what_fits_and_nothing_more_than_needed(
    path: str, talk: tuple[Exchange, ...], window: int
) -> None:
    chat = read(path, talk)
    omission, tokens = cut(chat, window), sizes(chat)
    if sum(tokens) <= window * 0.8:
        assert not omission
        return
    each = tokens_left(chat, tokens, omission)
    largest = max((sum(tokens[at] for at in step.messages) for step in steps_of(chat)), default=0.0)
    exchange = largest * (1 + max(len(one.steps) for one in talk) + 1)
    assert not omission or sum(each) > window / 2 - exchange, "the last unit was needed"


@settings(deadline=None)
@given(PATHS, talks(), talks(), st.integers(500, 5000))
def test_cut_stays_as_it_was_until_the_window_is_full_again(
    path: str, talk: tuple[Exchange, ...], more: tuple[Exchange, ...], window: int
) -> None:
    """Behind the same cut the body begins with the very bytes of before."""
    chat = read(path, talk)
    first = cut(chat, window)
    grown = read(path, (*talk, *more))
    second = cut(grown, window, first)
    assert first.drops <= second.drops and first.stubs <= second.stubs | second.drops
    if second == first:
        one, other = (left_of(path, at, first).body for at in (chat, grown))
        stable = one.rstrip(b"]}")
        assert other.startswith(stable[: len(stable) - 1])


@settings(deadline=None)
@given(talks(), st.integers(100, 20_000))
def test_stubs_say_nothing_inside_of_calls(talk: tuple[Exchange, ...], window: int) -> None:
    chat = read(CHAT, talk)
    omission = cut(chat, window)
    left = left_of(CHAT, chat, omission)
    own = {call.arguments for message in chat.messages for call in message.calls}
    assert {call.arguments for message in left.messages for call in message.calls} <= own | {"{}"}


def test_wish_stays_where_it_was_said_while_there_is_room() -> None:
    filler = [Exchange("word " * 100, answer="word " * 100) for _ in range(20)]
    talk = (*filler[:10], Exchange(WISH, answer="Understood."), *filler[10:])
    chat = read(CHAT, talk)
    left = left_of(CHAT, chat, cut(chat, 4500))
    said = [message.text for message in left.messages]
    assert WISH in said and said[said.index(WISH) + 1] == "Understood."
    assert len(left.messages) < len(chat.messages) / 2


def test_results_become_stubs_before_anything_is_dropped() -> None:
    steps = tuple((Call(f"c{at}", 10, 2000),) for at in range(12))
    chat = read(CHAT, (Exchange("Read all of them.", steps),))
    omission = cut(chat, 6000)
    assert omission.stubs and not omission.drops
    results = [at for at, message in enumerate(chat.messages) if message.role == "tool"]
    assert sorted(omission.stubs) == results[: len(omission.stubs)], "the oldest first"


@pytest.mark.parametrize("path", [MESSAGES, RESPONSES])
def test_calls_beside_thoughts_keep_their_arguments(path: str) -> None:
    steps = tuple((Call(f"c{at}", 2000, 10),) for at in range(12))
    chat = read(path, (Exchange("Write all of them.", steps, thinks=True),))
    assert not cut(chat, 6000).stubs


def working(at: int, *, is_thinking: bool) -> Exchange:
    return Exchange("word " * 100, ((Call(f"c{at}"),),), "word " * 100, is_thinking)


@pytest.mark.parametrize("path", [MESSAGES, RESPONSES])
def test_thoughts_stay_while_other_exchanges_can_go(path: str) -> None:
    chat = read(path, tuple(working(at, is_thinking=at % 6 == 0) for at in range(18)))
    thoughts = {at for at, message in enumerate(chat.messages) if thinks(message.raw)}
    omission = cut(chat, 4000)
    assert len(thoughts) == 3 and omission.drops and not omission.drops & thoughts


@pytest.mark.parametrize("path", [MESSAGES, RESPONSES])
def test_thoughts_go_with_their_whole_exchange_the_oldest_first_where_nothing_else_is_left(path: str) -> None:
    chat = read(path, tuple(working(at, is_thinking=True) for at in range(18)))
    omission = cut(chat, 4000)
    assert sum(tokens_left(chat, sizes(chat), omission)) <= 4000 / 2
    begins = [step.first for step in steps_of(chat) if step.is_users]
    gone = [at for at in range(len(chat.messages)) if at in omission.drops and at >= begins[1]]
    assert gone == [*range(begins[1], gone[-1] + 1)] and gone[-1] + 1 in begins


@pytest.mark.parametrize("path", [CHAT, MESSAGES, RESPONSES])
@pytest.mark.parametrize("results", [1, 3])
def test_results_longer_than_the_window_keep_both_ends_and_fit(path: str, results: int) -> None:
    steps = (
        *((Call(f"c{at}", 10, 400),) for at in range(4)),
        tuple(Call(f"d{at}", 10, 16_000) for at in range(results)),
    )
    chat = read(path, (Exchange("Read all of them.", steps),))
    omission = cut(chat, 4000)
    assert not omission.drops and not omission.stubs, "only what is longer than the window is shortened"
    assert sorted(omission.clips) == [at for at, message in enumerate(chat.messages) if len(message.text) == 16_000]
    left = left_of(path, chat, omission)
    assert sum(sizes(left)) <= 4000 * 0.8 and violations(path, left.raw) == []
    told = [message.text for message in left.messages if "left out" in message.text]
    assert len(told) == results and all(text.startswith("yyy") and text.endswith("yyy") for text in told)
    assert cut(chat, 4000, omission) == omission


@pytest.mark.parametrize("size", [250, 300, 500])
def test_cut_gives_up_newest_steps_but_one_where_with_these_the_next_one_would_soon_be_due(size: int) -> None:
    chat = read(CHAT, tuple(Exchange(f"{at} " + "word " * size, answer="Noted.") for at in range(12)))
    left = sum(tokens_left(chat, sizes(chat), cut(chat, 4000)))
    first_and_newest = sum(sizes(chat)[at] for at in (0, 1, 2, -3, -2, -1))
    assert left <= max((3200 + 2000) / 2, first_and_newest)


def test_newest_steps_that_are_given_up_are_dropped_and_leave_no_stubs() -> None:
    steps = tuple((Call(f"c{at}", 10, 2000),) for at in range(12))
    chat = read(CHAT, (Exchange("Read all of them.", steps),))
    omission = cut(chat, 3600)
    assert not omission.clips and len(omission.drops) > 2 * (len(steps) - KEPT_STEPS)
    assert not omission.stubs
    assert sum(tokens_left(chat, sizes(chat), omission)) <= 1800


def test_cut_sheds_the_blocks_that_make_it_due() -> None:
    chat = read(CHAT, tuple(Exchange(f"{at} " + "word " * 100) for at in range(20)))
    steps, tokens, room = steps_of(chat), sizes(chat), Room(3200, 2000)
    assert 2500 < sum(tokens) < 3000 and not select(chat, steps, tokens, NOTHING, room, {1: 100})
    omission = select(chat, steps, tokens, NOTHING, room, {1: 300, 7: 300})
    assert 2000 - 150 < sum(tokens_left(chat, tokens, omission)) <= 2000
    assert select(chat, steps, tokens, omission, room, {1: 600, 5: 9000}) == omission, "what is left out has none"


def test_result_that_has_lost_its_middle_goes_as_any_other_once_it_is_old() -> None:
    large = (Call("a", 10, 40_000),)
    before = cut(read(CHAT, (Exchange("Read it.", (large,)),)), 4000)
    grown = read(CHAT, (Exchange("Read it.", (large, *((Call(f"c{at}", 10, 2000),) for at in range(6)))),))
    omission = cut(grown, 4000, before)
    assert before.clips and not omission.clips and set(before.clips) <= omission.stubs | omission.drops


def test_what_the_user_says_is_never_shortened() -> None:
    chat = read(CHAT, (Exchange("word " * 8000, ((Call("a", 10, 2000),),)),))
    assert 1 not in cut(chat, 4000).clips
