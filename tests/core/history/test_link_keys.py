"""What leads a later request back to its conversation."""

from __future__ import annotations

from dataclasses import replace

import orjson
import pytest
from palimpsest.core.history.link_keys import (
    KEPT_ECHOES,
    KEPT_PHRASES,
    LONG_CHARS,
    NEWEST_CLUES,
    answer_links,
    clues,
    flags_of,
    further_clues,
    id_print,
    reply_links,
    request_links,
    shape_of,
)
from palimpsest.domain import Chat, Event, Head, HeadFlag, Json, Lineage, LinkKind, Role, Shape, Speaker, Turn
from palimpsest.wire.chat import parse
from palimpsest.wire.fingerprint import fingerprint_of
from palimpsest.wire.message import read_message

from tests.core.driving import KEY, assistant, calling, prose, system, tool, user

SPEAKER = Speaker("one", client_ids=("client:7",))
TURN = Turn(
    id="t", tenant="one", conversation="c", role=Role.MAIN, event=Event.START, kept=(), new=(), parent_turn=None,
    parent_conversation="", shape=Shape(), links=(), model="m", user="", scope="", created_at=0.0, last_full=1,
)  # fmt: skip


def left_by(answer: Json, **turn: object) -> dict[LinkKind, set[int]]:
    message = read_message(answer)
    return by_kind(answer_links(message, fingerprint_of(message, KEY), replace(TURN, **turn), KEY))  # type: ignore[arg-type]


def by_kind(links: tuple[tuple[LinkKind, int], ...]) -> dict[LinkKind, set[int]]:
    return {kind: {fingerprint for k, fingerprint in links if k is kind} for kind, _ in links}


def looked_up(*messages: Json) -> dict[LinkKind, set[int]]:
    chat = chat_of(*messages)
    found = clues(chat, [fingerprint_of(m, KEY) for m in chat.history], SPEAKER, KEY)
    return {kind: set(prints) for kind, prints in found.prints.items()}


def chat_of(*messages: Json, **body: object) -> Chat:
    return parse(orjson.dumps({"model": "m", "messages": messages} | body))


@pytest.mark.parametrize(
    ("message", "flags"),
    [
        (user("short"), HeadFlag.USER),
        (user("x" * LONG_CHARS), HeadFlag.USER | HeadFlag.LONG),
        (assistant("short"), HeadFlag.ASSISTANT),
        (calling(("a", "read", {})), HeadFlag.ASSISTANT | HeadFlag.CALLS),
        (tool("a", "short"), HeadFlag.TOOL),
        ({"role": "function", "content": "short"}, HeadFlag.TOOL),
        ({"role": "oracle", "content": "short"}, 0),
    ],
)
def test_flags_tell_role_length_and_calls(message: Json, flags: int):
    assert flags_of(read_message(message)) == flags


def test_id_prints_differ_by_kind_value_and_key_and_fit_a_signed_64_bit_column():
    prints = [(KEY, "call", "a"), (KEY, "task", "a"), (KEY, "call", "b"), (b"k", "call", "a"), (KEY, "call", "\ud800")]
    hashed = {id_print(*fingerprint) for fingerprint in prints}
    assert len(hashed) == len(prints) and all(0 <= fingerprint < 2**63 for fingerprint in hashed)


def test_answer_is_looked_up_by_what_it_left():
    answer = assistant(prose(30))
    assert left_by(answer)[LinkKind.ANSWER] == looked_up(user("Hi."), answer)[LinkKind.ANSWER]


def test_short_answer_is_known_only_behind_what_it_answered():
    question = read_message(user("Really?"))
    left = left_by(assistant("Yes."), last_full=fingerprint_of(question, KEY).full)[LinkKind.ANSWER]
    assert left == looked_up(user("Really?"), assistant("Yes."))[LinkKind.ANSWER]
    assert left.isdisjoint(looked_up(user("Sure?"), assistant("Yes."))[LinkKind.ANSWER])


def test_call_is_looked_up_by_its_result_alone():
    answer = calling(("call-1", "read", {"path": "a.py"}))
    assert left_by(answer)[LinkKind.CALL] == looked_up(tool("call-1", "text"))[LinkKind.CALL]


@pytest.mark.parametrize("arguments", ["", "{", "[1]", '"text"', '{"path": "a.py", "n": 5, "deep": {"x": "y"}}'])
def test_arguments_that_are_no_sentence_are_no_task(arguments: str):
    call = {"id": "c", "function": {"name": "f", "arguments": arguments}}
    assert LinkKind.TASK not in left_by(assistant("") | {"tool_calls": [call]})


def test_a_call_without_an_id_is_known_by_its_task_alone():
    """Ids that are missing would all be the same one."""
    call = {"type": "function", "function": {"name": "task", "arguments": orjson.dumps({"prompt": prose(60)}).decode()}}
    named, unnamed = (left_by(assistant("") | {"tool_calls": [call | id]}) for id in ({"id": "c1"}, {}))
    assert LinkKind.CALL in named and LinkKind.CALL not in unnamed
    assert named[LinkKind.TASK] == unnamed[LinkKind.TASK] != set()


def test_side_answer_leaves_its_echo_only_if_it_sums_up():
    answer = assistant(prose(300))
    assert left_by(answer, role=Role.SIDE) == {}
    left = left_by(answer, role=Role.SIDE, summarises=True)
    assert set(left) == {LinkKind.ECHO} and len(left[LinkKind.ECHO]) == KEPT_ECHOES


@pytest.mark.parametrize("role", [Role.MAIN, Role.SIDE])
def test_what_only_the_provider_can_read_is_looked_up_wherever_it_stands(role: Role):
    answer = assistant("") | {"content": [{"type": "compaction", "encrypted_content": "b3BhcXVl"}]}
    left = left_by(answer, role=role)[LinkKind.ECHO]
    assert left == looked_up(answer, *(user("Ok.") for _ in range(NEWEST_CLUES)))[LinkKind.ECHO] and len(left) == 1


def test_answer_is_looked_up_by_the_id_that_names_it():
    chat = replace(chat_of(user("Hi.")), follows="resp_1")
    found = clues(chat, [fingerprint_of(m, KEY) for m in chat.history], SPEAKER, KEY)
    assert tuple((LinkKind.REPLY, fingerprint) for fingerprint in found.prints[LinkKind.REPLY]) == reply_links(
        ["resp_1"], KEY
    )
    assert reply_links([""], KEY) == ()


def test_request_leaves_ids_long_messages_and_phrases_of_what_people_said():
    history = [
        read_message(m) for m in (user(prose(60)), assistant(prose(60, 1)), tool("c", prose(60, 2)), user("Ok."))
    ]
    prints = [fingerprint_of(m, KEY) for m in history]
    left = by_kind(request_links(history, prints, range(4), SPEAKER, KEY))
    assert left[LinkKind.CLIENT_ID] == {id_print(KEY, "client", "client:7")}
    assert left[LinkKind.MESSAGE] == {prints[0].full, prints[1].full} and len(left[LinkKind.PHRASE]) == KEPT_PHRASES


def test_request_leaves_nothing_of_what_is_not_new():
    history = [read_message(user(prose(60)))]
    assert set(by_kind(request_links(history, [fingerprint_of(history[0], KEY)], (), SPEAKER, KEY))) == {
        LinkKind.CLIENT_ID
    }


def test_only_the_newest_messages_of_a_long_history_are_looked_up():
    found = looked_up(*(user(prose(30, n)) for n in range(NEWEST_CLUES + 50)))
    assert len(found[LinkKind.MESSAGE]) == NEWEST_CLUES


def test_second_look_up_is_made_only_where_the_first_left_the_question_open():
    chat = chat_of(system("Hi."), user(prose(60)))
    head = Head("c", 1, Role.MAIN, [1, 2], [1, 2], [1, 2], [0, 0])
    continues, serves = Lineage(Event.APPEND, Role.MAIN, head, kept=(-1,)), Lineage(Event.START, Role.SIDE, kept=(-1,))
    for settled in (continues, replace(serves, parent="c")):
        assert further_clues(chat, settled, SPEAKER, KEY) is None
    for unsettled in (serves, replace(continues, head=None), replace(continues, dropped=(1,))):
        found = further_clues(chat, unsettled, SPEAKER, KEY)
        assert found is not None and {LinkKind.ECHO, LinkKind.TASK} <= set(found.prints)
        assert (LinkKind.PHRASE in found.prints) == (unsettled.head is None)


def test_what_stands_in_front_of_a_history_that_the_provider_holds_is_not_gone():
    chat = replace(chat_of(user(prose(60))), held=True)
    head = Head("c", 1, Role.MAIN, [1, 2], [1, 2], [1, 2], [0, 0])
    assert further_clues(chat, Lineage(Event.SUMMARY, Role.MAIN, head, dropped=(0, 1)), SPEAKER, KEY) is None


def test_shape_tells_how_the_first_instruction_begins_wherever_it_goes_on_otherwise():
    def shape(text: str) -> Shape:
        return shape_of(chat, [fingerprint_of(read_message(system(text)), KEY)], "")

    chat = chat_of(user("Hi."), stream=True, max_tokens=5)
    one, other = (
        shape(f"You answer from the documents below. {prose(9, 1)}"),
        shape(f"You answer from the documents below. {prose(9, 2)}"),
    )
    assert one.opens == other.opens and one.instructions != other.instructions and one.stream and one.capped
    assert shape("Another.").opens != one.opens and shape_of(chat, [], "").opens == 0


def test_names_in_a_shape_are_such_as_any_database_takes() -> None:
    chat = replace(chat_of(user("Hi.")), model="m\ud83d", tool_names=("read\ud83d", "write\0"))
    shape = shape_of(chat, [], "agent\ud83d")
    assert (shape.model, shape.tool_names, shape.user_agent) == ("m\ufffd", ("read\ufffd", "write "), "agent\ufffd")
