"""What reaches the disk holds no credential, no inlined image, and nothing findable that nobody should find."""

from __future__ import annotations

from dataclasses import replace

import orjson
import pytest
from palimpsest.core.archive.records import answer_record, entry_of, is_findable, record_of
from palimpsest.core.history.link_keys import reply_links
from palimpsest.domain import Block, BlockKind, Ending, Fingerprint, HeadFlag, Json, LinkKind, NewMessage, Role, Turn
from palimpsest.wire import responses
from palimpsest.wire.chat import reply
from palimpsest.wire.message import read_message
from palimpsest.wire.storage_codec import from_stored

from tests.talking import record, user

KEY = b"one tenant's key"


def clean(text: str) -> str:
    return text.replace("hunter2", "[redacted:password]")


def turn(*messages: Json, role: Role = Role.MAIN) -> Turn:
    return replace(record(messages).turn, role=role)


def body(text: str, prompt_tokens: int = 9) -> list[bytes]:
    message = {"role": "assistant", "content": text}
    return [orjson.dumps({"choices": [{"index": 0, "message": message}], "usage": {"prompt_tokens": prompt_tokens}})]


def test_credentials_go_from_texts_and_from_what_explain_quotes() -> None:
    asked = replace(turn(user("it is hunter2")), explain={"query": {"text": "is hunter2 right?"}})
    kept = record_of(asked, KEY, clean)
    (entry,) = kept.entries
    assert entry.text == "it is [redacted:password]"
    assert kept.turn.explain == {"query": {"text": "is [redacted:password] right?"}}
    candidates = [{"memory": 7, "score": -1.5, "why": "no room left"}]
    told = record_of(replace(asked, explain={**asked.explain, "candidates": candidates}), KEY, clean).turn.explain
    assert told == kept.turn.explain | {"candidates": candidates}
    assert not any("hunter2" in term for passage in entry.passages for term in passage.terms)


def test_content_is_known_by_what_was_sent_and_by_its_tenant() -> None:
    def digest_of(raw: Json, key: bytes = KEY) -> bytes:
        return entry_of(NewMessage(read_message(raw), Fingerprint(1, 2), 0), Role.MAIN, key, clean).digest

    assert digest_of(user("hunter2")) == digest_of(user("hunter2"))
    assert digest_of(user("hunter2")) != digest_of(user("[redacted:password]"))
    assert digest_of(user("hunter2")) != digest_of(user("hunter2"), b"another key")


@pytest.mark.parametrize(
    ("request_role", "role", "flags", "findable"),
    [
        (Role.MAIN, "user", HeadFlag.ASIDE, False),
        (Role.MAIN, "user", 0, True),
        (Role.SUBAGENT, "tool", HeadFlag.LONG, True),
        (Role.SIDE, "user", 0, False),
        (Role.MAIN, "system", 0, False),
        (Role.MAIN, "developer", 0, False),
        (Role.MAIN, "user", HeadFlag.USER | HeadFlag.SUMMARY, False),
    ],
)
def test_only_what_was_said_in_a_conversation_is_findable(
    request_role: Role, role: str, flags: int, findable: bool
) -> None:
    assert is_findable(request_role, role, flags) is findable
    message = read_message({"role": role, "content": "a text about harbors"})
    entry = entry_of(NewMessage(message, Fingerprint(1, 2), 0, flags), request_role, KEY, clean)
    assert bool(entry.passages) is findable


def test_of_a_summary_only_what_a_person_wrote_behind_it_is_findable() -> None:
    parts = [
        "A summary of many harbors. " * 9,
        "<system-reminder>Be brief.</system-reminder>",
        "ok",
        "Call it hunter2 now.",
        "ok",
    ]
    message = read_message(user([{"type": "text", "text": text} for text in parts]))
    for flags, findable in (
        (HeadFlag.SUMMARY, []),
        (HeadFlag.SUMMARY | HeadFlag.TYPED, ["ok\nCall it hunter2 now.\nok"]),
    ):
        entry = entry_of(NewMessage(message, Fingerprint(1, 2), 0, flags), Role.MAIN, KEY, clean)
        found = [entry.text[passage.start : passage.stop] for passage in entry.passages]
        assert found == [text.replace("hunter2", "[redacted:password]") for text in findable]


def test_instructions_that_come_again_are_stored_alike() -> None:
    message = read_message({"role": "system", "content": "the password is hunter2"})
    entries = [entry_of(NewMessage(message, Fingerprint(1, 2), 0), Role.MAIN, KEY, clean) for _ in range(2)]
    assert entries[0] == entries[1]
    assert from_stored(entries[0].text, entries[0].rest)["content"] == "the password is [redacted:password]"


def test_answer_stands_behind_the_request_and_is_ours() -> None:
    heard = answer_record(
        turn(user("one"), user("two")), reply(body("well, hunter2 it is"), False), Ending.COMPLETE, 5.0, KEY, clean
    )
    assert heard.entry is not None
    assert (heard.entry.new.position, heard.entry.text) == (2, "well, [redacted:password] it is")
    assert heard.answer.flags & HeadFlag.OURS and heard.answer.flags & HeadFlag.ASSISTANT
    assert (heard.answer.prompt_tokens, heard.answer.created_at) == (9, 5.0)
    assert LinkKind.ANSWER in {kind for kind, _ in heard.answer.links}


@pytest.mark.parametrize("payloads", [[], [b"no JSON"], [b'{"choices": []}']])
def test_answer_that_says_nothing_leaves_its_ending(payloads: list[bytes]) -> None:
    heard = answer_record(turn(user("one")), reply(payloads, False), Ending.UPSTREAM_BROKE, 5.0, KEY, clean)
    assert heard.entry is None and heard.answer.message is None
    assert heard.answer.ending is Ending.UPSTREAM_BROKE


def test_what_an_answer_repeats_of_the_block_that_it_was_shown_is_kept_and_not_findable() -> None:
    line = "user: The gate code of the allotment is 4471."
    shown = Block(f"<palimpsest-memory>\n{line}\n</palimpsest-memory>", BlockKind.RECALL, (1,))
    said = f"You told me so.\n{line}\nThat is all."
    asked = replace(turn(user("one")), block=shown)
    heard = answer_record(asked, reply(body(said), False), Ending.COMPLETE, 5.0, KEY, clean)
    assert heard.entry is not None and heard.entry.text == said
    found = [said[passage.start : passage.stop].strip() for passage in heard.entry.passages]
    assert found == ["You told me so.", "That is all."]


def test_a_role_of_the_clients_own_making_is_cleaned_as_a_text_is() -> None:
    message = read_message({"role": "hunter2", "content": "hello"})
    entry = entry_of(NewMessage(message, Fingerprint(1, 2), 0), Role.MAIN, KEY, clean)
    assert entry.new.message.role == "[redacted:password]"


def test_what_a_provider_made_of_a_history_is_known_by_the_name_under_which_it_comes_back() -> None:
    """A client may send the compaction itself, or only its id."""
    compaction = {"type": "compaction", "id": "cmp_1", "encrypted_content": "b3BhcXVl"}
    body = orjson.dumps({"id": "resp_1", "status": "completed", "output": [compaction]})
    completion = responses.reply([body], False)
    named = {fingerprint for _, fingerprint in reply_links(("resp_1", "cmp_1"), KEY)}

    def echoes(role: Role) -> set[int]:
        heard = answer_record(turn(user("one"), role=role), completion, Ending.COMPLETE, 5.0, KEY, clean)
        return {fingerprint for kind, fingerprint in heard.answer.links if kind is LinkKind.ECHO}

    assert named & echoes(Role.SIDE) and not named & echoes(Role.MAIN)
    assert echoes(Role.SIDE) > echoes(Role.MAIN) > set()


def test_a_request_is_known_by_the_id_of_its_trace() -> None:
    traced = replace(turn(user("hello")), traceparent=f"00-{'4b' * 16}-{'00f0' * 4}-01")
    assert record_of(traced, KEY, clean).turn.explain["trace"] == "4b" * 16
    assert "trace" not in record_of(turn(user("hello")), KEY, clean).turn.explain
