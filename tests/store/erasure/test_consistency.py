"""The check of a database: what is sound is fine, and each fault is named and, where the journal has it, mended."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import orjson
import pytest
from palimpsest.domain.errors import MemoryFault
from palimpsest.features.facts.extraction import FactExtraction
from palimpsest.features.transfer.reading import ReadResult, turns_in
from palimpsest.memory.erasure.forgetting import Forgetting
from palimpsest.memory.operation.checking import check, repair
from palimpsest.store.engine.sqlite.database import Database
from palimpsest.store.erasure.consistency import examination
from palimpsest.store.erasure.selection import Target
from palimpsest.telemetry.metrics import Metrics

from tests.features.transfer.samples import chatgpt_conversation, claude_code_lines, codex_lines, lines_of
from tests.features.transfer.test_importing import ME, SECRET, Importing, exported, talk
from tests.talking import NOW


@pytest.fixture
async def path(tmp_path: Path) -> Path:
    """A database with branches, compactions, sub-agents and tools."""
    (tmp_path / "g.json").write_bytes(orjson.dumps([chatgpt_conversation()]))
    (tmp_path / "cc.jsonl").write_bytes(lines_of(claude_code_lines()))
    (tmp_path / "codex.jsonl").write_bytes(lines_of(codex_lines()))
    database = Database(tmp_path / "data" / "palimpsest.db")  # what is erased is looked for in all files beside it
    await Importing(database, SECRET).import_turns(turns_in([tmp_path], ReadResult()), ME)
    await database.close()
    return database.path


def said(path: Path) -> list[str]:
    return [f"{finding.count} {finding.words}" for finding in examination(path).findings]


def broken(path: Path, sql: str) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA foreign_keys = OFF")
        database.executescript(sql)
        database.commit()


async def journal(path: Path) -> bytes:
    database = Database(path)
    await database.open()
    lines = await exported(database)
    await database.close()
    return lines


async def test_what_was_written_is_fine(path: Path) -> None:
    found = await check(path)
    assert found.findings == () and found.note == ""
    assert (found.conversations, found.turns) == (4, 13)


async def test_what_was_erased_and_added_to_is_fine(path: Path) -> None:
    database = Database(path)
    for target in (Target(matching="quince"), Target(matching="smoker")):
        assert await Forgetting(database, SECRET, lambda: NOW + 1e9, settle_seconds=0.0).erase(target)
    await Importing(database, SECRET).import_turns(talk("said since", "and more"), ME)
    await database.close()
    assert said(path) == []


async def test_what_is_written_meanwhile_is_no_fault(path: Path) -> None:
    database = Database(path)
    writing = asyncio.create_task(
        Importing(database, SECRET).import_turns(talk(*(f"word {number} of many" for number in range(400))), ME)
    )
    found = [await asyncio.to_thread(examination, path) for _ in range(5)]
    await writing
    await database.close()
    assert [one.findings for one in found] == [()] * 5


REBUILT = {
    "DELETE FROM memory_text WHERE rowid = 3": "1 passages are missing from the full-text index",
    "INSERT INTO memory_text(rowid, tokens) VALUES (999, 'x')": "1 rows of the full-text index have no passage",
    "DELETE FROM unindexed WHERE memory = 2": "1 passages have no vector and are not waiting for one",
    "UPDATE term SET memories = memories + 1 WHERE term = 'hive'": "1 terms are counted wrongly",
    "DELETE FROM term WHERE term = 'hive'": "1 terms are counted wrongly",
    "UPDATE memory SET stop = 100000 WHERE id = 1": "1 passages lie outside of their messages, or belong to another",
    "UPDATE memory_text SET tokens = replace(tokens, 'hive', 'hut') WHERE rowid = 1": "1 terms are counted wrongly",
}


STRAY = "INSERT INTO content(tenant, digest, text, rest) VALUES (1, x'00', 'stray', '{}')"


@pytest.mark.parametrize("sql", REBUILT)
async def test_a_fault_in_what_is_derived_is_named_and_mended(path: Path, sql: str) -> None:
    before = await journal(path)
    broken(path, sql)
    found = await check(path)
    words = [f"{finding.count} {finding.words}" for finding in found.findings]
    assert any(REBUILT[sql].partition(" ")[2] in word for word in words), words
    await repair(path, found, lambda: NOW)
    assert said(path) == [] and await journal(path) == before


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        (
            "DELETE FROM unindexed WHERE memory = 1; DELETE FROM memory_text WHERE rowid = 1;"
            "DELETE FROM memory WHERE id = 1",
            "messages should be searchable but have no passages",
        ),
        (
            "UPDATE occurrence SET flags = flags | 256 WHERE id = (SELECT occurrence FROM memory)",
            "passages of erased or retired messages",
        ),
        ("UPDATE head SET listing = substr(listing, 33)", "branches differ from the journal"),
        ("DELETE FROM head", "4 conversations have no newest state, and would not be recognised"),
        (STRAY, "1 texts belong to no message"),
    ],
)
async def test_a_fault_is_named_in_words(path: Path, sql: str, words: str) -> None:
    broken(path, sql)
    assert any(words in word for word in said(path)), said(path)


async def test_a_text_that_stands_nowhere_is_removed(path: Path) -> None:
    broken(path, STRAY)
    await repair(path, await check(path), lambda: NOW)
    assert said(path) == []


@pytest.mark.parametrize("sql", ["UPDATE head SET listing = substr(listing, 33)", "DELETE FROM head"])
async def test_where_conversations_stand_is_mended(path: Path, sql: str) -> None:
    before = await journal(path)
    with closing(sqlite3.connect(path)) as database:
        heads = database.execute("SELECT turn, listing FROM head ORDER BY turn").fetchall()
    broken(path, sql)
    await repair(path, await check(path), lambda: NOW)
    assert said(path) == [] and await journal(path) == before
    with closing(sqlite3.connect(path)) as database:
        assert set(database.execute("SELECT turn, listing FROM head")) <= set(heads)
        assert database.execute("SELECT count(DISTINCT conversation) FROM head").fetchone() == (4,)


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("DELETE FROM content WHERE id = 2", "rows of the table occurrence"),
        ("DELETE FROM occurrence WHERE id = 2", "turns refer to missing messages"),
        ("UPDATE turn SET kept = '{\"runs\":[[0,0,999]]}' WHERE id = 3", "turns refer to missing messages"),
    ],
)
async def test_what_the_journal_has_lost_is_said_and_stays(path: Path, sql: str, words: str) -> None:
    broken(path, sql)
    found = await check(path)
    assert any(words in finding.words for finding in found.findings)
    assert "restore a backup" in {finding.repair.value for finding in found.findings}


def damage(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[4096 * 3 : 4096 * 9] = b"\xa5" * 4096 * 6
    path.write_bytes(data)


async def test_a_damaged_file_is_said(path: Path) -> None:
    damage(path)
    with suppress(MemoryFault):
        await check(path)
    assert any("the file is damaged" in word for word in said(path))


async def test_a_database_of_another_version_is_not_judged(path: Path) -> None:
    broken(path, "PRAGMA user_version = 2")
    with pytest.raises(MemoryFault, match=r"version 2, known \d+"):
        examination(path)


async def test_what_is_being_rebuilt_is_not_judged(path: Path) -> None:
    broken(path, "DELETE FROM term; INSERT INTO task(name, next, stop) VALUES ('rebuild', 0, 9)")
    found = await check(path)
    assert found.findings == () and "being rebuilt" in found.note


# --- facts ---------------------------------------------------------------------------------------

NEW_FACT = """
INSERT INTO fact(tenant, public, conversation, occurrence, start, stop, user_id, scope, tool, subject, slot, value,
    category, single, confidence, said_at, place)
SELECT tenant, {}, conversation, occurrence, start, stop, user_id, scope, tool, subject, slot, value, category, single,
    confidence, said_at, place FROM fact LIMIT 1
"""
OF_FACTS = {
    "UPDATE fact SET occurrence = NULL WHERE value = 'Porto'": "1 facts have no source",
    NEW_FACT.format("public"): "1 facts are stored twice",
    "UPDATE fact SET stop = 100000 WHERE value = 'Porto'": "1 facts lie outside of their messages",
    "UPDATE fact SET conversation = 1 WHERE value = 'Porto'": "1 facts lie outside of their messages",
    "UPDATE fact SET category = 'rumour' WHERE value = 'Oslo'": "1 facts are of no known category",
    "UPDATE fact SET user_id = 'bob' WHERE value = 'Porto'": "1 facts have another user",
    "UPDATE fact SET retirement = 1 WHERE value = 'Oslo'": "1 facts have another user or project than their "
    "messages, or are hidden",
    "UPDATE fact SET superseded = 1 WHERE value = 'figs'": "1 facts are wrongly marked as superseded or current",
    "UPDATE fact SET superseded = 0 WHERE value = 'Porto'": "1 facts are wrongly marked as superseded or current",
    "UPDATE block SET facts = '[[\"f-gone\",0]]'": "1 blocks contain facts that were erased or forgotten",
    "UPDATE occurrence SET flags = flags | 256 WHERE id = (SELECT occurrence FROM fact)": "1 blocks contain facts",
    "UPDATE task SET next = 99999 WHERE name = 'facts'": "1 extraction of facts is beyond",
    "UPDATE occurrence SET flags = flags | 256 WHERE id = (SELECT occurrence FROM fact WHERE value = 'figs')": (
        "1 facts of erased messages are still there"
    ),
}


async def extracted(path: Path) -> list[tuple[object, ...]]:
    """All facts, as far as they follow from messages."""
    database = Database(path)
    extraction = FactExtraction(database, SECRET, Metrics(), lambda: NOW)
    await database.open()
    while await extraction.extract_batch():
        pass
    facts = await database.read(
        "SELECT public, user_id, scope, value, superseded, start, stop FROM fact ORDER BY public"
    )
    await database.close()
    return facts


@pytest.fixture
async def stating(tmp_path: Path) -> Path:
    """A database with facts, one of them superseded and one told in a block."""
    database = Database(tmp_path / "palimpsest.db")
    await Importing(database, SECRET).import_turns(talk("hello", conversation="c-0"), ME)
    said = talk("I live in Porto.", "I love figs.", "I live in Oslo.", user="ann", scope="shop")
    await Importing(database, SECRET).import_turns(said, ME)
    block = "INSERT INTO block(occurrence, tenant, conversation, turn, kind, text, role, tokens, occurrences) VALUES"
    await database.write([(f"{block} (3, 1, 2, 2, 'facts', 'told', '', 1, '[]')", [()])])
    await database.close()
    await extracted(database.path)
    broken(database.path, "UPDATE block SET facts = (SELECT json_array(json_array(public, occurrence)) FROM fact)")
    return database.path


async def test_facts_as_they_were_written_are_fine(stating: Path) -> None:
    assert said(stating) == []
    database = Database(stating)
    await Forgetting(database, SECRET, lambda: NOW + 1e9).erase(Target(matching="figs"))
    await Forgetting(database, SECRET, lambda: NOW + 1e9).erase(Target(matching="Porto"))
    await database.close()
    assert said(stating) == []


@pytest.mark.parametrize("sql", OF_FACTS)
async def test_a_fault_in_facts_is_named_and_mended(stating: Path, sql: str) -> None:
    before = await extracted(stating)
    broken(stating, sql)
    found = await check(stating)
    assert any(f"{finding.count} {finding.words}".startswith(OF_FACTS[sql]) for finding in found.findings), said(
        stating
    )
    await repair(stating, found, lambda: NOW)
    assert [word for word in said(stating) if "fact" in word] == []
    after = await extracted(stating)
    assert after == before or "256" in sql
    assert [word for word in said(stating) if "fact" in word] == []
