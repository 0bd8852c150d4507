"""Facts beside a running proxy: none where the policy keeps none, and each once, whatever is killed."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from palimpsest.evaluation.scripted import ScriptedUpstream
from palimpsest.store.journal import Journal

from tests.databases import database_in
from tests.running import Conversation, Proxy, rows, until
from tests.talking import record, user

pytestmark = pytest.mark.slow

MESSAGES = 1_500
SUGGEST = {"facts": {"policy": "suggest"}}


def statements(data: Path) -> int:
    ((count,),) = rows(data, "SELECT count(*) FROM fact")
    return int(count)


def test_no_row_is_written_until_the_policy_keeps_facts_and_then_all_that_was_said_counts(
    upstream: ScriptedUpstream, tmp_path: Path
) -> None:
    upstream.script = lambda _body: "Noted."
    with Proxy(tmp_path / "data", upstream.url) as proxy:
        Conversation(proxy, "sk-one").say("Hello, my name is Zebulon.")
        proxy.settle(vectors=False)
        assert statements(proxy.data) == 0
        assert rows(proxy.data, "SELECT name FROM task WHERE name LIKE 'facts%'") == []
        assert "palimpsest_facts{" not in proxy.get("/metrics").body.decode()
        settings = yaml.safe_load(proxy.config.read_text())
        proxy.config.write_text(yaml.safe_dump(settings | SUGGEST))
        until(lambda: statements(proxy.data) == 1, "the policy to take effect, and the fact to be extracted")


async def said_before(data: Path) -> None:
    database = database_in(data)
    await database.open()
    for start in range(0, MESSAGES, 500):
        said = [(f"c-{number}", f"Hello, my name is Ann{number:04}.") for number in range(start, start + 500)]
        await Journal(database).write([record([user(text)], conversation=named) for named, text in said])
    await database.close()


async def test_workers_share_the_messages_and_a_kill_loses_and_doubles_nothing(
    upstream: ScriptedUpstream, tmp_path: Path
) -> None:
    await said_before(tmp_path / "data")
    with Proxy(tmp_path / "data", upstream.url, SUGGEST) as proxy:
        until(lambda: statements(proxy.data) > 0, "the extraction to begin")
        proxy.kill()
        begun = statements(proxy.data)
        assert 0 < begun < MESSAGES, "killed in the middle"
    with Proxy(tmp_path / "data", upstream.url, SUGGEST | {"listen": {"workers": 2}}) as proxy:
        until(lambda: statements(proxy.data) >= MESSAGES, "the rest")
    assert rows(tmp_path / "data", "SELECT count(*), count(DISTINCT value), count(DISTINCT occurrence) FROM fact") == [
        (MESSAGES, MESSAGES, MESSAGES)
    ]
