"""Properties of lineage that hold for every list of messages, however odd."""

from __future__ import annotations

from dataclasses import replace

import orjson
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from palimpsest.core.conversation import Lookup
from palimpsest.core.decision import Decision
from palimpsest.domain import Continuation, Event, Follows, Json, Query, Role

from tests.core.driving import (
    Client,
    Core,
    Verdict,
    assistant,
    calling,
    drive,
    prose,
    request_of,
    tool,
    user,
)
from tests.examples import examples

WORDS = st.sampled_from(
    ["", "Ok.", "go", "Summarize the conversation above:", prose(12, 1), prose(40, 2), prose(40, 3)]
)
TEXTS = st.one_of(WORDS, st.text(max_size=80))
IDS = st.sampled_from(["", "a", "b", "c"])
CALLS = st.lists(
    st.fixed_dictionaries(
        {
            "id": IDS,
            "function": st.fixed_dictionaries({"name": IDS, "arguments": st.one_of(st.just("{}"), TEXTS)}),
        }
    ),
    max_size=2,
)
MESSAGES = st.one_of(
    st.fixed_dictionaries({"role": st.sampled_from(["system", "user", "developer", "oracle"]), "content": TEXTS}),
    st.fixed_dictionaries({"role": st.just("assistant"), "content": st.one_of(st.none(), TEXTS), "tool_calls": CALLS}),
    st.fixed_dictionaries({"role": st.just("tool"), "tool_call_id": IDS, "content": TEXTS}),
)
HISTORIES = st.lists(MESSAGES, min_size=1, max_size=12)
ANSWERS = st.one_of(st.none(), st.builds(assistant, TEXTS))
SLOW = settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])


def is_sound(verdict: Verdict, body: Json) -> None:
    lineage = verdict.lineage
    history = [m for m in body["messages"] if m["role"] not in ("system", "developer")]
    assert len(lineage.kept) == len(history)
    continued = [index for index in lineage.kept if index >= 0]
    size = len(lineage.head.fulls) if lineage.head else 0
    assert len(continued) == len(set(continued)) and all(index < size for index in continued)
    assert set(lineage.dropped) == set(range(size)) - set(continued)
    assert all(-1 <= at < len(history) for at in lineage.summary_at)
    assert {at for at in lineage.changed} <= {at for at, index in enumerate(lineage.kept) if index >= 0}
    assert (lineage.head is None) <= (lineage.event is Event.START)
    assert lineage.evidence


@given(st.lists(st.tuples(HISTORIES, ANSWERS), max_size=5))
@SLOW
def test_any_stream_of_requests_is_judged_soundly(requests: list[tuple[list[Json], Json | None]]):
    core = Core()
    for messages, answer in requests:
        body = {"model": "m", "messages": messages}
        is_sound(core.hear(body, answer), body)


@given(st.lists(st.tuples(HISTORIES, ANSWERS), min_size=1, max_size=4))
@SLOW
def test_same_stream_gives_the_same_verdicts(requests: list[tuple[list[Json], Json | None]]):
    def play() -> list[Verdict]:
        core = Core()
        return [core.hear({"model": "m", "messages": messages}, answer) for messages, answer in requests]

    assert play() == play()


@given(
    HISTORIES,
    st.sampled_from([user(prose(20, "next")), user("Go on."), {"role": "tool", "tool_call_id": "a", "content": "x"}]),
)
@SLOW
def test_history_that_only_grows_is_never_compacted(messages: list[Json], later: Json):
    client = Client(Core(), [*messages, user(prose(20, "first"))])
    client.send()
    for turn in range(3):
        client.messages.append(later)
        verdict = client.send(prose(30, turn))
        assert verdict.role is Role.MAIN and verdict.event in (Event.APPEND, Event.TOOL)


@given(st.integers(2, 10), st.data())
@SLOW
def test_oldest_messages_dropped_are_always_found_gone(turns: int, data: st.DataObject):
    client = Client(Core())
    home = client.talk(turns).conversation
    dropped = data.draw(st.integers(1, 2 * turns - 1))
    del client.messages[1 : 1 + dropped]
    verdict = client.ask("Go on.")
    assert verdict.conversation == home and verdict.event is Event.TRUNCATE
    assert verdict.lineage.dropped == tuple(range(dropped))


@given(st.lists(st.booleans(), min_size=4, max_size=10))
@SLOW
def test_two_conversations_that_take_turns_never_mix(order: list[bool]):
    core = Core()
    clients = [Client(core, seed=seed) for seed in (1, 2)]
    homes = [client.talk(1).conversation for client in clients]
    for which in order:
        assert clients[which].talk(1).conversation == homes[which]


@given(HISTORIES, HISTORIES)
@SLOW
def test_order_of_keys_and_form_of_content_do_not_count(one: list[Json], other: list[Json]):
    def in_parts(message: Json) -> Json:
        parts = {"content": [{"type": "text", "text": message["content"]}]} if message.get("content") else {}
        return dict(reversed((message | parts).items()))

    core, again = Core(), Core()
    plain = [core.hear({"messages": m}, assistant(prose(30, n))) for n, m in enumerate((one, other, [*one, *other]))]
    parts = [
        again.hear(orjson.loads(orjson.dumps({"messages": [in_parts(x) for x in m]})), assistant(prose(30, n)))
        for n, m in enumerate((one, other, [*one, *other]))
    ]
    assert [(v.event, v.role, v.conversation) for v in plain] == [(v.event, v.role, v.conversation) for v in parts]


ANSWERED = [prose(40, "answer one"), prose(40, "answer two"), "Ok."]
ASKED = [prose(20, "asked"), "go", "Summarize the conversation above:", prose(40, "answer one")]
MOVES = st.tuples(
    st.sampled_from(
        ["ask", "ask", "ask", "tool", "retry", "edit", "cut", "fork", "new", "imported", "aside", "other id"]
    ),
    st.integers(0, 2),
    st.sampled_from(ASKED),
    st.sampled_from(ANSWERED),
)


@given(st.lists(MOVES, min_size=2, max_size=14), st.sampled_from([{}, {"x-palimpsest-conversation": "one"}]))
@settings(max_examples=examples(250), deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_what_only_goes_on_is_judged_alike_with_less_looked_up(
    moves: list[tuple[str, int, str, str]], named: dict[str, str]
):
    core = Core()  # it judges each request both ways, and compares
    clients = [Client(core, headers=named)]
    for move, which, text, answer in moves:
        client = clients[which % len(clients)]
        said = client.messages
        if move == "tool":
            client.ask(text, calling(("call", "read", {"path": "a.py"}), text=answer))
            said.append(tool("call", text))
            client.send(answer)
            continue
        if move == "retry" and len(said) > 1:
            del said[-1]
            client.send(answer)
            continue
        if move == "edit" and len(said) > 2:
            del said[-2:]
        elif move == "cut":
            del said[1 : len(said) // 2]
        elif move == "fork":
            clients.append(client := client.copy())
        elif move == "new":
            clients.append(client := Client(core, headers=named))
        elif move == "imported":
            client.messages += [user("go"), assistant(answer)]
        elif move == "aside":
            client.beside([*client.messages, user(text)], answer)
        elif move == "other id":
            client.headers = {"x-palimpsest-conversation": "another"}
        client.ask(text, answer)


def test_what_only_goes_on_needs_one_look_up():
    core = Core()
    client = Client(core)
    client.talk(3)
    before, turn = core.sent[-1]
    messages = [*client.messages, user("And then?")]
    request = request_of({"model": client.model, "messages": messages}, core.rules)
    follows = Follows(turn, before.speaker, len(before.reading.history))
    asked: list[Lookup] = []

    def answer(lookup: Lookup) -> object:
        asked.append(lookup)
        return core.journal.answer(lookup)

    decision = drive(replace(request, follows=follows), core.rules, answer)
    assert isinstance(decision, Decision) and decision.lineage.event is Event.APPEND
    assert [type(lookup) for lookup in asked if not isinstance(lookup, Query)] == [Continuation]
