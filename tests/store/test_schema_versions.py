"""Databases that programs of earlier schema versions wrote: what was said in them is read, found and gone on with."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest
from palimpsest.domain import Json, Query, Reach
from palimpsest.index.passage_tables import PassageTables
from palimpsest.memory.recall import Recall
from palimpsest.metrics import Metrics
from palimpsest.scripted import ScriptedUpstream
from palimpsest.store.consistency import examination
from palimpsest.store.database import Database
from palimpsest.store.journal import Journal
from palimpsest.store.schema import MIGRATIONS
from palimpsest.transfer.files import zstd
from structlog.testing import capture_logs

from tests.memory.test_importing import Destination, Importing, exported, read
from tests.remembered import WordEmbedder
from tests.running import Proxy, upstream_on_a_thread
from tests.store.versions.dialogue import DIALOGUE, KEY, SECRET, answer
from tests.talking import NOW

FOLDER = Path(__file__).parent / "versions"
VERSIONS = range(1, len(MIGRATIONS))
QUESTION = "What is the number of the rootstock of the medlar Bartholomew?"


def stored(version: int, folder: Path) -> Path:
    """The database of a version, as its program left it."""
    path = folder / "palimpsest.db"
    path.write_bytes(zstd.decompress((FOLDER / f"version_{version}.db.zst").read_bytes()))
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (version,)
    return path


@asynccontextmanager
async def migrated(version: int, folder: Path) -> AsyncIterator[Database]:
    database = Database(stored(version, folder))
    try:
        await database.open()
        yield database
    finally:
        await database.close()


def test_every_earlier_version_has_a_database() -> None:
    there = {int(file.name.split("_")[1].split(".")[0]) for file in FOLDER.glob("version_*.db.zst")}
    assert there == set(VERSIONS), "scripts/old_databases.py makes one with each migration"


@pytest.mark.parametrize("version", VERSIONS)
async def test_the_journal_of_an_earlier_version_is_what_was_said(tmp_path: Path, version: int) -> None:
    async with migrated(version, tmp_path) as database:
        journal = Journal(database)
        rows = await database.read(
            "SELECT tenant.name, public, (SELECT count(*) FROM turn AS t WHERE t.conversation = turn.conversation"
            " AND t.id <= turn.id), text FROM turn JOIN conversation ON conversation.id = turn.conversation"
            " JOIN tenant ON tenant.id = conversation.tenant"
            " JOIN occurrence ON occurrence.turn = turn.id AND occurrence.position = turn.messages"
            " JOIN content ON content.id = occurrence.content ORDER BY turn.id"
        )
        requests = [await journal.request(tenant, conversation, number) for tenant, conversation, number, _ in rows]
        # an answer that comes back in a request is kept as it was heard, with all its fields
        plain = [[{"role": m["role"], "content": m["content"]} for m in messages] for messages in requests]
        assert plain == DIALOGUE
        assert [text for *_, text in rows] == [answer({"messages": messages}) for messages in DIALOGUE]


@pytest.mark.parametrize("version", VERSIONS)
async def test_an_earlier_version_is_consistent_and_found_by_words(tmp_path: Path, version: int) -> None:
    async with migrated(version, tmp_path) as database:
        ((tenant,),) = await database.read("SELECT name FROM tenant")
        recall = Recall(database, PassageTables("words", 384), WordEmbedder(), Metrics(), lambda: NOW)
        found = await recall.recall(Query(tenant, "", QUESTION, reach=Reach.TENANT), 3)
        assert any("QX-4417" in candidate.memory.text for candidate in found.candidates)
        path = database.path
    assert examination(path).findings == ()


async def test_a_migration_is_logged_once_with_both_versions(tmp_path: Path) -> None:
    with capture_logs() as lines:
        async with migrated(1, tmp_path) as database:
            path = str(database.path)
        for file in (tmp_path / "palimpsest.db", tmp_path / "new.db"):
            again = Database(file)
            await again.open()
            await again.close()
    assert [line for line in lines if line["event"] == "migrated the database"] == [
        {
            "event": "migrated the database",
            "log_level": "info",
            "file": path,
            "from_version": 1,
            "to_version": len(MIGRATIONS),
        }
    ]


@pytest.mark.parametrize("version", VERSIONS)
async def test_an_earlier_version_is_exported_and_imported(tmp_path: Path, version: int) -> None:
    async with migrated(version, tmp_path) as database:
        data = await exported(database)
    second = Database(tmp_path / "second.db")
    await Importing(second, SECRET.encode()).take(read(data), Destination())
    assert await exported(second) == data and len(read(data)) == len(DIALOGUE)
    await second.close()


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_conversations_of_an_earlier_version_go_on(tmp_path: Path, version: int) -> None:
    (tmp_path / "data").mkdir()
    with closing(sqlite3.connect(stored(version, tmp_path / "data"))) as db:
        ((public,),) = db.execute("SELECT public FROM conversation ORDER BY id DESC LIMIT 1")
    history = DIALOGUE[-1]
    more: list[Json] = [
        {"role": "assistant", "content": answer({"messages": history})},
        {"role": "user", "content": "Then cover both of them before the frost."},
    ]
    upstream = ScriptedUpstream()
    with (
        upstream_on_a_thread(upstream),
        Proxy(tmp_path / "data", upstream.url, PALIMPSEST_SECRET=SECRET) as proxy,
    ):
        got = proxy.chat({"model": "gpt-4o", "messages": [*history, *more]}, KEY)
    assert (got.said("conversation"), got.said("event"), got.said("role")) == (public, "append", "main")
