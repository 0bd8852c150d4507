"""Import and export: what comes back is what went out, once, and nothing that was erased."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import orjson
import pytest
from palimpsest.core.caller.identity import tenant_key
from palimpsest.domain import Ending, Event, Fact, FactCategory, Json, LinkKind, Reach, Role
from palimpsest.domain.errors import PolicyError
from palimpsest.domain.facts import by_tool
from palimpsest.domain.portable_turn import ForgottenFact, PortableMessage, PortableTurn
from palimpsest.features.facts.extraction import FactExtraction
from palimpsest.features.transfer.importing import Destination, Importing, Totals, count_too_old
from palimpsest.features.transfer.lines import export, fact_to_line, from_line, header_line, to_line
from palimpsest.features.transfer.reading import ReadResult, turns_in
from palimpsest.memory.erasure.forgetting import Forgetting
from palimpsest.memory.erasure.retention import Sweeper
from palimpsest.settings.policy import RetentionPeriods, RetentionPolicy
from palimpsest.store.engine.sqlite.database import Database
from palimpsest.store.erasure.selection import Target
from palimpsest.store.journal import Journal
from palimpsest.store.knowledge import added_facts
from palimpsest.store.knowledge.added_facts import add_facts
from palimpsest.store.knowledge.fact_extraction import start_over
from palimpsest.store.search.derived import Derived
from palimpsest.store.search.scope import conversations_in
from palimpsest.store.turns.arrivals import ImportedCounts
from palimpsest.store.turns.transcript import Selection
from palimpsest.telemetry.metrics import Metrics

from tests.databases import database_in
from tests.features.transfer.samples import (
    chatgpt_conversation,
    claude_code_lines,
    claude_conversation,
    codex_lines,
    lines_of,
)
from tests.talking import NOW

SECRET = b"one installation's secret"
OTHER_SECRET = b"another installation's secret"
ME = Destination(default_tenant="static:me")


@asynccontextmanager
async def opened(folder: Path, name: str = "a") -> AsyncIterator[Database]:
    database = database_in(folder, f"{name}.db")
    await database.open()
    try:
        yield database
    finally:
        await database.close()


async def exported(database: Database, secret: bytes = SECRET, **selection: str) -> bytes:
    key_of = functools.partial(tenant_key, secret)
    return b"".join([lines async for lines in export(database, Selection(**selection), key_of)])


def read(data: bytes) -> list[PortableTurn]:
    return [from_line(orjson.loads(line)) for line in data.splitlines()[1:]]


async def taken(
    database: Database, turns: Sequence[PortableTurn], into: Destination = ME, secret: bytes = SECRET
) -> Totals:
    return await Importing(database, secret).import_turns(turns, into)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """One file of each kind."""
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "g.json").write_bytes(orjson.dumps([chatgpt_conversation()]))
    (folder / "c.json").write_bytes(orjson.dumps([claude_conversation()]))
    (folder / "cc.jsonl").write_bytes(lines_of(claude_code_lines()))
    (folder / "codex.jsonl").write_bytes(lines_of(codex_lines()))
    return folder


def turns_of(*paths: Path) -> list[PortableTurn]:
    return list(turns_in(list(paths), ReadResult()))


def talk(*texts: str, conversation: str = "c-1", tenant: str = "static:me", **more: object) -> list[PortableTurn]:
    """A conversation in which questions and answers take turns; one text says what was asked and answered."""
    turns: list[PortableTurn] = []
    for number, text in enumerate(texts):
        before = turns[-1].id if turns else ""
        turns.append(
            PortableTurn(
                f"t-{conversation}-{number}",
                conversation,
                NOW + number,
                (PortableMessage(2 * number, {"role": "user", "content": text}),),
                PortableMessage(0, {"role": "assistant", "content": f"You said: {text}"}),
                NOW + number + 0.5,
                parent=before,
                kept=((0, 0, 2 * number),) if number else (),
                event=Event.APPEND if number else Event.START,
                tenant=tenant,
                **more,  # type: ignore[arg-type]
            )
        )
    return turns


# --- round trip ----------------------------------------------------------------------------------


async def test_an_export_that_is_imported_elsewhere_is_exported_byte_for_byte(tmp_path: Path, files: Path) -> None:
    async with opened(tmp_path, "a") as first, opened(tmp_path, "b") as second:
        await taken(first, turns_of(files))
        await taken(first, talk("the quince", "the medlar", user="ann", scope="orchard", conversation="c-9"))
        data = await exported(first)
        assert data.count(b"\n") > 18
        await taken(second, read(data), secret=OTHER_SECRET)
        assert await exported(second) == data


async def test_an_import_that_is_repeated_changes_nothing(tmp_path: Path, files: Path) -> None:
    async with opened(tmp_path) as database:
        once = await taken(database, turns_of(files))
        data = await exported(database)
        again = await taken(database, turns_of(files))
        assert (again.written.turns, again.known) == (0, once.written.turns)
        assert await exported(database) == data


async def test_an_import_that_was_cut_off_is_taken_up(tmp_path: Path, files: Path) -> None:
    turns = [*turns_of(files), *talk(*(f"word {number}" for number in range(200)))]
    async with opened(tmp_path, "a") as whole, opened(tmp_path, "b") as cut:
        await taken(whole, turns)

        def ending() -> list[PortableTurn]:
            return turns[: len(turns) // 2]

        await taken(cut, ending())
        await taken(cut, turns)
        assert await exported(cut) == await exported(whole)


async def test_one_users_turns_are_chosen_and_stand_by_themselves(tmp_path: Path) -> None:
    async with opened(tmp_path, "a") as first, opened(tmp_path, "b") as second:
        await taken(first, talk("hers", user="ann", conversation="c-1"))
        await taken(first, talk("his", user="ben", conversation="c-2"))
        await taken(first, talk("another's", user="ann", tenant="key:team", conversation="c-3"))
        data = await exported(first, user="ann", tenant="static:me")
        assert b"hers" in data and b"his" not in data and b"another" not in data
        assert await exported(first, conversation="c-2") == header_line() + to_line(
            talk("his", user="ben", conversation="c-2")[0]
        )
        await taken(second, read(data))
        assert await exported(second) == data
        assert await exported(first, scope="none") == header_line()


async def test_a_long_conversation_is_exported_as_what_each_turn_adds(tmp_path: Path) -> None:
    async with opened(tmp_path) as database:
        await taken(database, talk(*(f"number {number}" for number in range(300))))
        data = await exported(database)
        assert len(data) < 300 * 500
        assert [turn.kept for turn in read(data)[1:3]] == [((0, 0, 2),), ((0, 0, 4),)]


async def test_a_turn_that_was_under_way_gets_its_answer_later(tmp_path: Path) -> None:
    (whole,) = talk("a question")
    early = PortableTurn(
        whole.id, whole.conversation, whole.created_at, whole.messages, None, 0.0, None, tenant="static:me"
    )
    async with opened(tmp_path) as database:
        await taken(database, [early])
        assert read(await exported(database)) == [early]
        await taken(database, [early])
        await taken(database, [whole])
        assert read(await exported(database)) == [whole]


# --- whose they become ---------------------------------------------------------------------------


async def test_the_same_conversation_may_belong_to_two_tenants(tmp_path: Path, files: Path) -> None:
    async with opened(tmp_path) as database:
        for tenant in ("static:me", "key:team", "key:team"):
            await taken(database, turns_of(files), Destination(tenant))
        both = read(await exported(database))
        mine, theirs = ([t for t in both if t.tenant == name] for name in ("static:me", "key:team"))
        assert len(mine) == len(theirs) == len(turns_of(files))
        assert [[m.raw for m in t.messages] for t in mine] == [[m.raw for m in t.messages] for t in theirs]
        assert {t.id for t in mine}.isdisjoint(t.id for t in theirs)


async def test_turns_without_a_tenant_are_refused_where_there_is_no_default(tmp_path: Path, files: Path) -> None:
    async with opened(tmp_path) as database:
        with pytest.raises(PolicyError, match="tenant: required"):
            await taken(database, turns_of(files), Destination())


async def test_user_and_project_are_what_the_import_says(tmp_path: Path) -> None:
    async with opened(tmp_path) as database:
        await taken(database, talk("x", user="ann"), Destination(user="ben", scope="bees"))
        (turn,) = read(await exported(database))
        assert (turn.user, turn.scope) == ("ben", "bees")


async def test_conversations_in_one_folder_are_known_to_be_after_an_import(tmp_path: Path) -> None:
    async with opened(tmp_path) as database:
        for number, folder in enumerate(("/srv/shop", "/srv/shop", "/srv/blog")):
            told = f"<cwd>{folder}</cwd> Where is the cart?"
            await taken(database, talk(told, "Is it tested?", conversation=f"c-{number}"))
        ((tenant,),) = await database.read("SELECT id FROM tenant")
        rows = await database.read("SELECT folder FROM conversation ORDER BY public")
        (shop,), same, (blog,) = rows
        assert same == (shop,) and 0 != shop != blog != 0
        assert len(await database.ask(lambda ask: conversations_in(ask, tenant, shop, 0))) == 2


# --- what is kept --------------------------------------------------------------------------------


async def test_credentials_do_not_reach_the_disk(tmp_path: Path) -> None:
    key = "sk-" + "a1B2c3D4e5F6g7H8i9J0" * 2
    async with opened(tmp_path) as database:
        await taken(database, talk(f"my key is {key}, keep it"))
        data = await exported(database)
        assert key.encode() not in data and b"[redacted:" in data
    async with opened(tmp_path, "b") as second:
        await taken(second, read(data))
        assert await exported(second) == data


async def test_what_was_compacted_may_come_back_and_summaries_are_not_found(tmp_path: Path, files: Path) -> None:
    async with opened(tmp_path) as database:
        await taken(database, turns_of(files / "cc.jsonl"))
        ((lost,),) = await database.read(
            "SELECT length(lost) / 8 FROM head JOIN turn ON turn.id = head.turn WHERE turn.event = 'compaction:summary'"
        )
        assert lost == 4
        found = await database.read("SELECT text FROM memory JOIN occurrence ON occurrence.id = memory.occurrence"
                                    " JOIN content ON content.id = occurrence.content")  # fmt: skip
        assert any("queen of hive" in text for (text,) in found)
        assert not any("continues" in text for (text,) in found)


async def test_a_client_that_names_its_conversation_finds_it_again(tmp_path: Path, files: Path) -> None:
    from palimpsest.core.conversation import conversation_named

    async with opened(tmp_path) as database:
        await taken(database, turns_of(files / "cc.jsonl"))
        rows = await database.read("SELECT public, role, parent FROM conversation ORDER BY id")
        named = conversation_named("static:me", "claude-code:11111111-2222-4333-8444-555555555555", SECRET)
        assert rows[0] == (named, "main", "") and rows[1][1:] == ("subagent", named)
        links = await database.read("SELECT count(*) FROM link WHERE kind = ?", (LinkKind.CLIENT_ID,))
        assert links[0][0] == 2


async def test_one_broken_turn_does_not_hold_up_the_others(tmp_path: Path) -> None:
    good = talk("one", "two")
    bad = PortableTurn("t-bad", "c-2", NOW, (PortableMessage(0, {"role": "user", "content": 7}),), tenant="static:me")
    half = PortableMessage(0, {"role": "user", "content": "half a pair: \ud83d"})
    odd = PortableTurn("t-odd", "c-3", NOW, (half,), tenant="static:me", model="m\ud83d")
    named = PortableTurn("t-name", "c-4", NOW, (half,), tenant="static:me", user="half a pair: \ud83d")
    async with opened(tmp_path) as database:
        totals = await taken(database, [good[0], bad, odd, named, good[1]])
        assert totals.written.turns == 4 and len(totals.broken) == 1, totals.broken
        assert "its content is neither text" in totals.broken[0]


async def test_parents_and_quotes_that_are_not_there_are_left_out(tmp_path: Path) -> None:
    _, second = talk("one", "two")
    async with opened(tmp_path) as database:
        await taken(database, [second])
        (turn,) = read(await exported(database))
        assert (turn.parent, turn.kept, len(turn.messages)) == ("", (), 1)


async def test_a_side_conversation_leaves_no_passages(tmp_path: Path) -> None:
    async with opened(tmp_path) as database:
        await taken(database, talk("Make a title for this", role=Role.SIDE))
        assert await database.read("SELECT count(*) FROM memory") == [(0,)]
        assert read(await exported(database))[0].role is Role.SIDE


async def test_what_a_client_wrote_in_the_users_role_is_not_found(tmp_path: Path) -> None:
    command = "<command-name>/compact</command-name>\n<command-args></command-args>"
    async with opened(tmp_path) as database:
        await taken(database, talk(command))
        assert await database.read("SELECT role FROM memory JOIN occurrence ON occurrence.id = occurrence") == [
            ("assistant",)
        ]


# --- what was erased -----------------------------------------------------------------------------


async def forget(database: Database, **target: str) -> None:
    assert await Forgetting(database, SECRET, lambda: NOW + 100, settle_seconds=0.0).erase(Target(**target)) is not None


@pytest.mark.parametrize("target", [{"conversation": "c-1"}, {"matching": "medlar"}], ids=str)
async def test_what_was_erased_does_not_come_back(tmp_path: Path, target: Json) -> None:
    turns = [*talk("a quince tree", "a medlar tree"), *talk("pears", conversation="c-2")]
    async with opened(tmp_path) as database:
        await taken(database, turns)
        data = await exported(database)
        await forget(database, **target)
        left = await exported(database)
        totals = await taken(database, read(data))
        assert b"medlar" not in await exported(database) and b"pears" in left
        if "matching" in target:
            assert totals.written.turns == 0 and await exported(database) == left
        else:
            assert totals.written == ImportedCounts(turns=0, messages=0, erased=4)


async def test_an_export_holds_the_place_of_what_was_erased_and_no_word_of_it(tmp_path: Path) -> None:
    async with opened(tmp_path, "a") as first, opened(tmp_path, "b") as second:
        await taken(first, talk("a quince tree", "a medlar tree"))
        await forget(first, matching="medlar")
        data = await exported(first)
        assert b"medlar" not in data and data.count(b'"erased":true') == 2
        await taken(second, read(data))
        assert await exported(second) == data


async def test_who_erased_everything_may_still_import_what_was_never_here(tmp_path: Path) -> None:
    async with opened(tmp_path) as database:
        await taken(database, talk("a quince tree"))
        await forget(database, tenant="static:me")
        totals = await taken(database, talk("a medlar tree", conversation="c-5"))
        assert totals.written.erased == 0 and b"medlar" in await exported(database)


async def test_a_text_with_a_credential_that_was_erased_does_not_come_back(tmp_path: Path) -> None:
    key = "sk-" + "a1B2c3D4e5F6g7H8i9J0" * 2
    turns = talk(f"quince {key}", "and so on")
    async with opened(tmp_path) as database:
        await taken(database, turns)
        data = await exported(database)
        await forget(database, conversation="c-1")
        await taken(database, read(data))
        assert b"quince" not in await exported(database)


def test_messages_older_than_their_tenants_retention_are_counted() -> None:
    call = {"role": "tool", "tool_call_id": "c", "content": "hive seven"}
    tool = PortableTurn("t-tool", "c-3", NOW - 50.0, (PortableMessage(0, call),), tenant="static:me")
    turns = [*talk("old", "and new"), *talk("a title", conversation="c-2", role=Role.SIDE), tool]
    longer = {"key:*": RetentionPeriods(turns="forever", tool_results="forever", side_requests="forever")}

    def too_old(now: float, into: Destination = ME, **periods: str) -> tuple[int, int]:
        found = count_too_old(turns, into, RetentionPolicy(tenants=longer, **periods), now)
        return found.too_old, found.messages

    assert too_old(NOW + 60.0) == (0, 7)
    assert too_old(NOW + 60.0, turns="1m") == (3, 7)
    assert too_old(NOW + 60.0, side_requests="1m") == (1, 7)
    assert too_old(NOW + 60.0, tool_results="1m") == (1, 7)
    assert too_old(NOW + 600.0, turns="1m") == (7, 7)
    assert too_old(NOW + 600.0, Destination("key:team"), turns="1m") == (0, 7)


async def test_what_retention_erased_does_not_come_back_with_another_import(tmp_path: Path) -> None:
    turns, policy = talk("a quince tree", "a medlar tree"), RetentionPolicy(turns="1m")
    async with opened(tmp_path) as database:
        await taken(database, turns)
        assert count_too_old(turns, ME, policy, NOW + 600.0).too_old == 4
        await Sweeper(database, SECRET, lambda: policy, Metrics(), lambda: NOW + 600.0).sweep(30.0)
        await taken(database, turns)
        data = await exported(database)
        assert b"quince" not in data and b"medlar" not in data


# --- beside others -------------------------------------------------------------------------------


async def test_two_imports_at_once_write_each_turn_once(tmp_path: Path) -> None:
    turns = talk(*(f"word {number}" for number in range(150)))
    async with opened(tmp_path, "a") as database, opened(tmp_path, "b") as alone:
        await asyncio.gather(taken(database, turns), taken(database, turns))
        await taken(alone, turns)
        assert await exported(database) == await exported(alone)


async def test_what_is_imported_is_as_if_it_had_been_rebuilt(tmp_path: Path, files: Path) -> None:
    tables = "SELECT occurrence, start, stop, tags, kind FROM memory ORDER BY occurrence, start"
    async with opened(tmp_path) as database:
        await taken(database, turns_of(files))
        before = await database.read(tables), await database.read("SELECT * FROM term ORDER BY term")
        derived = Derived(database, lambda: NOW)
        await derived.start_rebuild()
        while await derived.rebuild_step():
            pass
        assert before == (await database.read(tables), await database.read("SELECT * FROM term ORDER BY term"))


async def test_explanations_of_imported_turns_say_that_they_were_imported(tmp_path: Path) -> None:
    async with opened(tmp_path) as database:
        await taken(database, talk("x"))
        turn = await Journal(database).turn_named(None, "t-c-1-0")
        assert turn is not None and turn["explain"]["evidence"] == ["imported"] and turn["ending"] == Ending.COMPLETE


PORT = Fact(
    id="f-0123456789abcdef",
    tenant="acme",
    user="ann",
    scope="shop",
    subject="project",
    slot="port",
    value="5432",
    category=FactCategory.SETTING,
    said_at=NOW,
    source=by_tool("remember_fact", "agent/1"),
    is_pinned=True,
    valid_until=NOW + 1e9,
)
HOME = replace(
    PORT,
    id="f-02",
    user="bob",
    slot="home",
    value="Porto",
    is_pinned=False,
    is_single=False,
    source=by_tool("remember_fact"),
)


async def told_to(database: Database, *facts: Fact) -> None:
    await database.transact(lambda t: add_facts(t, facts, functools.partial(tenant_key, SECRET)))


def facts_in(data: bytes, path: Path) -> list[Fact]:
    path.write_bytes(data)
    found = ReadResult()
    assert list(turns_in([path], found)) == [] and not found.broken
    return found.facts


async def test_told_facts_come_back_as_they_were_and_once(tmp_path: Path) -> None:
    async with opened(tmp_path) as database:
        await told_to(database, PORT, HOME)
        data = await exported(database)
        assert facts_in(await exported(database, user="bob"), tmp_path / "bob.jsonl") == [HOME]
        assert await exported(database, conversation="c-1") == header_line()
    async with opened(tmp_path, "b") as second:
        for _ in range(2):
            facts = facts_in(data, tmp_path / "all.jsonl")
            assert await Importing(second, SECRET).import_facts(facts, ME) == 2
        assert await exported(second) == data
        moved = Destination(tenant="static:me", user="eve")
        await Importing(second, SECRET).import_facts(facts, moved)
        assert facts_in(await exported(second, user="eve"), tmp_path / "eve.jsonl") == [
            replace(fact, tenant="static:me", user="eve") for fact in (PORT, HOME)
        ]


async def test_a_fact_that_was_erased_does_not_come_back_with_an_import(tmp_path: Path) -> None:
    async with opened(tmp_path) as database:
        await told_to(database, PORT)
        data = await exported(database)
        await Forgetting(database, SECRET, lambda: NOW + 1, settle_seconds=0.0).erase(Target(tenant="acme", user="ann"))
        assert await Importing(database, SECRET).import_facts(facts_in(data, tmp_path / "all.jsonl"), ME) == 0
        assert await exported(database) == header_line()


async def test_credentials_in_facts_of_files_are_redacted(tmp_path: Path) -> None:
    secret = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD"
    async with opened(tmp_path) as database:
        await Importing(database, SECRET).import_facts([replace(PORT, value=secret)], ME)
        assert secret.encode() not in await exported(database)


def test_what_is_wrong_with_a_fact_is_named_and_the_rest_is_read(tmp_path: Path) -> None:
    path = tmp_path / "broken.jsonl"
    path.write_bytes(header_line() + b'{"fact":"f-1","subject":"a","slot":"b"}\n' + fact_to_line(PORT))
    found = ReadResult()
    assert list(turns_in([path], found)) == []
    assert (found.facts, found.broken) == ([PORT], [f"{path}:2: value: missing"])


# --- forgotten facts -----------------------------------------------------------------------------

HOMES = ("My name is Ann Young, I live in Porto.", "My favourite film is Alien. I love figs and I love plums.")


async def facts_of(database: Database, secret: bytes = SECRET) -> set[str]:
    """Values of all facts, extracted anew."""
    await database.transact(start_over)
    extraction = FactExtraction(database, secret, Metrics(), lambda: NOW)
    while await extraction.extract_batch():
        pass
    return {value for (value,) in await database.read("SELECT value FROM fact")}


async def forgotten(database: Database, value: str, reach: Reach = Reach.USER) -> None:
    ((tenant, id),) = await database.read(
        "SELECT tenant.name, public FROM fact JOIN tenant ON tenant.id = tenant WHERE value = ? LIMIT 1", (value,)
    )
    key = tenant_key(SECRET, tenant)
    await database.transact(lambda t: added_facts.forget(t, tenant, id, reach, key, NOW))


@pytest.mark.parametrize("into", [ME, Destination(tenant="static:you"), Destination(user="eve", scope="barn")])
async def test_what_was_forgotten_stays_so_in_a_new_folder_with_another_secret(
    tmp_path: Path, into: Destination
) -> None:
    async with opened(tmp_path) as first, opened(tmp_path, "b") as second:
        await taken(first, talk(*HOMES, user="ann", scope="shop"))
        everything = await facts_of(first)
        assert {"Ann Young", "Porto", "figs", "plums"} <= everything
        for value in ("Porto", "figs"):
            await forgotten(first, value)
        assert await facts_of(first) == everything - {"Porto", "figs"}
        data = await exported(first)
        assert data.count(b'{"forgotten":') == 2
        (tmp_path / "a.jsonl").write_bytes(data)
        found = ReadResult()
        importing = Importing(second, OTHER_SECRET)
        await importing.import_turns(turns_in([tmp_path / "a.jsonl"], found), into)
        assert await facts_of(second, OTHER_SECRET) == everything, "extracted while the import was under way"
        assert not found.broken and await importing.import_forgotten(found.forgotten, into, NOW) == 2
        for database in (first, second):
            assert {v for (v,) in await database.read("SELECT value FROM fact")} == everything - {"Porto", "figs"}
        assert await facts_of(second, OTHER_SECRET) == everything - {"Porto", "figs"}
        user = into.user or "ann"
        again = talk(
            HOMES[0], conversation="c-2", user=user, scope=into.scope or "shop", tenant=into.tenant or "static:me"
        )
        await taken(second, again, secret=OTHER_SECRET)
        assert "Porto" not in await facts_of(second, OTHER_SECRET), "the same message of the same user"
        if into == ME:
            assert await exported(second, OTHER_SECRET, conversation="c-1") == await exported(first, conversation="c-1")


async def test_what_those_who_are_not_named_forgot_stays_so_for_all_of_them_where_they_shared(tmp_path: Path) -> None:
    for name, reach in (("a", Reach.TENANT), ("c", Reach.USER)):
        async with opened(tmp_path, name) as first, opened(tmp_path, name + "-new") as second:
            await taken(first, talk(HOMES[0]))
            await facts_of(first)
            await forgotten(first, "Porto", reach)
            path = tmp_path / f"{name}.jsonl"
            path.write_bytes(await exported(first))
            found = ReadResult()
            await taken(second, list(turns_in([path], found)), secret=OTHER_SECRET)
            await Importing(second, OTHER_SECRET).import_forgotten(found.forgotten, ME, NOW)
            assert "Porto" not in await facts_of(second, OTHER_SECRET)
            await taken(second, talk(HOMES[0], conversation="c-2"), secret=OTHER_SECRET)
            assert ("Porto" in await facts_of(second, OTHER_SECRET)) == (reach is Reach.USER)


async def test_an_export_where_nothing_was_forgotten_says_nothing_of_it(tmp_path: Path) -> None:
    async with opened(tmp_path) as database:
        await taken(database, talk(*HOMES))
        await facts_of(database)
        assert b"forgotten" not in await exported(database)


def test_a_forgotten_fact_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    path = tmp_path / "broken.jsonl"
    path.write_bytes(
        header_line() + b'{"forgotten":"t-1","tenant":"a"}\n{"forgotten":["t-1",0],"tenant":"a","stop":4}\n'
    )
    found = ReadResult()
    assert list(turns_in([path], found)) == []
    assert found.forgotten == [ForgottenFact("a", ("t-1", 0), 0, 4, 0, False)]
    assert found.broken == [f"{path}:2: a place is not [turn, position]"]
