"""What was read of a body before is taken over, and the result is that of reading it whole: always, on every wire."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from palimpsest.domain import Chat, Insertion, Json, Layout
from palimpsest.domain.errors import WireError
from palimpsest.domain.ports import Wire
from palimpsest.wire import chat, messages, responses
from palimpsest.wire.layout import known_body, layout_of, same_bytes
from palimpsest.wire.registry import WIRES

from tests.examples import examples

BLOCK = '<palimpsest-memory>\nNotes: é "x".\n</palimpsest-memory>'

TEXTS = st.sampled_from(
    [
        "",
        "Hi",
        "Grüße 🌍",
        'a "quoted" \\ text',
        "]}",
        '"}]',
        "x" * 90,
        "The port of Alder is 8041.\nAnd more.",
        "\u2028",
    ]
)
TAILS: list[Json] = [
    {},
    {"model": "gpt-4o", "stream": True},
    {"stream": False, "tools": [{"type": "function", "name": "r", "function": {"name": "read"}}]},
    {"system": "Be brief.", "instructions": "Be brief."},
    {
        "system": [{"type": "text", "text": "Be long.", "cache_control": {"type": "ephemeral"}}],
        "instructions": "Be long.",
    },
]


def element(wire: Wire, role: str, text: str, number: int, marked: bool) -> Json:
    """One element of a list, as clients of the wire write it; `marked`: for the provider's cache."""
    mark: Json = {"cache_control": {"type": "ephemeral"}} if marked else {}
    if wire is responses:
        if role == "tool":
            return {"type": "function_call_output", "call_id": f"c{number}", "output": text}
        if role == "call":
            return {"type": "function_call", "call_id": f"c{number}", "name": "read", "arguments": "{}"}
        kind = "output_text" if role == "assistant" else "input_text"
        return {"role": role, "content": [{"type": kind, "text": text, **mark}]}
    if wire is messages:
        if role == "tool":
            parts: list[Any] = [{"type": "tool_result", "tool_use_id": f"c{number}", "content": text, **mark}]
            return {"role": "user", "content": [*parts, {"type": "text", "text": "<reminder>a</reminder>"}]}
        if role == "call":
            return {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "read", "input": {}}]}
        if role == "compacted":
            return {"role": "assistant", "content": [{"type": "compaction", "content": text or "a summary"}]}
        return {"role": role, "content": [{"type": "text", "text": text, **mark}] if marked else text}
    if role == "call":
        call = {"id": f"c{number}", "type": "function", "function": {"name": "read", "arguments": "{}"}}
        return {"role": "assistant", "content": None, "tool_calls": [call]}
    return {"role": "system" if role == "compacted" else role, "content": text, **({"x": 1.50} if marked else {})}


ROLES = st.sampled_from(["user", "assistant", "tool", "call", "compacted"])
SAID = st.tuples(ROLES, TEXTS, st.integers(0, 3), st.booleans())


def written(listed: str, elements: list[Json], rest: Json, style: int) -> bytes:
    """A body in one of the ways in which clients write JSON."""
    first = dict(list(rest.items())[:1]) if style & 1 else {}
    whole = {**first, listed: elements, **{key: value for key, value in rest.items() if key not in first}}
    if style & 2:
        return json.dumps(whole, ensure_ascii=bool(style & 4)).encode()
    return orjson.dumps(whole)


@st.composite
def histories(draw: st.DrawFn, wire: Wire) -> list[bytes]:
    """Bodies of one client, one after the other: turns, edits, cuts, summaries in front, retries, other marks."""
    style, tail = draw(st.integers(0, 7)), draw(st.sampled_from(TAILS))
    listed = [element(wire, *draw(SAID)) for _ in range(draw(st.integers(1, 4)))]
    bodies = [written(wire.LISTED, listed, tail, style)]
    for _ in range(draw(st.integers(1, 6))):
        what = draw(
            st.sampled_from(["append", "append", "append", "edit", "cut", "sum", "retry", "tail", "style", "mark"])
        )
        at = draw(st.integers(0, len(listed)))
        if what == "append":
            listed = [*listed, *(element(wire, *draw(SAID)) for _ in range(draw(st.integers(1, 3))))]
        elif what == "edit":
            listed = [*listed[:at], element(wire, *draw(SAID)), *listed[at + 1 :]]
        elif what == "cut":
            listed = [*listed[: draw(st.integers(0, 1))], *listed[at:]] or listed
        elif what == "sum":
            listed = [element(wire, *draw(SAID)), *listed[at:]]
        elif what == "tail":
            tail = draw(st.sampled_from(TAILS))
        elif what == "style":
            style = draw(st.integers(0, 7))
        elif what == "mark" and at < len(listed):
            marked = {**listed[at], "cache_control": {"type": "ephemeral"}}
            listed = [{k: v for k, v in e.items() if k != "cache_control"} for e in listed]
            listed[at] = marked
        bodies.append(written(wire.LISTED, listed, tail, style))
    return bodies


def read(wire: Wire, body: bytes, before: Chat | None) -> Chat:
    known = known_body(body, before, wire.LISTED, wire.FOLDS) if before else None
    read = wire.parse(body, known)
    if known is None:
        object.__setattr__(read, "layout", layout_of(body, read.raw, wire.LISTED))
    return read


def elements_of(layout: Layout) -> list[Any]:
    spans = zip(layout.starts, layout.stops, strict=True)
    return [orjson.loads(layout.body[layout.first + start : layout.first + stop]) for start, stop in spans]


def rendered(wire: Wire, read: Chat, insertions: list[Insertion]) -> bytes | str:
    try:
        return wire.render(read, insertions)
    except WireError as refused:
        return str(refused)


INSERTIONS = st.lists(
    st.builds(Insertion, st.integers(0, 9), st.just(BLOCK), st.sampled_from(["", "", "user", "system"])), max_size=3
)


@pytest.mark.parametrize("wire", [chat, messages, responses], ids=lambda wire: wire.__name__.rpartition(".")[2])
@given(data=st.data())
@settings(max_examples=examples(150), deadline=None)
def test_reading_with_what_was_read_before_is_reading(wire: Wire, data: st.DataObject) -> None:
    before: Chat | None = None
    for body in data.draw(histories(wire)):
        try:
            whole = wire.parse(body)
        except WireError:
            continue
        again = read(wire, body, before)
        assert again == whole
        assert list(again.raw) == list(whole.raw) or again.raw == whole.raw
        assert again.layout == layout_of(body, whole.raw, wire.LISTED)
        if again.layout is not None:
            assert again.layout.body == body and elements_of(again.layout) == list(whole.raw[wire.LISTED])
        insertions = [i for i in data.draw(INSERTIONS) if i.at < len(whole.messages) + bool(i.role)]
        assert rendered(wire, again, insertions) == rendered(wire, whole, insertions)
        before = again


@pytest.mark.parametrize("path", WIRES)
def test_what_was_appended_is_all_that_is_read(path: str) -> None:
    wire = WIRES[path]
    listed = [
        element(responses if wire.FOLDS else wire, role, f"{role} {role}", 1, False)
        for role in ("user", "call", "tool", "user")
    ]
    before = read(wire, orjson.dumps({wire.LISTED: listed, "model": "m"}), None)
    new = element(responses if wire.FOLDS else wire, "user", "more", 1, False)
    again = read(wire, orjson.dumps({wire.LISTED: [*listed, new], "model": "m"}), before)
    kept = len(before.messages) - wire.FOLDS
    assert kept > 2 and all(
        one is other for one, other in zip(again.messages[:kept], before.messages[:kept], strict=True)
    )


@pytest.mark.parametrize("body", [
    b'{"messages":[{"role":"user","content":"a"}],"messages":[]}',
    b'{"messages":[{"role":"user","content":"a"}],"\\u006dessages":[]}',
    b'{"messages":["a"]}', b'{"messages":[]}', b'{"messages":"a"}', b'{"a":1}', b"[1]",
    b'{"messages":[{"role":"user","content":"\xff"}]}', b'{"messages":[{"role":"user"', b"",
])  # fmt: skip
def test_no_layout_is_told_where_it_is_in_doubt(body: bytes) -> None:
    assert layout_of(body, {}, "messages") is None


@pytest.mark.parametrize("rest", [
    b',{"role":"user","content":"b"}],"messages":[]}',
    b',{"role":"user","content":"b"},],"model":"m"}',
    b',{"role":"user","content":"b"}}],"model":"m"}',
    b',{"role":"user","content":"\xff"}],"model":"m"}',
    b',{"role":"user","n":NaN}],"model":"m"}', b',7],"model":"m"}', b' {"role":"user"}],"model":"m"}', b'],"a":}', b"",
])  # fmt: skip
def test_what_goes_on_in_doubt_is_read_whole(rest: bytes) -> None:
    opening = b'{"messages":[{"role":"user","content":"a"}'
    before = read(chat, opening + b'],"model":"m"}', None)
    assert known_body(opening + rest, before, "messages", False) is None


@pytest.mark.parametrize(
    "insertion", [Insertion(2, "x"), Insertion(-1, "x"), Insertion(3, "x", role="user"), Insertion(0, "\ud800")]
)
def test_what_cannot_be_added_is_refused_in_the_same_words_whether_the_layout_is_known_or_not(
    insertion: Insertion,
) -> None:
    body = b'{"messages":[{"role":"user","content":"a"},{"role":"user","content":"b"}]}'
    refusals = [rendered(chat, one, [insertion]) for one in (read(chat, body, None), chat.parse(body))]
    assert refusals[0] == refusals[1] and "adding text to the request body" in str(refusals[0])


def test_a_body_is_the_same_as_another_up_to_the_end_of_the_last_message_that_they_share() -> None:
    opening, one, two = b'{"model":"m","messages":[', b'{"role":"user","content":"a"}', b'{"role":"user","content":"b"}'
    body = opening + one + b"," + two + b"]}"
    layout = layout_of(body, orjson.loads(body), "messages")
    assert layout is not None
    whole = len(opening + one + b"," + two)
    assert same_bytes(body, layout) == same_bytes(body[:-2] + b"," + one + b"]}", layout) == whole
    assert same_bytes(opening + one + b"," + one + b"]}", layout) == len(opening + one)
    assert same_bytes(opening + two + b"]}", layout) == len(opening)
    assert same_bytes(b'{"model":"n","messages":[' + one + b"]}", layout) == 0


class _Counted(bytes):
    """Bytes that count how often it was asked what they begin with."""

    asked = 0

    def startswith(self, *args: Any) -> bool:
        self.asked += 1
        return super().startswith(*args)


@pytest.mark.parametrize("result", ["the same", "cleared"])
def test_of_results_that_all_begin_alike_each_is_compared_a_few_times(result: str) -> None:
    def body(opening: str, result: str) -> bytes:
        listed: list[Json] = [{"role": "user", "content": opening}]
        for number in range(300):
            asked = {"type": "tool_use", "id": f"toolu_01{number:04}", "name": "read", "input": {}}
            said = {"type": "tool_result", "tool_use_id": asked["id"], "content": result}
            listed += [{"role": "assistant", "content": [asked]}, {"role": "user", "content": [said]}]
        return orjson.dumps({"messages": listed})

    before = read(messages, body("Hi", "the same"), None)
    changed = _Counted(body("Hello", result))
    known = known_body(changed, before, "messages", False)
    assert known is not None and len(known.apart) == (600 if result == "the same" else 300)
    assert changed.asked < 10 * 600
    assert messages.parse(bytes(changed), known) == messages.parse(bytes(changed))


@pytest.mark.parametrize("further", [[], [{"type": "compaction_trigger"}], [{"role": "user", "content": "hello"}]])
def test_list_none_of_whose_elements_made_a_message_is_read_as_without_it(further: list[Any]) -> None:
    listed: list[Any] = [{"type": "compaction_trigger"}]
    opening, body = (orjson.dumps({"model": "m", "input": [*listed, *more]}) for more in ([], further))
    before = read(responses, opening, None)
    whole, again = responses.parse(body), read(responses, body, before)
    assert (len(before.messages), before.places) == (0, ())
    assert (again.messages, again.places) == (whole.messages, whole.places)
    assert [again.messages[at] for at in range(len(again.messages))] == [*whole.messages]
