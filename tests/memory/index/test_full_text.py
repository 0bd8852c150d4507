from __future__ import annotations

import numpy as np
import pytest
from palimpsest.core.recall.ranking import PassageTable
from palimpsest.domain import Query, Reach
from palimpsest.domain.errors import MemoryFault
from palimpsest.memory.index import full_text as module
from palimpsest.memory.index.full_text import TermRows
from palimpsest.memory.index.passage_tables import PassageTables
from palimpsest.store.engine import Ask
from palimpsest.store.search.scope import Scope, scope_of

from tests.remembered import DIMENSIONS, Past, Watched, WordEmbedder


async def scope(past: Past, reach: Reach = Reach.CONVERSATION, tenant: str = "acme") -> Scope:
    query = Query(tenant, "c-1", "", reach=reach)
    found = await past.database.ask(lambda ask: scope_of(ask, query))
    assert found is not None
    return found[0]


async def find(past: Past, *terms: str, reach: Reach = Reach.CONVERSATION) -> TermRows:
    here = await scope(past, reach)
    return await past.database.ask(lambda ask: module.find(ask, here, table(ask, here), terms))


def table(ask: Ask, here: Scope) -> PassageTable:
    return PassageTables(WordEmbedder.name, DIMENSIONS).table(ask, here)


async def texts(past: Past, found: TermRows, term: str, reach: Reach = Reach.CONVERSATION) -> list[str]:
    here = await scope(past, reach)
    rows = []
    ids = (await past.database.ask(lambda ask: table(ask, here))).ids
    for id in ids[found.rows[term]].tolist():
        rows += await past.database.read(
            "SELECT content.text FROM memory JOIN occurrence ON occurrence.id = memory.occurrence"
            " JOIN content ON content.id = occurrence.content WHERE memory.id = ?",
            (id,),
        )
    return [text for (text,) in rows]


async def test_each_term_has_its_own_passages(past: Past) -> None:
    await past.say("the red boat", "a blue boat", "a red house")
    found = await find(past, "boat", "red")
    assert await texts(past, found, "boat") == ["the red boat", "a blue boat"]
    assert await texts(past, found, "red") == ["the red boat", "a red house"]


async def test_a_term_that_nobody_used_is_absent(past: Past) -> None:
    await past.say("the red boat")
    assert (await find(past, "boat", "zeppelin")).absent == ("zeppelin",)


async def test_a_term_that_only_others_used_is_absent(past: Past) -> None:
    await past.say("the red boat")
    await past.say("the zeppelin", conversation="c-2")
    await past.say("the balloon", tenant="other")
    assert (await find(past, "zeppelin", "balloon")).absent == ("zeppelin", "balloon")
    assert (await find(past, "zeppelin", "balloon", reach=Reach.TENANT)).absent == ("balloon",)


@pytest.mark.parametrize("others", [1, 20])
async def test_only_the_scope_is_looked_at_whatever_its_share_of_the_store(past: Past, others: int) -> None:
    await past.say("the red boat", *[f"a boat, number {n}" for n in range(5)])
    for n in range(others):
        await past.say("my red boat", tenant="other", conversation=f"o-{n}")
    found = await find(past, "red", "boat", "my", reach=Reach.TENANT)
    assert await texts(past, found, "red", Reach.TENANT) == ["the red boat"]
    assert len(found.rows["boat"]) == 6 and found.absent == ("my",)


async def test_what_is_said_later_is_found_too_though_the_term_was_asked_before(past: Past) -> None:
    tables, here = PassageTables(WordEmbedder.name, DIMENSIONS), None
    many = module.COMMON_PASSAGES + 5
    for n in range(3):
        await past.say(*[f"boat {n} {m}" for m in range(many)], "a red boat")
        here = here or await scope(past)
        found = await past.database.ask(
            lambda ask, here=here: module.find(ask, here, tables.table(ask, here), ["boat", "red"])
        )
        assert len(found.rows["boat"]) == (n + 1) * (many + 1) and len(found.rows["red"]) == n + 1
    await past.index()
    await past.forget([1])
    for _ in range(2):
        found = await past.database.ask(lambda ask: module.find(ask, here, tables.table(ask, here), ["boat"]))
        assert found.rows["boat"].tolist() == [*range(3 * (many + 1) - 1)]


async def test_a_table_that_was_handed_out_earlier_keeps_to_its_own_rows(past: Past) -> None:
    tables = PassageTables(WordEmbedder.name, DIMENSIONS)
    await past.say(*[f"boat {n}" for n in range(module.COMMON_PASSAGES)])
    here = await scope(past)
    earlier = await past.database.ask(lambda ask: tables.table(ask, here))
    await past.say("one more boat")
    later = await past.database.ask(lambda ask: tables.table(ask, here))
    for on, count in ((later, module.COMMON_PASSAGES + 1), (earlier, module.COMMON_PASSAGES)):
        found = await past.database.ask(lambda ask, on=on: module.find(ask, here, on, ["boat"]))
        assert found.rows["boat"].tolist() == [*range(count)]


async def test_of_terms_that_were_asked_before_only_so_many_are_remembered(past: Past) -> None:
    words = [f"{n}" for n in range(100)]  # so short that they are one passage
    await past.say(*[" ".join(words)] * module.COMMON_PASSAGES)
    here = await scope(past)
    on = await past.database.ask(lambda ask: table(ask, here))
    rows = np.zeros(module.KNOWN_ROWS - 10 * module.COMMON_PASSAGES, np.int64)
    on.known["a very common one"] = len(on), rows
    for place, word in enumerate(words):
        found = await past.database.ask(lambda ask, word=word: module.find(ask, here, on, [word]))
        assert len(found.rows[word]) == module.COMMON_PASSAGES and word in on.known
        assert ("a very common one" in on.known) == (place < 10)
    on.known.update({f"other {n}": (len(on), rows[:0]) for n in range(module.KNOWN_TERMS)})
    on.known.pop(words[-1])
    await past.database.ask(lambda ask: module.find(ask, here, on, words[-1:]))
    assert [*on.known] == words[-1:]


async def test_many_absent_terms_do_not_crowd_out_the_known(past: Past) -> None:
    await past.say("the red boat")
    unknown = [f"unknown{n}" for n in range(3 * module.MAX_TERMS)]
    found = await find(past, *unknown, "boat")
    assert list(found.rows) == ["boat"] and found.absent == tuple(unknown)


async def test_of_many_known_terms_the_rarest_are_looked_up_and_the_others_are_not_called_absent(past: Past) -> None:
    words = [f"word{n}" for n in range(module.MAX_TERMS + 4)]
    await past.say(" ".join(words), " ".join(words[-4:]))
    found = await find(past, *words)
    assert sorted(found.rows) == sorted(words[:-4]) and found.absent == ()


@pytest.mark.parametrize(
    "hostile", ['"', '" OR "', "boat*", "NEAR(boat)", "tokens:boat", "boat AND", "\ue000t1", "(", "'; DROP TABLE term"]
)
async def test_no_term_is_read_as_a_query(past: Past, hostile: str) -> None:
    await past.say("the red boat")
    found = await find(past, hostile, "boat")
    assert hostile not in found.rows and len(found.rows["boat"]) == 1


async def test_identifiers_are_found_whole(past: Past) -> None:
    await past.say("see src/app/main.py", "see src/app/other.py")
    assert await texts(past, found := await find(past, "src/app/main.py"), "src/app/main.py") == ["see src/app/main.py"]
    assert found.absent == ()


async def test_no_terms_ask_for_nothing(past: Past) -> None:
    await past.say("the red boat")
    assert await find(past) == TermRows({}, ())


async def test_an_index_that_cannot_be_read_is_a_fault_and_not_an_empty_answer(past: Past) -> None:
    await past.say("the red boat")
    watched = Watched(past.database)
    watched.fault = "passages_holding"
    here = await scope(past)
    with pytest.raises(MemoryFault):
        await watched.ask(lambda ask: module.find(ask, here, table(ask, here), ["boat"]))
