from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import pytest
from palimpsest.domain import Event, HeadFlag, Json, Plan, Reach, Teller
from palimpsest.domain.errors import MemoryFault
from palimpsest.memory.index.passage_tables import PassageTables
from palimpsest.memory.recall.recall import CLEARED_SECONDS, Recall
from palimpsest.store.engine import Ask
from palimpsest.store.turns.cleared import mark_cleared

from tests.memory.recall.asking import FESTIVAL, LEAST_HELP, TALK, Counts, ask, choosing, recalling, texts
from tests.remembered import Past, Watched, WordEmbedder
from tests.talking import NOW, Talk, heard, print_of, record, user

T = TypeVar("T")


async def test_what_was_lost_and_is_asked_for_comes_first(recall: Recall, lost: frozenset[int]) -> None:
    recalled = await recall.recall(ask(FESTIVAL, lost), 10)
    assert (
        recalled.admitted
        and not recalled.lexical_only
        and recalled.reason.startswith("helps with a probability of ")
        and recalled.helps > 0.9
    )
    assert texts(recalled)[0] == TALK[0]
    memory = recalled.candidates[0].memory
    assert (memory.conversation, memory.role, memory.created_at) == ("c-1", "user", NOW)
    assert (memory.start, memory.stop) == (0, len(TALK[0]))


async def test_a_question_that_is_expected_is_embedded_before_it_is_asked(
    recall: Recall, embedder: WordEmbedder
) -> None:
    recall.expect(FESTIVAL)
    await asyncio.sleep(0)
    assert embedder.asked[0] == FESTIVAL
    embedder.ready = False
    recall.expect("Which planets have rings?")
    await asyncio.sleep(0)
    assert "Which planets have rings?" not in embedder.asked


async def test_what_has_no_vector_yet_is_found_by_words_as_if_there_were_no_model(recall: Recall, past: Past) -> None:
    said = frozenset(await past.say("The archive room is number 3172.", "Then we went through every single shelf."))
    recalled = await recall.recall(ask("Where is the archive room?", said), 10)
    assert recalled.admitted and texts(recalled)[0] == "The archive room is number 3172."


async def test_a_model_that_is_being_loaded_is_waited_for(
    past: Past, embedder: WordEmbedder, counts: Counts, lost: frozenset[int]
) -> None:
    async def loaded() -> bool:
        embedder.ready = True
        return True

    embedder.ready = False
    recall = Recall(
        past.database,
        PassageTables(embedder.name, embedder.dimensions),
        embedder,
        counts,
        lambda: NOW,
        model_loaded=loaded,
    )
    assert not (await recall.recall(ask(FESTIVAL, lost), 10)).lexical_only


async def test_a_short_question_is_embedded_with_and_without_its_names_and_a_longer_one_once(
    recall: Recall, embedder: WordEmbedder, lost: frozenset[int]
) -> None:
    named, longer = "What does Clara play?", "Then Clara said: no heating.\n" * 5
    for text in (named, longer):
        await recall.recall(ask(text, lost), 10)
    assert embedder.asked == [named, "What does  play?", longer]


async def test_unrelated_question_gets_nothing(recall: Recall, lost: frozenset[int]) -> None:
    for text in ("Write a haiku about autumn leaves.", "ok, go on", "", "Which planets have rings?"):
        recalled = await recall.recall(ask(text, lost, least_help=LEAST_HELP), 10)
        assert not recalled.admitted and recalled.candidates == () and recalled.reason


async def test_nothing_that_was_not_lost_comes_back(recall: Recall, past: Past, lost: frozenset[int]) -> None:
    first = min(lost)
    recalled = await recall.recall(ask(FESTIVAL, frozenset({first})), 10)
    assert texts(recalled) == [TALK[0]]
    others = ask(FESTIVAL, lost - {first}, excluded=frozenset(), least_help=LEAST_HELP)
    assert not (await recall.recall(others, 10)).admitted
    assert not (await recall.recall(ask(FESTIVAL, frozenset()), 10)).admitted


async def test_an_operator_searches_all_of_a_conversation(recall: Recall, lost: frozenset[int]) -> None:
    assert texts(await recall.recall(ask(FESTIVAL), 10))[0] == TALK[0]


async def test_what_a_replayed_block_carries_does_not_come_again(recall: Recall, lost: frozenset[int]) -> None:
    recalled = await recall.recall(ask(FESTIVAL, lost, excluded=frozenset({min(lost)})), 10)
    assert TALK[0] not in texts(recalled)


async def test_what_a_visible_message_quotes_whole_does_not_come(recall: Recall, lost: frozenset[int]) -> None:
    whole = await recall.recall(ask(FESTIVAL, lost, seen=("He asked about the festival.",)), 10)
    assert texts(whole)[0] == TALK[0]
    quoted = await recall.recall(ask(FESTIVAL, lost, seen=(f"The user said: {TALK[0]} Go on.",)), 10)
    assert texts(quoted) == texts(whole)[1:]
    cut = await recall.recall(ask(FESTIVAL, lost, seen=(f"The user said: {TALK[0][:-8]}... Go on.",)), 10)
    assert texts(cut) == texts(whole), "its end is not visible"


async def test_what_the_model_still_sees_does_not_come_even_from_elsewhere(recall: Recall, past: Past) -> None:
    await past.say(TALK[0], conversation="c-2", user="lena")
    await past.say("Hello.", conversation="c-1", user="lena")
    await past.index()
    visible = frozenset({print_of("acme", user(TALK[0])).full})
    query = ask(FESTIVAL, frozenset(), reach=Reach.USER, user="lena")
    assert texts(await recall.recall(query, 10)) == [TALK[0]]
    seen = ask(FESTIVAL, frozenset(), reach=Reach.USER, user="lena", visible_fulls=visible)
    assert (await recall.recall(seen, 10)).candidates == ()


async def test_a_first_message_that_is_sent_again_does_not_bring_the_answer_that_it_got(
    recall: Recall, past: Past
) -> None:
    answered = "The harvest festival in Lisbon begins on 3 October."
    await past.say(FESTIVAL, answered, conversation="c-2", user="lena")
    await past.say("Hello.", conversation="c-1", user="lena")
    await past.index()
    other = ask(FESTIVAL, frozenset(), reach=Reach.USER, user="lena", visible_fulls=frozenset({7}))
    assert answered in texts(await recall.recall(other, 10))
    again = replace(other, visible_fulls=frozenset({print_of("acme", user(FESTIVAL)).full}))
    assert texts(await recall.recall(again, 10)) == []


async def test_of_answers_that_were_made_again_only_the_last_comes_unless_the_talk_went_on_from_another(
    recall: Recall, past: Past
) -> None:
    journal = past.journal
    first, second = "The harvest festival in Lisbon begins on 3 May.", "The harvest festival in Lisbon begins on 8 May."
    talk = Talk(journal, conversation="c-2")
    await talk.say(FESTIVAL, first)
    on_first = talk.head
    again = record([user(FESTIVAL)], on_first, conversation="c-2", event=Event.RETRY)
    await journal.write([again])
    other = ask("harvest festival in Lisbon", reach=Reach.TENANT)

    async def told() -> set[str]:
        await past.index()
        return {first, second}.intersection(texts(await recall.recall(other, 10)))

    assert await told() == {first}, "the other attempt has no answer yet"
    await journal.write(answers=[heard(again, second)])
    assert await told() == {second}
    await talk.say("Then we travel on 2 May.")
    assert await told() == {first, second}


@pytest.mark.parametrize("query", [FESTIVAL, ""], ids=["asked", "nobody asks"])
async def test_a_memory_knows_what_it_follows_in_its_conversation(recall: Recall, past: Past, query: str) -> None:
    first, second = await past.say(*TALK[:2])
    await past.say("Meanwhile elsewhere.", conversation="c-2")
    (third,) = await past.say(TALK[2])
    await past.index()
    found = (await recall.recall(ask(query, named=None if query else frozenset()), 10)).candidates
    follows = {candidate.memory.occurrence: candidate.memory.follows for candidate in found}
    assert {first: 0, second: first, third: second}.items() >= follows.items() and follows[third] == second


async def test_the_same_message_comes_once_wherever_it_was_said(recall: Recall, past: Past) -> None:
    for conversation in ("c-1", "c-2", "c-3"):
        await past.say(TALK[0], conversation=conversation)
    await past.index()
    recalled = await recall.recall(ask(FESTIVAL, reach=Reach.TENANT), 10)
    assert texts(recalled) == [TALK[0]]


async def test_windows_of_one_long_message_may_come_together(recall: Recall, past: Past) -> None:
    long = "The harvest festival in Lisbon begins in May. " * 60
    await past.say(long)
    await past.index()
    found = (await recall.recall(ask(FESTIVAL), 10)).candidates
    assert len(found) > 1 and {candidate.memory.occurrence for candidate in found} == {found[0].memory.occurrence}
    assert all(c.memory.text == long[c.memory.start : c.memory.stop] for c in found)


async def test_who_is_named_may_not_drown_what_is_asked(recall: Recall, past: Past) -> None:
    about = "The violin hangs on the wall."
    named = "Clara met Clara, and Clara met Clara, and Clara met Clara on the wall."
    await past.say(named, *TALK[:1], about)
    await past.index()
    order = texts(await recall.recall(ask("Where does the violin of Clara hang on?"), 10))
    assert order.index(about) < order.index(named)


async def test_memory_helps_less_with_a_question_about_nobody_known(recall: Recall, lost: frozenset[int]) -> None:
    known = "Where does the sister play?"
    friend = await recall.recall(ask(known, lost), 10)
    stranger = await recall.recall(ask("Where does the sister of Bartholomew play?", lost), 10)
    assert stranger.helps < friend.helps


async def test_a_date_that_no_text_holds_makes_no_question_strange(recall: Recall, lost: frozenset[int]) -> None:
    dated, stranger = "on a Tuesday of November 2023?", "on the boat of Bartholomew?"
    helps = [
        (await recall.recall(ask(f"Where does the sister play {end}", lost), 10)).helps for end in (dated, stranger)
    ]
    assert helps[0] > helps[1]


async def test_neighbours_of_a_hit_come_with_it(recall: Recall, lost: frozenset[int]) -> None:
    order = texts(await recall.recall(ask(FESTIVAL, lost), 10))
    assert order.index(TALK[1]) < order.index(TALK[4])


async def test_an_exact_identifier_is_found(recall: Recall, lost: frozenset[int]) -> None:
    recalled = await recall.recall(ask("status of proj-4711?", lost), 10)
    assert recalled.helps > 0.9 and texts(recalled)[0] == TALK[6]


async def test_without_a_model_recall_goes_by_words_and_says_so(
    recall: Recall, embedder: WordEmbedder, lost: frozenset[int]
) -> None:
    embedder.ready = False
    recalled = await recall.recall(ask("harvest festival Lisbon", lost), 10)
    assert recalled.lexical_only and texts(recalled)[0] == TALK[0]
    assert embedder.asked == []
    unrelated = await recall.recall(ask("Which planets have rings?", lost), 10)
    assert unrelated.lexical_only and not unrelated.admitted


async def test_a_model_that_fails_is_counted_and_recall_goes_by_words(
    recall: Recall, embedder: WordEmbedder, counts: Counts, lost: frozenset[int]
) -> None:
    embedder.fault = "embedding a question: out of memory"
    recalled = await recall.recall(ask("harvest festival Lisbon", lost), 10)
    assert recalled.lexical_only and texts(recalled)[0] == TALK[0] and counts.faults == ["embed_query"]


async def test_what_has_no_vector_yet_is_found_by_words(recall: Recall, past: Past, lost: frozenset[int]) -> None:
    fresh = await past.say("The zeppelin museum closes on Monday.")
    recalled = await recall.recall(ask("zeppelin museum closes Monday", lost | {*fresh}), 10)
    assert texts(recalled)[0] == "The zeppelin museum closes on Monday."


async def test_what_has_no_vector_yet_stands_behind_none_for_that(
    recall: Recall, past: Past, lost: frozenset[int]
) -> None:
    fresh = await past.say("The zeppelin museum closes on Monday.", conversation="c-2")
    recalled = await recall.recall(ask(FESTIVAL + " zeppelin", None, reach=Reach.TENANT), 100)
    meaning = {candidate.memory.occurrence: candidate.signals["meaning"][1] for candidate in recalled.candidates}
    assert min(meaning.values()) < meaning[fresh[0]] < max(meaning.values())


async def test_signals_say_how_each_list_placed_it(recall: Recall, lost: frozenset[int]) -> None:
    best, *others = (await recall.recall(ask(FESTIVAL, lost), 10)).candidates
    assert best.signals["words"][0] == best.signals["meaning"][0] == 1
    assert best.signals["words"][1] > max(other.signals["words"][1] for other in others)


async def test_limit_is_kept_and_every_recall_is_timed(recall: Recall, counts: Counts, lost: frozenset[int]) -> None:
    recalled = await recall.recall(ask(FESTIVAL, lost), 3)
    assert len(recalled.candidates) == 3 and recalled.elapsed_ms > 0 and counts.observed == ["recall"]


async def test_same_question_same_answer(recall: Recall, lost: frozenset[int]) -> None:
    first, again = [await recall.recall(ask(FESTIVAL, lost), 10) for _ in range(2)]
    assert first.candidates == again.candidates and first.reason == again.reason


async def test_both_fusions_find_it(past: Past, embedder: WordEmbedder, counts: Counts, lost: frozenset[int]) -> None:
    for fusion in ("minmax", "rrf"):
        recall = recalling(past.database, embedder, counts, fusion=fusion)
        assert texts(await recall.recall(ask(FESTIVAL, lost), 10))[0] == TALK[0]


async def test_nobodys_tenant_and_an_unknown_conversation_have_no_memory(recall: Recall, lost: frozenset[int]) -> None:
    for query in (ask(FESTIVAL, lost, tenant="stranger"), ask(FESTIVAL, lost, conversation="c-9")):
        recalled = await recall.recall(query, 10)
        assert not recalled.admitted and recalled.candidates == ()


async def test_other_tenants_are_never_searched(recall: Recall, past: Past) -> None:
    await past.say(*TALK, tenant="other")
    await past.say("Hello.")
    await past.index()
    for reach in Reach:
        recalled = await recall.recall(ask(FESTIVAL, reach=reach, user="lena"), 10)
        assert recalled.candidates == ()


async def test_a_larger_scope_has_the_same_answer(recall: Recall, past: Past, lost: frozenset[int]) -> None:
    small = await recall.recall(ask(FESTIVAL, lost), 5)
    more = await past.say(*(f"Filler text number {n} about weather." for n in range(3000)))
    large = await recall.recall(ask(FESTIVAL, lost | {*more}), 5)
    assert large.candidates[0].memory == small.candidates[0].memory


@pytest.mark.parametrize("where", ["FROM tenant", "FROM memory", "passages_holding", "JOIN vector", "JOIN content"])
async def test_what_cannot_be_read_is_a_fault_and_not_nothing(
    past: Past, embedder: WordEmbedder, counts: Counts, lost: frozenset[int], where: str
) -> None:
    watched = Watched(past.database)
    watched.fault = where
    with pytest.raises(MemoryFault):
        await recalling(watched, embedder, counts).recall(ask(FESTIVAL, lost), 10)


async def test_a_deadline_cuts_it_short_and_the_next_question_is_answered(
    past: Past, embedder: WordEmbedder, counts: Counts, lost: frozenset[int]
) -> None:
    class Slow(Watched):
        is_slow = True

        async def ask(self, work: Callable[[Ask], T], tenant: str = "") -> T:
            def slowly(ask: Ask) -> T:
                if self.is_slow:
                    ask("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n")
                return work(ask)

            return await super().ask(slowly, tenant)

    slow = Slow(past.database)
    recall = recalling(slow, embedder, counts)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await recall.recall(ask(FESTIVAL, lost), 10)
    slow.is_slow = False
    assert texts(await recall.recall(ask(FESTIVAL, lost), 10))[0] == TALK[0]


async def test_where_nobody_asks_what_was_lost_comes_by_what_it_names(recall: Recall, lost: frozenset[int]) -> None:
    recalled = await recall.recall(ask("", lost, named=frozenset()), 10)
    assert recalled.admitted
    assert texts(recalled)[0] == TALK[6], "the ticket is all that is named"
    assert set(texts(recalled)) == {TALK[0], TALK[2], TALK[4], TALK[6]}, "what was told; no question, no assent"
    again = await recall.recall(ask("", lost, named=frozenset({"proj-4711"})), 10)
    scores = [
        {candidate.memory.text: candidate.score for candidate in one.candidates}[TALK[6]] for one in (recalled, again)
    ]
    assert scores[1] < scores[0], "the summary names it already"


async def test_where_nobody_asks_only_what_this_conversation_lost_comes(
    recall: Recall, past: Past, lost: frozenset[int]
) -> None:
    await past.say("Deploy PROJ-9999 with deploy.yaml.", conversation="c-2")
    visible = frozenset({print_of("acme", user(TALK[0])).full})
    query = ask("", lost - {max(lost)}, named=frozenset(), excluded=frozenset({min(lost) + 2}), visible_fulls=visible)
    assert set(texts(await recall.recall(query, 10))) == {TALK[4], TALK[6]}
    assert len((await recall.recall(query, 2)).candidates) == 2
    assert not (await recall.recall(ask("", frozenset(), named=frozenset()), 10)).admitted


async def test_what_still_stands_names_for_what_was_lost(recall: Recall, past: Past) -> None:
    ticket, _, _, other = await past.say("Take PROJ-4711.", "Done.", "PROJ-4711 is shut.", "Then PROJ-4712.")
    visible = frozenset({print_of("acme", user("PROJ-4711 is shut.")).full})
    query = ask("", frozenset({ticket, other}), named=frozenset(), visible_fulls=visible)
    assert texts(await recall.recall(query, 1)) == ["Then PROJ-4712."]


async def test_where_nobody_asks_no_model_is_needed(
    recall: Recall, lost: frozenset[int], embedder: WordEmbedder
) -> None:
    embedder.fault = "the model is gone"
    assert (await recall.recall(ask("", lost, named=frozenset()), 10)).admitted


EDITED = "src/a.py\n```\n<<<<<<< SEARCH\nold_name\n=======\nnew_name\n>>>>>>> REPLACE\n```"


async def test_beside_an_account_of_work_comes_what_people_typed_newest_first(recall: Recall, past: Past) -> None:
    first, newest = "Please keep the old names in the interface.", "Take the second of the two designs."
    pasted = "The log says that the worker was restarted. " * 40
    said = await past.say(
        first,
        EDITED,
        newest,
        "I did.",
        "Yes, do that.",
        "Done.",
        pasted,
        "I see.",
        "[Request interrupted by user for tool use]",
        "I stop.",
    )
    recalled = await recall.recall(ask("", frozenset(said), named=frozenset(), account_chars=1000), 10)
    assert recalled.account is not None and texts(recalled) == [newest, first]


async def test_a_request_too_long_to_be_quoted_is_told_by_its_beginning_and_end_where_nobody_asks_since(
    recall: Recall, past: Past
) -> None:
    request = f"Make the parser faster. {'It takes long for empty lines. ' * 40}Change no interface."
    said = await past.say(request, EDITED)
    query = ask("", frozenset(said), named=frozenset(), account_chars=2000)
    account = (await recall.recall(query, 10)).account
    assert account is not None and account.lines[0].label == "asked" and account.lines[0].occurrences == said[:1]
    assert account.lines[0].text.startswith("Make the parser faster. It takes") and len(account.lines[0].text) < 900
    assert account.lines[0].text.endswith("lines. Change no interface.")
    beginning, _, end = account.lines[0].text.partition(" … ")
    assert f" {beginning.split()[-1]} " in request and f" {end.split()[0]} " in request, "no word is cut"
    also = await past.say(second := "Take the second of the two designs.", "I did.")
    asked = await past.say("<command-name>/model</command-name>", "Fine.", conversation="c-1")
    for one, is_told in (
        (replace(query, text="How?", named=None), False),
        (replace(query, account_chars=1000), False),
        (replace(query, lost=query.lost | {*also}), False),
        (replace(query, lost=query.lost | {*asked}), True),
        (replace(query, excluded=frozenset(said[:1])), False),
        (replace(query, visible_fulls=frozenset({print_of("acme", user(second)).full})), False),
    ):
        account = (await recall.recall(one, 10)).account
        assert account is not None and (account.lines[0].label == "asked") is is_told


async def test_of_a_request_is_told_what_a_person_typed(recall: Recall, past: Past) -> None:
    request = f"Make the parser faster. {'It takes long for empty lines. ' * 40}Change no interface."
    named = "<command-message>review</command-message>\n<command-name>/review</command-name>"
    context = f"## Context\n{'modified: a.py ' * 60}"
    for typed, begins, ends in (
        (f"{named}\n<command-args>150</command-args>{context}", "/review 150", "/review 150"),
        (f"<system-reminder>{context}</system-reminder>{request}", "Make the parser", "Change no interface."),
        (f"{request}{'diff ' * 2000}", "Make the parser", " …"),
    ):
        said = await past.say(
            typed, EDITED, f"<task-notification>{'It has ended. ' * 60}", "Fine.", conversation=begins
        )
        query = ask("", frozenset(said), named=frozenset(), account_chars=2000, conversation=begins)
        account = (await recall.recall(query, 10)).account
        assert account is not None and account.lines[0].label == "asked" and account.lines[0].occurrences == said[:1]
        assert account.lines[0].text.startswith(begins) and account.lines[0].text.endswith(ends)


@pytest.mark.parametrize("flag", [HeadFlag.ASIDE, HeadFlag.SUMMARY], ids=["aside", "summary"])
async def test_what_a_client_wrote_in_a_users_place_is_nobodys_request(recall: Recall, past: Past, flag: int) -> None:
    request = f"Make the parser faster. {'It takes long for empty lines. ' * 40}Change no interface."
    said = await past.say(request, EDITED, f"This goes on. {'We spoke of a `lexer_pool`. ' * 40}", "Fine.")
    await past.database.write([("UPDATE occurrence SET flags = ? WHERE id = ?", [(flag, said[2])])])
    query = ask("", frozenset(said), named=frozenset(), account_chars=2000)
    account = (await recall.recall(query, 10)).account
    assert account is not None and account.lines[0].label == "asked" and account.lines[0].occurrences == said[:1]
    assert [line.label for line in account.lines if "lexer_pool" in line.text] == ["client"]


REVIEW = f"{EDITED}\n\n1. Rename the parser.\n2. Test empty lines.\n3. Drop the cache."


async def test_items_that_a_request_names_by_numbers_are_told_from_the_list_that_was_lost(
    recall: Recall, past: Past
) -> None:
    *said, _, _ = await past.say("Review it.", "1. Old\n2. Older\n3. Oldest", "More.", REVIEW, "Do 2 and 3.", "Yes.")
    query = ask("Do 2 and 3.", frozenset(said), account_chars=1000)
    in_loop = replace(
        query, text="", named=frozenset(), visible_fulls=frozenset({print_of("acme", user(query.text)).full})
    )
    for one in (query, in_loop):
        account = (await recall.recall(one, 10)).account
        assert account is not None and account.lines[0].label == "listed"
        assert account.lines[0].text == "2. Test empty lines.\n3. Drop the cache."
        assert account.lines[0].occurrences == (said[3],)
    for one in (
        replace(query, text="Do 2 and 4."),
        replace(query, text="How?"),
        replace(query, seen=("2. Test empty lines.\n3. Drop the cache.",)),
        replace(query, account_chars=80),
    ):
        account = (await recall.recall(one, 10)).account
        assert account is not None and "listed" not in [line.label for line in account.lines]


async def test_of_requests_that_ask_for_the_same_beside_an_account_the_newest_comes(recall: Recall, past: Past) -> None:
    asked = "Please make the parser accept empty lines", "Please make the parser accept the empty lines now"
    other = "Please make the parser accept empty lines in b.py"
    said = await past.say(asked[0], EDITED, asked[1], "I did.", other, "Done.")
    recalled = await recall.recall(ask("", frozenset(said), named=frozenset(), account_chars=1000), 10)
    assert texts(recalled) == [other, asked[1]]


async def test_edits_in_a_talk_are_work_whoever_asks_and_a_talk_without_is_none(recall: Recall, past: Past) -> None:
    work = await past.say("Rename it.", EDITED, "Thanks, that works.", "Good.")
    asked = await recall.recall(ask("How is it named now?", frozenset(work), account_chars=1000), 10)
    assert asked.account is not None and [line.text for line in asked.account.lines][:1] == ["src/a.py"]
    talk = await past.say("I read a.py and b.py and c.py.", "Which of them do you like?", conversation="c-2")
    asked = await recall.recall(ask("Which files?", frozenset(talk), conversation="c-2", account_chars=1000), 10)
    assert asked.account is None


@pytest.mark.parametrize(("again", "is_work"), [("That is all.", False), ("So a.py and b.py stay.", True)])
async def test_a_talk_is_about_work_where_it_comes_back_to_files(
    recall: Recall, past: Past, again: str, is_work: bool
) -> None:
    talk = await past.say("How do I split it?", "Put the first half into a.py and the rest into b.py.", "Fine.", again)
    for query in (ask("Go on.", frozenset(talk), named=frozenset()), ask("What is in the first?", frozenset(talk))):
        recalled = await recall.recall(replace(query, account_chars=1000), 10)
        assert (recalled.account is not None) is is_work


async def test_a_command_that_printed_nothing_has_passed_and_the_next_result_is_not_its_own(
    recall: Recall, past: Past
) -> None:
    runs = ("tsc --noEmit", "pnpm vitest run")
    calls = [
        {"id": run, "type": "function", "function": {"name": "Bash", "arguments": json.dumps({"command": run})}}
        for run in runs
    ]
    said: list[Json] = [{"role": "assistant", "content": None, "tool_calls": calls}]
    said += [{"role": "tool", "tool_call_id": runs[0], "content": ""}]
    said += [{"role": "tool", "tool_call_id": runs[1], "content": "2 failed"}]
    await past.journal.write([record([user("Check it."), *said])])
    query = ask("", frozenset(range(100)), named=frozenset(), account_chars=1000)
    account = (await recall.recall(query, 10)).account
    assert account is not None
    assert {line.label: line.text for line in account.lines} == {"failed": f"{runs[1]}: 2 failed", "ran": runs[0]}


async def test_results_that_come_in_the_name_of_the_user_are_work(recall: Recall, past: Past) -> None:
    turns = [(f"Fixed src/part_{at}.py\nbash-$", f"Now I run src/part_{at + 1}.py.") for at in range(5)]
    work = await past.say(*(text for turn in turns for text in turn))
    asked = await recall.recall(ask("What is in part_2?", frozenset(work), account_chars=1000), 10)
    assert asked.account is not None and not asked.account.is_talk


# --- plans -------------------------------------------------------------------------------------------


async def test_what_a_plan_asks_besides_comes_in_turn_with_what_is_asked(recall: Recall, lost: frozenset[int]) -> None:
    alone = await recall.recall(ask(FESTIVAL, lost), 10)
    plan = Plan(("Which ticket is about the roof?",))
    both = await recall.recall(ask(FESTIVAL, lost, plan=plan), 10)
    assert TALK[6] not in texts(alone)[:2]
    assert texts(both)[:2] == [TALK[0], TALK[6]] and len(texts(both)) == len(set(texts(both)))
    assert both.helps == alone.helps


async def test_a_plan_opens_no_gate_for_a_question_that_memory_does_not_help(
    recall: Recall, lost: frozenset[int]
) -> None:
    unknown = "Which planets have rings?"
    plan = Plan((FESTIVAL,), ((0.0, NOW + 1),), Teller.USER)
    query = ask(unknown, lost, least_help=LEAST_HELP)
    without, planned = [await recall.recall(one, 10) for one in (query, replace(query, plan=plan))]
    assert not without.admitted and not planned.admitted
    assert planned.helps == without.helps


async def test_a_plan_brings_up_nothing_that_the_query_may_not_see(past: Past, recall: Recall) -> None:
    said = await past.say(*TALK)
    await past.index()
    query = ask(FESTIVAL, frozenset(said[:2]), plan=Plan(("The ticket about the roof", "Clara plays the violin")))
    assert set(texts(await recall.recall(query, 10))) <= set(TALK[:2])
    other = replace(query, tenant="other")
    assert (await recall.recall(other, 10)).candidates == ()


async def test_what_was_told_when_the_plan_means_is_more_probable(recall: Recall, lost: frozenset[int]) -> None:
    plain = await recall.recall(ask(FESTIVAL, lost), 10)
    planned = await recall.recall(ask(FESTIVAL, lost, plan=Plan((), ((NOW - 1, NOW + 1),))), 10)
    assert texts(planned) == texts(plain) and planned.helps == plain.helps
    pairs = zip(plain.candidates, planned.candidates, strict=True)
    assert all(one.probability < other.probability for one, other in pairs)


async def test_a_small_loss_comes_whole_where_the_gate_is_shut(recall: Recall, past: Past) -> None:
    told = ("My kidneys work at 58 percent only.", "It is a rule of thumb.", "Thanks!", "Our trip begins in Porto.")
    lost = frozenset(await past.say(*told))
    await past.index()
    query = ask("What do I pack for our trip to Porto?", lost, least_help=1.1)
    assert texts(await recall.recall(query, 10)) == []
    whole = await recall.recall(replace(query, whole_chars=1500), 10)
    assert whole.admitted and texts(whole) == [told[0], told[1], told[3]]  # thanks tell nothing
    assert texts(await recall.recall(replace(query, whole_chars=20), 10)) == []


async def test_a_small_loss_is_of_this_conversation_alone(recall: Recall, past: Past) -> None:
    lost = frozenset(await past.say("My kidneys work at 58 percent only.", "It is a rule of thumb."))
    await past.say("My cousin has weak kidneys, too.", "Nice.", conversation="c-2")
    await past.index()
    query = ask("What is good for my kidneys?", lost, least_help=1.1, whole_chars=1500, reach=Reach.TENANT)
    assert texts(await recall.recall(query, 10)) == ["My kidneys work at 58 percent only.", "It is a rule of thumb."]


async def test_what_its_user_cleared_does_not_come_by_itself_and_is_found_by_who_looks_for_it(
    recall: Recall, past: Past, lost: frozenset[int]
) -> None:
    by_itself = ask(FESTIVAL, lost, without_cleared=True)
    nobody_asks = replace(by_itself, named=frozenset())
    assert (await recall.recall(by_itself, 10)).admitted and (await recall.recall(nobody_asks, 10)).admitted
    ((conversation,),) = await past.database.ask(lambda look: look("SELECT id FROM conversation WHERE public = 'c-1'"))
    await past.database.transact(lambda transaction: mark_cleared(transaction, [conversation], True, NOW))
    assert not (await recall.recall(by_itself, 10)).admitted
    assert not (await recall.recall(nobody_asks, 10)).admitted
    assert (await recall.recall(ask(FESTIVAL, lost), 10)).admitted
    later = await past.say("The harvest festival in Lisbon begins a week later this year.")
    await past.index()
    found = await recall.recall(replace(by_itself, lost=lost | frozenset(later)), 10)
    assert texts(found) == ["The harvest festival in Lisbon begins a week later this year."]
    await past.database.transact(lambda transaction: mark_cleared(transaction, [conversation], False, NOW))
    assert texts(await recall.recall(by_itself, 10))[0] == TALK[0]


@pytest.mark.parametrize(("seconds_ago", "comes"), [(CLEARED_SECONDS - 1, False), (CLEARED_SECONDS + 1, True)])
async def test_what_was_cleared_stays_out_of_other_conversations_for_an_hour(
    recall: Recall, past: Past, lost: frozenset[int], seconds_ago: float, comes: bool
) -> None:
    ((conversation,),) = await past.database.ask(lambda look: look("SELECT id FROM conversation WHERE public = 'c-1'"))
    cleared_at = NOW - seconds_ago
    await past.database.transact(lambda transaction: mark_cleared(transaction, [conversation], True, cleared_at))
    elsewhere = ask(FESTIVAL, conversation="c-2", reach=Reach.TENANT, without_cleared=True)
    assert (TALK[0] in texts(await recall.recall(elsewhere, 10))) is comes
    assert not (await recall.recall(ask(FESTIVAL, lost, without_cleared=True), 10)).admitted


async def test_a_call_that_only_looks_is_not_told(recall: Recall, past: Past) -> None:
    look = 'read({"path": "festival/harvest_festival_lisbon.md"})'
    lost = frozenset(await past.say(TALK[0], look, *TALK[2:]))
    await past.index()
    assert (told := texts(await recall.recall(ask(FESTIVAL, lost), 10))) and look not in told
    named = ask("", lost, named=frozenset({"unrelated.md"}))
    assert (told := texts(await recall.recall(named, 10))) and look not in told


async def test_by_reciprocal_ranks_the_order_is_that_of_the_ranks_and_by_cosine_of_likeness_alone(
    past: Past, embedder: WordEmbedder, lost: frozenset[int]
) -> None:
    for fusion, signal in (("rrf", "words"), ("cosine", "meaning")):
        recalled = await choosing(past, embedder, fusion=fusion).recall(ask(FESTIVAL, lost), 10)
        assert texts(recalled)[0] == TALK[0] and {one.probability for one in recalled.candidates} == {1.0}
        scores = [one.score for one in recalled.candidates]
        assert fusion == "rrf" or scores == sorted(scores, reverse=True)
        values = [one.signals[signal][1] for one in recalled.candidates]
        assert values[0] == max(values) and (fusion == "rrf" or values == sorted(values, reverse=True))
        assert fusion == "cosine" or all(score < 4 / 60 for score in scores)  # sums of weight / (60 + rank)


async def test_below_a_floor_nothing_comes_and_above_it_no_judgement_is_asked(
    past: Past, embedder: WordEmbedder, lost: frozenset[int]
) -> None:
    asked = ask("Tell me of Lisbon and its harvest and of whatever else goes on there", lost, least_help=0.999999)
    assert not (await choosing(past, embedder).recall(asked, 10)).admitted
    low, high = [await choosing(past, embedder, floor=floor).recall(asked, 10) for floor in (0.2, 0.95)]
    assert texts(low) == [TALK[0]] and not high.admitted


async def test_only_passages_of_the_chosen_kinds_come(past: Past, embedder: WordEmbedder) -> None:
    lasting = "I always take the train to the harvest festival in Lisbon."
    lost = frozenset(await past.say(TALK[0], "Good.", lasting))
    await past.index()
    both = await choosing(past, embedder).recall(ask(FESTIVAL, lost), 10)
    semantic = await choosing(past, embedder, kinds=["semantic"]).recall(ask(FESTIVAL, lost), 10)
    assert {TALK[0], lasting} <= {*texts(both)} and texts(semantic) == [lasting]


async def test_what_blocks_never_quote_fades_where_reinforcement_is_on(
    past: Past, embedder: WordEmbedder, lost: frozenset[int]
) -> None:
    quoted = min(lost) + 2
    for at in range(18):
        (said,) = await past.say(f"Go on, {at}.", conversation="c-1")
        row = [(said, f"[{quoted}]", said)]
        insert = (
            "INSERT INTO block(occurrence, tenant, conversation, turn, kind, text, role, tokens, occurrences)"
            " SELECT ?, tenant, conversation, turn, 'recall', '', '', 0, ? FROM occurrence WHERE id = ?"
        )
        await past.database.write([(insert, row)])
    found = {}
    for is_on in (False, True):
        recall = choosing(past, embedder, reinforcement=is_on)
        found[is_on] = texts(await recall.recall(ask(f"{FESTIVAL} {TALK[2]}", lost), 10))
    assert {TALK[0], TALK[2]} <= {*found[False]}
    assert TALK[0] not in found[True] and TALK[2] in found[True]


async def test_without_the_cache_passages_are_read_anew_and_none_stay(
    past: Past, embedder: WordEmbedder, lost: frozenset[int]
) -> None:
    tables, found = PassageTables(embedder.name, embedder.dimensions), []
    for cache in (False, True):
        found.append(texts(await choosing(past, embedder, tables, cache=cache).recall(ask(FESTIVAL, lost), 10)))
        assert (repr(tables) == repr(tables.empty())) is not cache
    assert found[0] == found[1]


async def test_what_was_said_in_another_folder_answers_only_where_it_surely_helps(recall: Recall, past: Past) -> None:
    await past.say(*TALK, conversation="c-0", folder=7)
    own = await past.say(*TALK, "Hello", "Hello!", conversation="c-9", folder=8)
    await past.index()
    await past.mark_users()
    vague, sure = "Tell me about the heating.", FESTIVAL
    elsewhere = {"conversation": "c-10", "reach": Reach.TENANT, "least_help": 0.1}
    for folder, comes in ((7, [True, True]), (9, [False, True])):
        found = [await recall.recall(ask(text, folder=folder, **elsewhere), 10) for text in (vague, sure)]
        assert [bool(one.candidates) for one in found] == comes, [one.helps for one in found]
    lost = ask(vague, frozenset(own), folder=9, **(elsewhere | {"conversation": "c-9"}))
    assert (await recall.recall(lost, 10)).candidates, "the conversation's own, whatever folder it names by now"
