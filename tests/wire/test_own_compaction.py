"""Items of ours are written out in their place, and every other byte of the request stays."""

from __future__ import annotations

import orjson
import pytest
from palimpsest.domain import Json
from palimpsest.domain.errors import WireError
from palimpsest.wire import compaction, responses
from palimpsest.wire.own_compaction import EVENTS, PREFIX, answer, expand_items, items_of

ITEM = {"id": "cmp_1", "type": "compaction", "encrypted_content": f"{PREFIX}abc"}
TEXTS = {f"{PREFIX}abc": 'It said "ahoy".'}
USER = '{"role": "user",  "content": "hi \\u00e9", "n": 1.50}'


def body(*items: str, before: str = "") -> bytes:
    return f'{{ "model":"m", {before}"input" : [{", ".join(items)}], "x":1e400 }}'.encode()


def test_an_item_becomes_a_message_and_all_else_stays() -> None:
    written = expand_items(body(USER, orjson.dumps(ITEM).decode(), USER), responses, TEXTS)
    message = '{"type":"message","role":"user","content":[{"type":"input_text","text":"It said \\"ahoy\\"."}]}'
    assert written == body(USER, message, USER)


@pytest.mark.parametrize(
    "other",
    [
        {"type": "compaction", "encrypted_content": "gAAAAA"},
        {"role": "user", "content": f"look: {PREFIX}abc"},
        {"type": "function_call_output", "call_id": "1", "output": orjson.dumps(ITEM).decode()},
        {"type": "message", "role": "user", "encrypted_content": f"{PREFIX}abc"},
    ],
)
def test_what_is_no_item_of_ours_stays(other: Json) -> None:
    sent = body(orjson.dumps(other).decode())
    assert items_of(sent, responses) == [] and expand_items(sent, responses, {}) == sent


def test_what_cannot_be_followed_is_said_to_be_so() -> None:
    item = orjson.dumps(ITEM).decode()
    for sent in (body(item, before=f'"input": [{item}], '), body(item)[:-17], b"\xff" + body(item)):
        with pytest.raises(WireError):
            items_of(sent, responses)
    assert items_of(b'{"input": "' + PREFIX.encode() + b'"}', responses) == []


def test_a_stream_ends_with_the_response_that_was_answered() -> None:
    asked = responses.parse(orjson.dumps({"model": "m", "input": [{"type": "compaction_trigger"}], "stream": True}))
    kind, said = answer(asked, responses, f"{PREFIX}abc", "1", 5.5)
    assert kind == EVENTS
    heard = responses.reply([line[6:] for line in said.splitlines() if line.startswith(b"data: ")], streamed=True)
    assert heard.id == "resp_1" and heard.message is not None and len(heard.message.opaque) == 1


def test_an_answer_repeats_the_words_of_the_user_to_who_asks_for_all_of_it() -> None:
    def output(input: object) -> list[Json]:
        asked = compaction.parse(orjson.dumps({"model": "m", "input": input}))
        items: list[Json] = orjson.loads(answer(asked, compaction, f"{PREFIX}abc", "1", 5.5)[1])["output"]
        return items

    said = [{"role": "user", "content": [{"type": "input_text", "text": "one"}]}, {"role": "assistant", "content": "x"}]
    assert [item["content"][0]["text"] for item in output([*said, {"role": "user", "content": "two"}])[:-1]] == [
        "one",
        "two",
    ]
    assert output("alone")[0]["content"] == [{"type": "input_text", "text": "alone"}]
    assert output("alone")[-1]["encrypted_content"] == f"{PREFIX}abc"
