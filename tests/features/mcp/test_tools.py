from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from palimpsest.domain import Event, Reach, Speaker
from palimpsest.features.mcp.tools import CONFIRM_SECONDS, FETCH_CHARS, MemoryTools, ToolError
from palimpsest.memory.archive import Archive
from palimpsest.settings.policy import MemoryPolicy, Policy
from palimpsest.telemetry.metrics import Metrics

from tests.remembered import Past, WordEmbedder
from tests.talking import NOW, Talk, heard, record, user

SECRET = b"a secret of thirty-two bytes ....."
PORT = "For the home server I decided that the metrics exporter listens on port 9417."
QUESTION = "Which port does the metrics exporter listen on?"
ME, OTHER = Speaker("acme"), Speaker("beta")


@dataclass
class House:
    """One archive, and the tools over it by a clock that a test may turn."""

    archive: Archive
    now: float = NOW

    def tools(self, reach: Reach = Reach.TENANT) -> MemoryTools:
        policy = Policy(data=self.archive.database.path.parent, memory=MemoryPolicy(reach=reach))
        forgetting = self.archive.forgetting
        return MemoryTools(self.archive.database, self.archive.recall(), forgetting, policy, SECRET, lambda: self.now)

    async def say(self, *texts: str, conversation: str = "c-1", tenant: str = "acme", user: str = "") -> Talk:
        talk = Talk(self.archive.journal, tenant, conversation)
        for text in texts:
            await talk.say(text, "Noted.", user=user)
        await Past(self.archive.database).index()
        return talk

    async def compact(self, talk: Talk, question: str) -> None:
        """A request in which only the last exchange is left of the talk."""
        assert talk.head is not None
        lost = tuple(talk.head.occurrences[:-2])
        asked = record(
            (*talk.history[-2:], user(question)),
            talk.head,
            conversation=talk.conversation,
            event=Event.TRUNCATE,
            lost=lost,
        )
        await self.archive.journal.write([asked])
        await self.archive.journal.write(answers=[heard(asked, "I do not know.")])
        await Past(self.archive.database).index()


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    archive = Archive(Policy(data=tmp_path), Metrics(), WordEmbedder(), secret=lambda: SECRET)
    await archive.database.open()
    yield House(archive)
    await archive.close()


async def test_search_quotes_what_was_said_in_any_conversation_of_the_tenant(house: House) -> None:
    await house.say(PORT, "My sister Clara plays the violin.")
    await house.say("The greenhouse needs a new heating.", conversation="c-2")
    found = await house.tools().search(ME, QUESTION)
    assert "port 9417" in found.text
    assert found.text.startswith("<palimpsest-memory")
    assert [result.conversation for result in found.results] == ["c-1"] * len(found.results)


async def test_search_finds_nothing_of_another_tenant(house: House) -> None:
    await house.say(PORT)
    found = await house.tools().search(OTHER, QUESTION)
    assert not found.results
    assert "9417" not in found.text


async def test_search_stays_with_the_user_where_reach_is_user(house: House) -> None:
    await house.say(PORT, user="ann")
    await house.say("The metrics exporter of the office listens on port 5555.", conversation="c-2", user="bob")
    found = await house.tools(Reach.USER).search(Speaker("acme", "ann"), QUESTION)
    assert "9417" in found.text
    assert "5555" not in found.text


@pytest.mark.parametrize("reach", [Reach.USER, Reach.CONVERSATION])
async def test_search_without_a_user_needs_a_conversation_where_reach_ends_there(house: House, reach: Reach) -> None:
    await house.say(PORT)
    with pytest.raises(ToolError, match=r"memory\.reach"):
        await house.tools(reach).search(ME, QUESTION)
    assert "9417" in (await house.tools(reach).search(ME, QUESTION, "c-1")).text


async def test_fetch_returns_a_message_between_its_neighbours(house: House) -> None:
    await house.say("First of all, hello.", PORT, "Then the tests.")
    tools = house.tools()
    found = await tools.search(ME, QUESTION)
    id = next(result.id for result in found.results if result.role == "user")
    fetched = await tools.fetch(ME, id, neighbours=1)
    assert [result.role for result in fetched.results] == ["assistant", "user", "assistant"]
    assert PORT in fetched.text


async def test_fetch_goes_on_in_a_long_message(house: House) -> None:
    await house.say("word " * FETCH_CHARS + "the end 9417")
    tools = house.tools()
    first = await tools.fetch(ME, "c-1/1", neighbours=0)
    assert f"with start {FETCH_CHARS}" in first.text
    last = await tools.fetch(ME, "c-1/1", start=5 * FETCH_CHARS - 8, neighbours=0)
    assert "the end 9417" in last.text


@pytest.mark.parametrize("id", ["c-1/2", "c-2/1", "c-1/x", "c-1", "", "c-1/99999999999999999999"])
async def test_fetch_knows_no_message_of_another_tenant_and_no_id_that_is_none(house: House, id: str) -> None:
    await house.say(PORT)
    with pytest.raises(ToolError, match="no such message"):
        await house.tools().fetch(OTHER if id == "c-1/2" else ME, id)


async def test_what_a_compaction_took_away_is_recalled_by_a_question_and_without_one(house: House) -> None:
    talk = await house.say(PORT, "My sister Clara plays the violin.", "The ticket about the roof is PROJ-4711.")
    await house.compact(talk, "What did we talk about?")
    tools = house.tools()
    asked = await tools.recall_lost(ME, QUESTION)
    assert "9417" in asked.text
    everything = await tools.recall_lost(ME)
    assert "9417" in everything.text
    assert "Clara" in everything.text
    assert "PROJ-4711" not in everything.text  # it still stands in the request


async def test_a_question_finds_its_own_among_compacted_conversations(house: House) -> None:
    first = await house.say(PORT, "A second thing.", "A third thing.")
    await house.compact(first, "And now?")
    second = await house.say("We repaint the kitchen in green.", "A fourth thing.", "A fifth.", conversation="c-2")
    await house.compact(second, "What else?")
    assert "9417" in (await house.tools().recall_lost(ME, QUESTION)).text
    assert "kitchen" in (await house.tools().recall_lost(ME)).text
    assert "9417" in (await house.tools().recall_lost(ME, conversation="c-1")).text


async def test_nothing_lost_is_said_in_words(house: House) -> None:
    await house.say(PORT)
    found = await house.tools().recall_lost(ME)
    assert not found.results
    assert "no conversation was compacted" in found.text


async def test_forgetting_takes_two_steps_and_erases_what_was_previewed(house: House) -> None:
    await house.say(PORT, "My sister Clara plays the violin.")
    tools = house.tools()
    preview = await tools.preview_forgetting(ME, {"matching": "9417"})
    assert preview["would_forget"]["messages"] == 1
    assert "9417" in (await tools.search(ME, QUESTION)).text
    receipt = await tools.forget(ME, {"matching": "9417"}, preview["confirm"])
    assert receipt["check"]["clean"]
    assert "9417" not in (await tools.search(ME, QUESTION)).text


async def test_a_confirmation_is_of_one_preview_of_one_tenant_for_ten_minutes(house: House) -> None:
    await house.say(PORT, "My sister Clara plays the violin.")
    await house.say(PORT, tenant="beta")
    tools = house.tools()
    confirm = (await tools.preview_forgetting(ME, {"matching": "9417"}))["confirm"]
    for speaker, given, token in (
        (ME, {"matching": "Clara"}, confirm),
        (OTHER, {"matching": "9417"}, confirm),
        (ME, {"matching": "9417"}, ""),
        (ME, {"matching": "9417"}, f"9{confirm}"),
    ):
        with pytest.raises(ToolError, match="not the token"):
            await tools.forget(speaker, given, token)
    house.now += CONFIRM_SECONDS + 1
    with pytest.raises(ToolError, match="ten minutes"):
        await tools.forget(ME, {"matching": "9417"}, confirm)


async def test_nothing_meant_is_an_error_and_no_success(house: House) -> None:
    await house.say(PORT)
    with pytest.raises(ToolError, match="nothing"):
        await house.tools().preview_forgetting(ME, {"matching": "zebrafish"})


async def test_a_key_that_only_reads_forgets_nothing(house: House) -> None:
    await house.say(PORT)
    tools, reader = house.tools(), replace(ME, is_read_only=True)
    confirm = (await tools.preview_forgetting(reader, {"matching": "9417"}))["confirm"]
    with pytest.raises(ToolError, match="is read-only"):
        await tools.forget(reader, {"matching": "9417"}, confirm)
