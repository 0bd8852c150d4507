from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from palimpsest.core.recall.trail import Trace, last_stage, stages
from palimpsest.domain import Cut, Event, NewCut, Reach
from palimpsest.memory.archive import Archive
from palimpsest.memory.recall.trails import Trails, holds_statement
from palimpsest.settings.policy import Policy
from palimpsest.telemetry.metrics import Metrics

from tests.remembered import Past, WordEmbedder
from tests.talking import Talk, heard, record

PORT = "For the home server I decided that the metrics exporter listens on port 9417."
FILLER = (
    "The harvest festival in Lisbon begins on the third of May.",
    "My sister Clara plays the violin in the town orchestra.",
    "The greenhouse needs a new heating, the old one broke in January.",
    "The ticket about the roof is PROJ-4711.",
)


class Conversation:
    """A conversation whose first messages a compaction took away."""

    def __init__(self, archive: Archive, policy: Policy) -> None:
        self.archive = archive
        self.policy = policy
        self.trails = Trails(archive.journal, archive.database, archive.recall(), policy)
        self.past = Past(archive.database)

    async def tell(self) -> None:
        talk = Talk(self.archive.journal)
        for text in (PORT, *FILLER):
            await talk.say(text, "Noted.")
        head = talk.head
        assert head is not None
        kept = talk.history[-2:]
        asked = record(
            (*kept, {"role": "user", "content": "Which port does the metrics exporter use?"}),
            head,
            event=Event.TRUNCATE,
            lost=tuple(head.occurrences[:-2]),
            explain={"event": "compaction:truncate", "query": {"text": "Which port does the metrics exporter use?"}},
        )
        await self.archive.journal.write([asked])
        await self.archive.journal.write(answers=[heard(asked, "I do not know.")])
        await self.past.index()

    async def turn(self, number: int | None = None) -> dict[str, Any]:
        found = await self.archive.journal.turn(None, "c-1", number)
        assert found is not None
        return dict(found)

    async def follow(self, statement: str, number: int | None = None) -> Trace:
        return await self.trails.follow(statement, await self.turn(number))


@pytest.fixture
async def talk(tmp_path: Path) -> AsyncIterator[Conversation]:
    policy = Policy(data=tmp_path)
    archive = Archive(policy, Metrics(), WordEmbedder())
    await archive.database.open()
    conversation = Conversation(archive, policy)
    await conversation.tell()
    yield conversation
    await archive.close()


def end_of(trace: Trace) -> str | None:
    end = last_stage(stages(trace))
    return end.name if end else None


async def test_what_was_lost_is_followed_through_its_turn(talk: Conversation) -> None:
    trace = await talk.follow("the metrics exporter listens on port 9417")
    assert (trace.turn, trace.turns) == (6, 6)
    assert [held.turn for held in trace.held] == [1]
    assert (trace.is_lost, trace.is_visible, trace.passages, trace.waiting) == (True, False, 1, 0)
    assert trace.place == 1
    assert trace.is_packed


async def test_what_still_stood_in_the_request_was_not_lost(talk: Conversation) -> None:
    trace = await talk.follow("My sister Clara plays the violin", 3)
    assert trace.is_visible
    assert end_of(trace) == "lost"


async def test_what_was_said_later_than_the_turn_is_told_apart(talk: Conversation) -> None:
    trace = await talk.follow("The ticket about the roof is PROJ-4711", 3)
    assert trace.is_later
    assert end_of(trace) == "lost"


async def test_a_question_leads_to_what_answers_it_and_not_to_itself(talk: Conversation) -> None:
    trace = await talk.follow("Which port does the metrics exporter use?")
    assert trace.is_near
    assert "9417" in trace.held[0].excerpt
    assert not trace.asks_otherwise


async def test_what_answers_a_question_may_still_stand_in_the_request(talk: Conversation) -> None:
    trace = await talk.follow("Which instrument does my sister Clara play?", 4)
    assert trace.is_near and trace.is_visible and "violin" in trace.held[0].excerpt
    assert end_of(trace) == "lost" and "still in the request" in stages(trace)[2].detail


async def test_how_probably_memory_helped_is_told_as_the_turn_had_it(talk: Conversation) -> None:
    turn = await talk.turn()
    gate = {"admitted": False, "reason": "helps with a probability of 0.12", "helps": 0.12}
    turn["explain"] = turn["explain"] | {"gate": gate}
    statement, other = "the metrics exporter listens on port 9417", "Which port has the exporter of metrics?"
    assert (await talk.trails.follow(statement, turn)).helps == 0.12
    assert (await talk.trails.follow(other, turn)).helps > 0.38, "that is another question"


async def test_what_answers_a_question_was_said_before_the_turn(talk: Conversation) -> None:
    trace = await talk.follow("Which ticket is about the roof?", 3)
    assert not any("PROJ-4711" in held.excerpt for held in trace.held) and not trace.is_later


@pytest.mark.parametrize("asked", ["My sister Clara plays the violin", "Which instrument does my sister Clara play?"])
async def test_what_the_proxy_left_out_of_a_request_is_lost_though_the_client_sent_it(
    talk: Conversation, asked: str
) -> None:
    long = Talk(talk.archive.journal, conversation="c-9")
    for text in FILLER:
        await long.say(text, "Noted.")
    head = long.head
    assert head is not None
    cut = NewCut(Cut(drops=((head.occurrences[0], head.occurrences[3]),)))
    told = {"overflow": {"trimmed_tokens": 90, "dropped": 4, "stubs": 0, "clips": 0}}
    asking = record(
        (*long.history, {"role": "user", "content": "Go on."}), head, conversation="c-9", cut=cut, explain=told
    )
    await talk.archive.journal.write([asking])
    await talk.archive.journal.write(answers=[heard(asking, "Noted.")])
    await talk.past.index()
    found = await talk.archive.journal.turn(None, "c-9", None)
    assert found is not None
    trace = await talk.trails.follow(asked, found)
    assert (trace.is_trimmed, trace.is_lost, trace.is_visible, trace.place) == (True, True, False, 1)
    assert "overflow: trim" in stages(trace)[2].detail and "violin" in trace.held[0].excerpt
    seen = await talk.trails.follow("The ticket about the roof is PROJ-4711", found)
    assert seen.is_visible and not seen.is_trimmed


@pytest.mark.parametrize(
    ("statement", "named", "turn"),
    [
        ("which port does the  metrics exporter use?", None, 6),
        ("My sister Clara plays the violin in the town orchestra.", None, 6),
        ("What is the capital of Peru?", None, 6),
        ("Which port does the metrics exporter use?", "first", 1),
    ],
)
async def test_the_turn_is_the_one_that_is_named_or_asked_this_and_of_what_was_told_the_newest(
    talk: Conversation, statement: str, named: str | None, turn: int
) -> None:
    names = ((await talk.turn(1))["key"], "c-1/1") if named else (None,)
    for name in names:
        trace = await talk.trails.find(statement, None, "c-1", name)
        assert trace is not None
        assert trace.turn == turn


@pytest.mark.parametrize(("tenant", "conversation"), [(None, "c-9"), ("beta", "c-1")])
async def test_a_conversation_of_nobody_or_of_another_tenant_has_no_trail(
    talk: Conversation, tenant: str | None, conversation: str
) -> None:
    assert await talk.trails.find("port 9417", tenant, conversation, None) is None
    key = (await talk.turn(1))["key"]
    assert await talk.trails.find("port 9417", tenant, conversation, key) is None


async def test_what_was_said_in_another_conversation_is_found_there(talk: Conversation) -> None:
    await Talk(talk.archive.journal, conversation="c-2").say("The narwhal service was retired in spring.")
    trace = await talk.follow("the narwhal service was retired")
    assert not trace.held
    assert trace.elsewhere == ("c-2",)


def reaching(talk: Conversation) -> Trails:
    """Of a memory that reaches into all conversations."""
    everywhere = talk.policy.model_copy(
        update={"memory": talk.policy.memory.model_copy(update={"reach": Reach.TENANT})}
    )
    return Trails(talk.archive.journal, talk.archive.database, talk.archive.recall(), everywhere)


@pytest.mark.parametrize("asked", ["The barn key hangs on hook nine", "On which hook hangs the barn key?"])
async def test_what_another_conversation_holds_is_followed_there_where_memory_reaches_it(
    talk: Conversation, asked: str
) -> None:
    await Talk(talk.archive.journal, conversation="c-2").say("The barn key hangs on hook nine.")
    later = Talk(talk.archive.journal, conversation="c-3")
    await later.say("Where is the key of the barn?")
    await talk.past.index()
    found = await talk.archive.journal.turn(None, "c-3", 1)
    assert found is not None
    trace = await reaching(talk).follow(asked, found)
    assert (trace.home, trace.is_later, trace.place) == ("c-2", False, 1) and "hook nine" in trace.held[0].excerpt
    assert "c-2" in stages(trace)[0].detail


async def test_other_conversations_are_rivals_where_memory_reaches_them(talk: Conversation) -> None:
    await Talk(talk.archive.journal, conversation="c-2").say("The metrics exporter listens on port 9100.")
    await talk.past.index()
    assert (await talk.follow("the metrics exporter listens on port 9417")).is_packed
    trace = await reaching(talk).follow("the metrics exporter listens on port 9417", await talk.turn())
    assert not trace.is_packed and "little beside the best one's" in trace.cut


async def test_what_nobody_said_was_not_archived(talk: Conversation) -> None:
    assert end_of(await talk.follow("the zebrafish broker listens on port 7431")) == "archived"


@pytest.mark.parametrize(("sources", "blocks"), [("[{0}]", (6,)), ("[{0},0,{1}]", (6,)), ("[0,{0}]", ())])
async def test_what_a_block_quotes_was_said_and_what_it_only_mentions_was_not(
    talk: Conversation, sources: str, blocks: tuple[int, ...]
) -> None:
    turn = await talk.turn()
    ((first,),) = await talk.archive.database.read("SELECT min(id) FROM occurrence")
    ((anchor,),) = await talk.archive.database.read("SELECT id FROM occurrence WHERE turn = ? LIMIT 1", (turn["turn"],))
    await talk.archive.database.write(
        (
            (
                "INSERT INTO block(occurrence, tenant, conversation, turn, kind, text, role, tokens, occurrences)"
                " SELECT ?, tenant, conversation, id, 'recall', 'said', 'user', 9, ? FROM turn WHERE id = ?",
                [(anchor, sources.format(first, anchor), turn["turn"])],
            ),
        )
    )
    trace = await talk.follow("the metrics exporter listens on port 9417")
    assert trace.blocks == blocks
    assert (end_of(trace) is None) is bool(blocks)


@pytest.mark.parametrize(
    ("statement", "is_held"),
    [
        ("listens on   PORT 9417", True),
        ("metrics exporter: port 9417", True),
        ("the exporter listens on port 7431", False),
        ("exporter", True),
        ("broker", False),
    ],
)
def test_a_message_holds_a_statement_in_its_words_or_with_nearly_all_of_its_terms(
    statement: str, is_held: bool
) -> None:
    assert holds_statement(PORT, statement) is is_held
