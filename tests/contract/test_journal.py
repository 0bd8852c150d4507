"""What every store must do for lineage, replay, explain and recall; one journal so far."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from palimpsest.domain import (
    Block,
    BlockKind,
    Clues,
    Continuation,
    Ending,
    HeadFlag,
    KnownHistory,
    LinkKind,
    NewCut,
    ResentTurn,
    Role,
)
from palimpsest.store.engine import Engine
from palimpsest.store.journal import Journal

from tests.databases import database_in
from tests.examples import examples
from tests.talking import NOW, Talk, assistant, heard, look, newest, print_of, record, system, user

HELLO = (system("be brief"), user("hello"))


async def test_nothing_found_is_empty(journal: Journal) -> None:
    seen = await look(journal, HELLO)
    assert (seen.links, seen.heads) == ((), ())
    assert await journal.messages("acme", [1, 2]) == {}
    assert await journal.turn("acme", "c-1", None) is None
    assert await journal.pending() == 0


async def test_head_is_the_history_and_the_answer_without_instructions(journal: Journal) -> None:
    asked = record(HELLO, compactions=2)
    await journal.write([asked])
    await journal.write(answers=[heard(asked, "hi there")])
    (head,) = (await look(journal, HELLO)).heads
    said = [user("hello"), assistant("hi there")]
    assert list(head.fulls) == [print_of("acme", raw).full for raw in said]
    assert list(head.openings) == [print_of("acme", raw).opening for raw in said]
    assert list(head.flags) == [0, 0]
    assert (head.conversation, head.role, head.request_length, head.compactions) == ("c-1", Role.MAIN, 1, 2)
    assert head.shape == asked.turn.shape
    stored = await journal.messages("acme", head.occurrences)
    assert [stored[o].raw for o in head.occurrences] == said


def at_once(database: Engine, seen: KnownHistory) -> tuple[KnownHistory | None, ...]:
    """What may be found without waiting: on a server that is nothing."""
    return (seen,) if database.ask_at_once(lambda ask: True) else (None,)


async def test_a_turn_that_is_the_newest_state_is_found_with_all_links_of_its_answer(
    journal: Journal, database: Engine
) -> None:
    first = record(HELLO)
    said = heard(first, "hi there")
    fingerprint = said.entry.new.fingerprint.full if said.entry else 0
    links = ((LinkKind.ANSWER, fingerprint), (LinkKind.PHRASE, fingerprint))
    said = replace(said, answer=replace(said.answer, links=links))
    await journal.write([first], [said])
    stands = await journal.head(Continuation("acme", first.turn.id, fingerprint))
    assert journal.head_at_once(Continuation("acme", first.turn.id, fingerprint)) in at_once(database, stands)
    assert stands.heads == (await look(journal, HELLO)).heads
    assert [(link.kind, link.conversation) for link in stands.links] == [(LinkKind.ANSWER, "c-1")]
    assert await journal.head(Continuation("other", first.turn.id, fingerprint)) == KnownHistory()
    assert await journal.head(Continuation("acme", "t-unknown", fingerprint)) == KnownHistory()
    elsewhere = record([user("hello"), assistant("hi there"), user("more")], conversation="c-2")
    elsewhere = replace(elsewhere, turn=replace(elsewhere.turn, links=((LinkKind.MESSAGE, fingerprint),)))
    await journal.write([elsewhere])
    links = (await journal.head(Continuation("acme", first.turn.id, fingerprint))).links
    assert {link.conversation for link in links} == {"c-1", "c-2"}
    later = record([*HELLO, assistant("hi there"), user("more")], stands.heads[0])
    await journal.write([later])
    assert await journal.head(Continuation("acme", first.turn.id, fingerprint)) == KnownHistory()
    assert journal.head_at_once(Continuation("acme", first.turn.id, fingerprint)) in at_once(database, KnownHistory())


async def test_answers_are_found_by_their_names_inside_their_tenant(journal: Journal) -> None:
    asked = record(HELLO)
    said = heard(asked, "hi there")
    named = replace(said, answer=replace(said.answer, links=((LinkKind.REPLY, 7), (LinkKind.PHRASE, 8))))
    await journal.write([asked], [named])
    assert [message.raw for message in await journal.answers("acme", [7, 9])] == [assistant("hi there")]
    assert await journal.answers("acme", [8]) == await journal.answers("other", [7]) == ()
    assert await journal.handed_out("acme", [7, 8, 9], "", "") == {7}
    assert await journal.handed_out("other", [7], "", "") == frozenset()
    assert await journal.handed_out("acme", [7], "ann", "") == await journal.handed_out("acme", [7], "", "x") == set()


async def test_open_turn_has_a_head_without_an_answer(journal: Journal) -> None:
    await journal.write([record(HELLO)])
    (head,) = (await look(journal, HELLO)).heads
    assert len(head.fulls) == head.request_length == 1


async def test_branch_that_goes_on_has_one_head(journal: Journal) -> None:
    talk = Talk(journal)
    for text in ("one", "two", "three"):
        await talk.say(text)
    heads = (await look(journal, talk.history)).heads
    assert len(heads) == 1
    assert list(heads[0].fulls) == [print_of("acme", raw).full for raw in talk.history]


async def test_parents_head_stays_until_the_answer_is_there(journal: Journal) -> None:
    talk = Talk(journal)
    await talk.say("one")
    asked = record((*talk.history, user("two")), talk.head)
    await journal.write([asked])
    assert len((await look(journal, talk.history)).heads) == 2
    await journal.write(answers=[heard(asked, "fine")])
    assert len((await look(journal, talk.history)).heads) == 1


async def test_edit_and_compaction_leave_the_old_head_beside_the_new(journal: Journal) -> None:
    talk = Talk(journal)
    for text in ("one", "two", "three"):
        await talk.say(text)
    before = talk.head
    assert before is not None
    compacted = record(
        (user("a summary"), *talk.history[-2:], user("four")), before, lost=tuple(before.occurrences[:4])
    )
    await journal.write([compacted])
    await journal.write(answers=[heard(compacted, "went on")])
    heads = (await look(journal, talk.history)).heads
    assert [list(head.lost) for head in heads] == [list(before.occurrences[:4]), []]
    assert list(heads[1].fulls) == list(before.fulls)


async def test_what_a_branch_lost_is_known_until_it_comes_back(journal: Journal) -> None:
    talk = Talk(journal)
    for text in ("one", "two", "three"):
        await talk.say(text)
    assert talk.head is not None
    whole, lost = talk.history, tuple(talk.head.occurrences[:2])
    talk.history = talk.history[2:]
    await talk.say("four", lost=lost)
    await talk.say("five")
    assert tuple(talk.head.lost) == lost
    back = record((whole[0], *talk.history, user("six")), talk.head, kept=((0, lost[0]),), new=())
    await journal.write([replace(back, entries=())])
    assert tuple((await look(journal, [user("five")])).heads[0].lost) == lost[1:]


async def test_no_more_than_sixteen_heads_are_kept_and_eight_are_read(journal: Journal) -> None:
    for n in range(20):
        await journal.write([record((user("same start"), user(f"branch {n}")))])
    heads = (await look(journal, [user("same start")])).heads
    assert [h.turn for h in heads] == sorted((h.turn for h in heads), reverse=True)
    assert len(heads) == 8
    assert len((await look(journal, [user("branch 3")])).links) == 1


async def test_best_linked_conversations_come_first_and_named_ones_always(journal: Journal) -> None:
    common = user("every conversation opens with this")
    for n in range(12):
        asked = record((common, user(f"own {n}")), conversation=f"c-{n}")
        links = (*asked.turn.links, (LinkKind.CLIENT_ID, 1000 + n))
        await journal.write([replace(asked, turn=replace(asked.turn, links=links))])
    prints = tuple(print_of("acme", raw).full for raw in (common, user("own 2")))
    seen = await journal.history_of(Clues("acme", {LinkKind.MESSAGE: prints, LinkKind.CLIENT_ID: (1001,)}))
    found = {head.conversation for head in seen.heads}
    assert {"c-1", "c-2", "c-11", "c-10"} <= found
    assert len(found) == 8
    assert {link.conversation for link in seen.links if link.kind is LinkKind.CLIENT_ID} == {"c-1"}


async def test_a_message_that_opens_thousands_of_conversations_leads_to_the_newest_only(journal: Journal) -> None:
    common = user("every conversation opens with this")
    await journal.write([record((common,), conversation=f"c-{n}") for n in range(100)])
    links = (await look(journal, [common])).links
    assert {link.conversation for link in links} == {f"c-{n}" for n in range(68, 100)}


async def test_one_message_of_its_own_outweighs_what_newer_conversations_share(journal: Journal) -> None:
    common = user("every conversation opens with this")
    await journal.write([record((common, user(f"own {n}")), conversation=f"c-{n}") for n in range(100)])
    heads = (await look(journal, [common, user("own 3")])).heads
    assert "c-3" in {head.conversation for head in heads}


async def test_prints_of_another_kind_are_no_clue(journal: Journal) -> None:
    await journal.write([record(HELLO)])
    seen = await journal.history_of(Clues("acme", {LinkKind.CALL: (print_of("acme", HELLO[1]).full,)}))
    assert seen.links == ()


async def test_side_request_is_journalled_without_head_or_memory(journal: Journal) -> None:
    asked = record((user("Write a title for: hello"),), role=Role.SIDE, links=())
    await journal.write([asked])
    answer = heard(asked, "A fine title")
    await journal.write(answers=[replace(answer, answer=replace(answer.answer, links=((LinkKind.ECHO, 77),)))])
    seen = await journal.history_of(Clues("acme", {LinkKind.ECHO: (77,)}))
    assert [(link.kind, link.role, link.conversation) for link in seen.links] == [(LinkKind.ECHO, Role.SIDE, "c-1")]
    assert seen.heads == ()
    assert await journal.pending() == 0
    assert await journal.request("acme", "c-1") == (user("Write a title for: hello"),)


async def test_writing_twice_writes_once(journal: Journal) -> None:
    asked = record(HELLO)
    answer = heard(asked, "hi")
    for _ in range(2):
        await journal.write([asked, asked])
        await journal.write(answers=[answer, answer])
    stats = await journal.stats()
    assert (stats["turns"], stats["messages"], stats["memories"]) == (1, 3, 2)
    assert len((await look(journal, HELLO)).heads[0].fulls) == 2


async def test_answer_to_a_request_that_was_never_written_is_left_out(journal: Journal) -> None:
    await journal.write(answers=[heard(record(HELLO), "hi")])
    assert (await journal.stats())["messages"] == 0


async def test_equal_messages_share_their_content_and_nothing_else(journal: Journal) -> None:
    await journal.write([record((user("ok"), assistant("sure"), user("ok")))])
    stats = await journal.stats()
    assert (stats["messages"], stats["contents"]) == (3, 2)
    assert await journal.request("acme", "c-1") == (user("ok"), assistant("sure"), user("ok"))


@pytest.mark.parametrize("ending", [e for e in Ending if e not in (Ending.REFUSED, Ending.UNANSWERED)])
async def test_what_was_heard_is_kept_however_it_ended(journal: Journal, ending: Ending) -> None:
    asked = record(HELLO)
    await journal.write([asked])
    await journal.write(answers=[heard(asked, "half an ans", ending)])
    turn = await journal.turn("acme", "c-1", 1)
    assert turn is not None and turn["ending"] == ending
    assert len((await newest(journal, [assistant("half an ans")])).fulls) == 2


async def test_answer_comes_behind_its_request_although_another_went_on(journal: Journal) -> None:
    slow = record(HELLO)
    await journal.write([slow])
    fast = record((*HELLO, user("hurry")), await newest(journal, HELLO))
    await journal.write([fast])
    await journal.write(answers=[heard(fast, "fast")])
    await journal.write(answers=[heard(slow, "slow")])
    heads = (await look(journal, HELLO)).heads
    assert [list(h.fulls)[-1] for h in heads] == [print_of("acme", assistant(a)).full for a in ("fast", "slow")]


# --- blocks ------------------------------------------------------------------------------------------


def block(text: str, *occurrences: int) -> Block:
    return Block(text, BlockKind.RECALL, occurrences, tokens=9)


async def test_blocks_are_replayed_in_order_until_a_restore_sheds_them(journal: Journal) -> None:
    talk = Talk(journal)
    await talk.say("one", block=block("first", 7, 5), anchor=0)
    await talk.say("two")
    asked = await talk.say("three", block=block("second"), anchor=4)
    said = (await newest(journal, talk.history)).blocks
    assert (await journal.head(Continuation("acme", asked.turn.id, 0))).heads[0].blocks == said
    assert [(s.block.text, s.block.occurrences) for s in said] == [("first", (7, 5)), ("second", ())]
    anchored = await journal.messages("acme", [s.occurrence for s in said])
    assert [m.text for m in anchored.values()] == ["one", "three"]
    await talk.say("four", block=block("restored"), anchor=6, replaces_blocks=True)
    assert [s.block.text for s in (await newest(journal, talk.history)).blocks] == ["restored"]


async def test_block_is_read_with_the_facts_that_it_tells_apart_from_what_it_quotes(journal: Journal) -> None:
    talk = Talk(journal)
    told = replace(block("told", 7), facts=(("f-1", 5), ("f-2", 0)))
    await talk.say("one", block=told, anchor=0)
    ((stored,),) = ((await newest(journal, talk.history)).blocks,)
    assert stored.block == told and stored.block.sources == (7, 5)


async def test_block_of_a_refused_request_is_gone_and_what_it_shed_is_back(journal: Journal) -> None:
    talk = Talk(journal)
    await talk.say("one", block=block("first"), anchor=0)
    asked = record((*talk.history, user("two")), talk.head, block=block("restored"), anchor=2, replaces_blocks=True)
    await journal.write([asked])
    await journal.write(answers=[heard(asked, None, Ending.REFUSED)])
    assert [s.block.text for s in (await newest(journal, talk.history)).blocks] == ["first"]


@pytest.mark.parametrize("is_together", [True, False])
async def test_cut_of_a_request_that_was_sent_once_more_is_kept_whenever_its_answer_is_written(
    journal: Journal, is_together: bool
) -> None:
    asked = record(HELLO)
    said = heard(asked, "hi there")
    said = replace(said, answer=replace(said.answer, bare=ResentTurn(7, {}, NewCut(drops=((1, 1),)))))
    if is_together:
        await journal.write([asked], [said])
    else:
        await journal.write([asked])
        await journal.write(answers=[said])
    head = await newest(journal, HELLO)
    assert head.cut.drops == ((head.occurrences[0], head.occurrences[0]),)


# --- refused -----------------------------------------------------------------------------------------


async def test_refused_first_request_leaves_no_tenant_and_no_content(journal: Journal) -> None:
    asked = record(HELLO, explain={"query": "hello"})
    await journal.write([asked])
    await journal.write(answers=[heard(asked, None, Ending.REFUSED)])
    stats = await journal.stats()
    nothing = {"switched_off": [], "models": [], "gaps": None, "facts": None}
    assert stats == dict.fromkeys(stats, 0) | {"bytes": stats["bytes"]} | nothing
    assert (await look(journal, HELLO)).links == ()


async def test_refused_request_leaves_the_conversation_as_it_was(journal: Journal) -> None:
    talk = Talk(journal)
    await talk.say("one")
    before = await look(journal, talk.history)
    counts = await journal.stats()
    asked = record((*talk.history, user("secret plans")), talk.head, explain={"query": "secret plans"})
    await journal.write([asked])
    await journal.write(answers=[heard(asked, None, Ending.REFUSED)])
    assert await look(journal, [*talk.history, user("secret plans")]) == before
    after = await journal.stats()
    assert {**after, "turns": 1, "bytes": 0} == {**counts, "bytes": 0}
    turn = await journal.turn("acme", "c-1", 2)
    assert turn is not None and (turn["ending"], turn["explain"]) == (Ending.REFUSED, {})
    await talk.say("two")
    assert await journal.request("acme", "c-1") == talk.history[:-1]


async def test_text_that_was_there_before_survives_a_refusal(journal: Journal) -> None:
    talk = Talk(journal)
    await talk.say("one")
    again = record((user("one"), user("extra")), conversation="c-2")
    await journal.write([again])
    await journal.write(answers=[heard(again, None, Ending.REFUSED)])
    assert await journal.request("acme", "c-1") == (user("one"),)


async def test_what_another_request_carries_of_a_refused_one_stays_with_it(journal: Journal) -> None:
    talk = Talk(journal)
    await talk.say("one")
    first = record((*talk.history, user("two"), user("never again")), talk.head)
    await journal.write([first])
    second = record((*talk.history, user("two"), user("three")), await newest(journal, [user("two")]))
    await journal.write([second])
    await journal.write(answers=[heard(first, None, Ending.REFUSED)])
    await journal.write(answers=[heard(second, "went on")])
    assert await journal.request("acme", "c-1", 3) == (*talk.history, user("two"), user("three"))
    assert (await look(journal, [user("never again")])).heads[0].turn == (await newest(journal, talk.history)).turn
    assert await journal.request("acme", "c-1", 2) == ()
    third = record((*second_list(talk), assistant("went on"), user("four")), await newest(journal, [user("three")]))
    await journal.write([third])
    assert await journal.request("acme", "c-1") == (*second_list(talk), assistant("went on"), user("four"))


def second_list(talk: Talk) -> tuple[dict[str, object], ...]:
    return (*talk.history, user("two"), user("three"))


async def test_request_without_an_answer_is_what_the_next_one_is_compared_with(journal: Journal) -> None:
    talk = Talk(journal)
    await talk.say("one")
    before = talk.history
    too_long = record((*before, user("two")), talk.head)
    await journal.write([too_long])
    await journal.write(answers=[heard(too_long, None, Ending.UNANSWERED)])
    (head,) = (await look(journal, [*before, user("two")])).heads
    assert list(head.fulls) == [print_of("acme", raw).full for raw in (*before, user("two"))]
    again = record((*before, user("two")), head)
    await journal.write([again])
    await journal.write(answers=[heard(again, "at last")])
    assert (await journal.request("acme", "c-1"))[-1] == user("two")
    (head,) = (await look(journal, [*before, user("two")])).heads
    assert len(head.fulls) == len(before) + 2


async def test_unanswered_tenant_is_known_by_no_other_requests_that_were_not_answered(journal: Journal) -> None:
    for conversation in ("c-1", "c-2"):
        asked = record(HELLO, conversation=conversation)
        await journal.write([asked])
        await journal.write(answers=[heard(asked, None, Ending.UNANSWERED)])
    stats = await journal.stats()
    assert (stats["tenants"], stats["messages"]) == (0, 0)


async def test_both_of_two_requests_on_each_other_can_be_refused(journal: Journal) -> None:
    first = record(HELLO)
    await journal.write([first])
    second = record((*HELLO, user("again")), await newest(journal, HELLO))
    await journal.write([second])
    for asked in (first, second):
        await journal.write(answers=[heard(asked, None, Ending.REFUSED)])
    stats = await journal.stats()
    assert (stats["tenants"], stats["messages"], stats["contents"], stats["memories"]) == (0, 0, 0, 0)


# --- explain, conversations ----------------------------------------------------------------------------


async def test_turns_are_numbered_in_journal_order_and_the_newest_is_the_default(journal: Journal) -> None:
    talk = Talk(journal)
    for n, text in enumerate(("one", "two", "three")):
        await talk.say(text, explain={"n": n})
    turns = [await journal.turn("acme", "c-1", n) for n in (1, 2, 3, None)]
    assert [t and (t["number"], t["turns"], t["explain"]["n"]) for t in turns] == [
        (1, 3, 0),
        (2, 3, 1),
        (3, 3, 2),
        (3, 3, 2),
    ]
    assert [await journal.turn("acme", "c-1", n) for n in (0, 4)] == [None, None]
    assert await journal.turn("other", "c-1", 1) is None
    assert (await journal.turn(None, "c-1", 1) or {})["conversation"] == "c-1"


async def test_a_turn_is_found_by_its_id_and_the_newest_of_all_without_one(journal: Journal) -> None:
    asked = record(HELLO)
    await journal.write([asked, record((user("newer"),), tenant="other", conversation="c-2")])
    found = [await journal.turn_named(tenant, asked.turn.id) for tenant in ("acme", None)]
    assert [turn and (turn["key"], turn["conversation"], turn["number"]) for turn in found] == [
        (asked.turn.id, "c-1", 1),
        (asked.turn.id, "c-1", 1),
    ]
    assert await journal.turn_named("other", asked.turn.id) is None
    newest = [await journal.turn_named(tenant, None) for tenant in ("acme", None, "nobody")]
    assert [turn and turn["conversation"] for turn in newest] == ["c-1", "c-2", None]


async def test_conversation_learns_its_role_and_user_late(journal: Journal) -> None:
    await journal.write([record((user("Title?"),), role=Role.SIDE, links=())])
    await journal.write([record(HELLO, user="ann", scope="shop")])
    await journal.write([record((user("x"),), user="bob")])
    turn = await journal.turn("acme", "c-1", None)
    assert turn is not None and (turn["user"], turn["scope"]) == ("ann", "shop")


# --- tree ------------------------------------------------------------------------------------------------

WORDS = st.sampled_from(["ok", "yes", "no", "why?", "go on", "a longer text that says something"])
STEP = st.tuples(
    st.sampled_from(
        ["append", "append", "append", "edit", "window", "summary", "branch", "system", "shuffle", "refuse"]
    ),
    WORDS,
    st.integers(0, 5),
)


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(STEP, min_size=1, max_size=14))
async def test_every_request_is_rebuilt_as_it_was_sent(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, str, int]]
) -> None:
    database = database_in(tmp_path_factory.mktemp("tree"), "journal.db")
    journal = Journal(database)
    sent: list[tuple[dict[str, object], ...]] = []
    history: tuple[dict[str, object], ...] = (system("start"),)
    try:
        await database.open()
        for does, text, n in steps:
            match does:
                case "edit":
                    history = history[: max(1, len(history) - n)]
                case "window":
                    history = (*history[:1], *history[1:][-n - 1 :])
                case "summary":
                    history = (*history[:1], user(f"summary: {text}"), *history[1:][-n:])
                case "branch":
                    history = sent[n % len(sent)] if sent else history
                case "system":
                    history = (system(text), *history[1:])
                case "shuffle":
                    history = (*history[:1], *reversed(history[1:]))
            history = (*history, user(text))
            heads = (await look(journal, history[1:])).heads
            fulls = {print_of("acme", raw).full for raw in history}
            head = max(heads, key=lambda h: (len(fulls & set(h.fulls)), h.turn), default=None)
            asked = record(history, head)
            await journal.write([asked])
            if does == "refuse":
                await journal.write(answers=[heard(asked, None, Ending.REFUSED)])
                history = history[:-1]
                continue
            sent.append(history)
            await journal.write(answers=[heard(asked, f"answer to {text}")])
            history = (*history, assistant(f"answer to {text}"))
        turns = (await journal.turn("acme", "c-1", None) or {"turns": 0})["turns"]
        rebuilt = [await journal.request("acme", "c-1", n + 1) for n in range(turns)]
        assert [r for r in rebuilt if r] == sent
    finally:
        await database.close()


async def test_a_parent_whose_head_is_gone_can_still_be_continued(journal: Journal) -> None:
    talk = Talk(journal)
    await talk.say("one")
    old, past = talk.head, talk.history
    for text in ("two", "three"):
        await talk.say(text)
    asked = record((*past, user("other way")), old)
    await journal.write([asked])
    assert await journal.request("acme", "c-1") == (*past, user("other way"))
    assert list((await newest(journal, [user("other way")])).fulls)[:2] == [print_of("acme", raw).full for raw in past]


# --- tenants -------------------------------------------------------------------------------------------------

EXCHANGE = st.tuples(
    st.sampled_from(["acme", "umbrella"]), st.sampled_from(["hello", "ok", "the code is 4471"]), st.booleans()
)


@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(said=st.lists(EXCHANGE, max_size=12))
async def test_two_tenants_with_the_same_words_and_ids_never_meet(
    tmp_path_factory: pytest.TempPathFactory, said: list[tuple[str, str, bool]]
) -> None:
    """Each tenant's journal is what it would be if it were alone."""
    folder = tmp_path_factory.mktemp("tenants")
    together, *alone = (database_in(folder, f"{name}.db") for name in ("both", "acme", "umbrella"))
    try:
        for database in (together, *alone):
            await database.open()
        shared = {name: Talk(Journal(together), name) for name in ("acme", "umbrella")}
        own = {name: Talk(Journal(db), name) for name, db in zip(("acme", "umbrella"), alone, strict=True)}
        for tenant, text, fresh in said:
            for talk in (shared[tenant], own[tenant]):
                if fresh:
                    talk.history, talk.head = (), None
                await talk.say(text)
        for tenant in ("acme", "umbrella"):
            views = []
            for talk in (shared[tenant], own[tenant]):
                seen = await look(talk.journal, [user(text) for _, text, _ in said], tenant)
                requests = []
                for n in range(1, 13):
                    requests.append(await Journal.request(talk.journal, tenant, "c-1", n))  # type: ignore[arg-type]
                views.append(([list(h.fulls) for h in seen.heads], len(seen.links), requests))
            assert views[0] == views[1]
    finally:
        for database in (together, *alone):
            await database.close()


async def test_occurrences_of_another_tenant_cannot_be_kept_or_read(journal: Journal) -> None:
    talk = Talk(journal)
    await talk.say("the code is 4471")
    assert talk.head is not None
    stolen = talk.head.occurrences[0]
    thief = record((user("mine"),), tenant="umbrella", conversation="c-9", parent_turn=talk.head.turn)
    await journal.write([replace(thief, turn=replace(thief.turn, kept=((1, stolen),)))])
    assert await journal.request("umbrella", "c-9") == (user("mine"),)
    assert await journal.messages("umbrella", [stolen]) == {}
    assert list((await newest(journal, [user("mine")], "umbrella")).fulls) == [print_of("umbrella", user("mine")).full]


async def test_flags_and_time_are_kept(journal: Journal) -> None:
    asked = record((user("a summary"),))
    flagged = replace(asked.entries[0], new=replace(asked.entries[0].new, flags=HeadFlag.USER | HeadFlag.SUMMARY))
    await journal.write([replace(asked, entries=(flagged,))])
    assert list((await newest(journal, [user("a summary")])).flags) == [HeadFlag.USER | HeadFlag.SUMMARY]
    assert (await journal.turn("acme", "c-1", 1) or {})["created_at"] == NOW


async def test_occurrences_of_a_conversation_are_its_tenants_alone(journal: Journal) -> None:
    mine, other = Talk(journal), Talk(journal, tenant="beta", conversation="c-2")
    await mine.say("one")
    await mine.say("two")
    await other.say("one")
    assert len(await journal.occurrences("acme", "c-1")) == 4
    assert await journal.occurrences("beta", "c-1") == frozenset()


async def test_conversations_of_another_user_are_no_continuation_and_those_of_nobody_are(journal: Journal) -> None:
    for conversation, name in (("c-1", "ann"), ("c-2", "bob"), ("c-3", "")):
        asked = record(HELLO, conversation=conversation, user=name)
        await journal.write([asked], [heard(asked, "hi there")])
    fingerprint = print_of("acme", user("hello")).full

    async def linked(name: str) -> set[str]:
        seen = await journal.history_of(Clues("acme", {LinkKind.MESSAGE: (fingerprint,)}, name))
        assert {head.conversation for head in seen.heads} == {link.conversation for link in seen.links}
        return {link.conversation for link in seen.links}

    assert await linked("ann") == {"c-1", "c-3"}
    assert await linked("bob") == {"c-2", "c-3"}
    assert await linked("") == {"c-3"}


async def test_whose_key_is_for_some_continues_nothing_of_others(journal: Journal) -> None:
    for conversation, name, scope in (("c-1", "ann", "lab"), ("c-2", "bob", "web"), ("c-3", "", "")):
        asked = record(HELLO, conversation=conversation, user=name, scope=scope)
        await journal.write([asked], [heard(asked, "hi there")])
    fingerprint = print_of("acme", user("hello")).full

    async def linked(name: str, *, is_of_users: bool, scope: str | None, is_of_scopes: bool = True) -> set[str]:
        whose = name, is_of_users, scope, is_of_scopes
        seen = await journal.history_of(Clues("acme", {LinkKind.MESSAGE: (fingerprint,)}, *whose))
        assert {head.conversation for head in seen.heads} == {link.conversation for link in seen.links}
        return {link.conversation for link in seen.links}

    assert await linked("ann", is_of_users=True, scope=None) == {"c-1"}
    assert await linked("", is_of_users=True, scope=None) == {"c-3"}
    assert await linked("ann", is_of_users=True, scope="web") == set()
    assert await linked("bob", is_of_users=False, scope="web") == {"c-2"}
    assert await linked("ann", is_of_users=False, scope="") == {"c-3"}
    assert await linked("ann", is_of_users=False, scope="lab", is_of_scopes=False) == {"c-1", "c-3"}
