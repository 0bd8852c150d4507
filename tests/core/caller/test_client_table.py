from __future__ import annotations

from pathlib import Path

import pytest
from palimpsest.core.caller.client_table import Signals, first, read_signals
from palimpsest.domain import Json
from palimpsest.domain.errors import PolicyError

from tests.core.driving import ROOT, client_table

TABLE = client_table()
HERE = Path(__file__).parent
TRACES = ROOT.parent / "shared" / "traces"


def conversation(headers: Json, body: Json | None = None) -> str:
    return first(TABLE.conversation_ids, headers, body or {})


def test_absent_signals_say_nothing():
    assert conversation({"user-agent": "curl/8"}) == ""


def test_our_own_header_comes_first():
    assert conversation({"x-session-id": "theirs", "x-palimpsest-conversation": "ours"}) == "ours"


def test_optional_part_is_joined_where_present():
    shared = {"x-claude-code-session-id": "s"}
    assert conversation(shared) == "s"
    assert conversation(shared | {"x-claude-code-agent-id": "a"}) == "s/a"


def test_optional_part_alone_is_no_id():
    assert conversation({"x-claude-code-agent-id": "a"}) == ""


def test_part_that_must_be_there_is_no_part_of_the_name():
    session, agent = {"x-claude-code-session-id": "s"}, {"x-claude-code-agent-id": "a"}
    assert first(TABLE.parent_ids, session | agent, {}) == "s"
    assert first(TABLE.parent_ids, session, {}) == first(TABLE.parent_ids, agent, {}) == ""


@pytest.mark.parametrize("told", ['{"device_id":"d","session_id":"s"}', "user_1_account_2_session_3"])
def test_user_that_changes_with_each_session_is_none(told: str):
    assert first(TABLE.user_ids, {}, {"metadata": {"user_id": "ann"}}) == "ann"
    assert first(TABLE.user_ids, {}, {"metadata": {"user_id": told}}) == ""


def test_users_of_a_client_that_has_one_credential_for_all_are_told_apart():
    assert first(TABLE.user_ids, {"x-openwebui-user-id": "ann"}, {}) == "ann"


def test_ids_that_sub_agents_share_with_their_parent_are_not_taken():
    assert conversation({"session-id": "s"}, {"prompt_cache_key": "k"}) == ""


def test_body_paths_are_read_through_nested_objects():
    table = read_signals({"user_ids": [{"name": "n", "at": ["body:metadata.user.id"]}]})
    assert first(table.user_ids, {}, {"metadata": {"user": {"id": "u"}}}) == "u"


@pytest.mark.parametrize("body", [{}, {"metadata": None}, {"metadata": ["x"]}, {"metadata": {"user": {"id": 7}}}])
def test_body_value_that_is_no_text_is_absent(body: Json):
    table = read_signals({"user_ids": [{"name": "n", "at": ["body:metadata.user.id"]}]})
    assert first(table.user_ids, {}, body) == ""


def test_header_names_are_case_blind():
    table = read_signals({"user_ids": [{"name": "n", "at": ["header:X-Person"]}]})
    assert first(table.user_ids, {"x-person": "u"}, {}) == "u"


def test_empty_table_is_allowed():
    assert read_signals({}) == Signals()


@pytest.mark.parametrize(
    ("table", "named"),
    [
        ({"user_ids": ["x"]}, "user_ids"),
        ({"user_ids": [{"name": "n"}]}, "user_ids"),
        ({"scope_ids": [{"at": ["header:x"]}]}, "scope_ids"),
        ({"retries": [{"name": "n", "at": ["cookie:x"]}]}, "retries.n"),
        ({"retries": [{"name": "n", "at": ["header:"]}]}, "retries.n"),
        ({"side_requests": {"asks": ["(" ]}}, "side_requests.asks"),
        ({"asides": {"texts": ["("]}}, "asides.texts"),
        ({"user_ids": [{"name": "n", "at": ["header:x"], "unless": "("}]}, "user_ids.n.unless"),
    ],
)  # fmt: skip
def test_malformed_row_names_its_section(table: Json, named: str):
    with pytest.raises(PolicyError, match=named):
        read_signals(table)


@pytest.mark.skipif(not TRACES.exists(), reason="needs the recorded requests in ../shared, beside this repository")
def test_every_id_in_the_shipped_table_was_recorded_from_its_client():
    for section in (TABLE.conversation_ids, TABLE.parent_ids, TABLE.retries):
        for signal in section:
            if signal.name not in ("palimpsest", "responses"):  # ours, and one that the API itself defines
                recorded = [
                    *TRACES.glob(f"{FIXTURES[signal.name]}.jsonl*"),
                    *HERE.glob(f"{FIXTURES[signal.name]}.jsonl"),
                ]
                assert recorded, signal.name


FIXTURES = {
    "claude-code": "claude-code",
    "codex": "codex-exec",
    "opencode": "opencode",
    "open-webui": "open_webui",
    "openai-sdk": "openai-sdk-plain",
}
