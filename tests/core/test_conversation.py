"""The decisions of one request, driven with plain values: what is looked up, and what is decided when that fails."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from palimpsest.core.block.fact_lines import newest_value, stated_in_blocks
from palimpsest.core.conversation import (
    Foreseen,
    Lookup,
    Reminders,
    Request,
    Rules,
    StoredMessages,
    conversation_named,
)
from palimpsest.core.decision import Decision
from palimpsest.core.history.link_keys import CLUE_MESSAGES, NEWEST_CLUES
from palimpsest.domain import (
    Account,
    Block,
    BlockKind,
    Candidate,
    Clues,
    CurrentFact,
    CurrentFacts,
    Event,
    FactQuery,
    Head,
    HeadFlag,
    Json,
    KnownHistory,
    Link,
    LinkKind,
    Memory,
    Message,
    Note,
    Query,
    Reach,
    Recalled,
    Role,
    StoredBlock,
    Tier,
)
from palimpsest.domain.errors import MemoryFault
from palimpsest.settings.policy import Policy

from tests.core.driving import (
    CHARS_PER_TOKEN,
    NOTHING,
    Client,
    Core,
    assistant,
    calling,
    drive,
    prose,
    request_of,
    rules_of,
    system,
    tool,
    user,
)
from tests.core.facts.telling import fact, standing
from tests.examples import examples

QUESTION = "Which port does the billing gateway listen on?"
ANSWER = "The billing gateway listens on port 4711, as was agreed with the people of the network."
PAST = [message for n in range(4) for message in (user(prose(20, n)), assistant(prose(30, n)))]
MEMORY = Memory(1, 10, "c-home", 1, "user", ANSWER, 1.7e9)
FOUND = Recalled((Candidate(MEMORY, 1.0),), True, "found")
BLOCK = Block("<palimpsest-memory>\nsaid before\n</palimpsest-memory>\n", BlockKind.RECALL, (77,), tokens=12)
FAILURES = [(TimeoutError(), Note.DEADLINE), (MemoryFault("reading the journal: it is gone"), Note.FAULT)]


class Answers:
    """Answers look-ups from plain values, and keeps what was asked."""

    def __init__(
        self,
        *seen: KnownHistory | Exception,
        recalled: Recalled | Exception = NOTHING,
        standing: CurrentFacts | Exception = CurrentFacts(),  # noqa: B008
    ) -> None:
        self.asked: list[Lookup] = []
        self.messages: Mapping[int, Message] | Exception = {}
        self.reminded: tuple[Candidate, ...] | Exception = ()
        self._seen = list(seen)
        self._recalled = recalled
        self._standing = standing

    def __call__(self, asked: Lookup) -> object:
        self.asked.append(asked)
        match asked:
            case Clues():
                return self._seen.pop(0) if self._seen else KnownHistory()
            case StoredMessages():
                return self.messages
            case Query():
                return self._recalled
            case Reminders():
                return self.reminded
            case FactQuery():
                return self._standing
            case Foreseen():
                return None

    @property
    def query(self) -> Query:
        (query,) = (asked for asked in self.asked if isinstance(asked, Query))
        return query


def body(*messages: Json, **more: object) -> Json:
    return {"model": "large", "messages": list(messages)} | more


def seen_of(rules: Rules, messages: list[Json], **changes: object) -> KnownHistory:
    """A store that holds exactly these messages, in one conversation whose answers passed here."""
    request = request_of(body(*messages), rules)
    prints, flags = request.reading.history_prints, {"user": HeadFlag.USER, "tool": HeadFlag.TOOL}
    ours = HeadFlag.ASSISTANT | HeadFlag.OURS
    head = Head(
        conversation="c-home",
        turn=1,
        role=Role.MAIN,
        fulls=[p.full for p in prints],
        openings=[p.opening for p in prints],
        occurrences=[100 + at for at in range(len(prints))],
        flags=[flags.get(message.role, ours) for message in request.reading.history],
        request_length=len(prints) - 1,
    )
    links = [Link(LinkKind.ANSWER, fingerprint.full, "c-home", Role.MAIN, 1) for fingerprint in prints]
    return KnownHistory(tuple(links), (replace(head, **changes),))  # type: ignore[arg-type]


def decided(request: Request, rules: Rules, answers: Callable[[Lookup], object]) -> Decision:
    decision = drive(request, rules, answers)
    assert isinstance(decision, Decision)
    return decision


@pytest.fixture
def rules() -> Rules:
    return rules_of()


@pytest.fixture
def known(rules: Rules) -> KnownHistory:
    return seen_of(rules, PAST)


# --- what is looked up -----------------------------------------------------------------------------


def test_calm_request_asks_once_and_adds_nothing(rules: Rules, known: KnownHistory):
    answers = Answers(known)
    decision = decided(request_of(body(*PAST, user(QUESTION)), rules), rules, answers)
    assert [type(asked) for asked in answers.asked] == [Clues]
    assert (decision.note, decision.insertions, decision.added.tokens) == (Note.CALM, (), 0)
    assert (decision.conversation, decision.lineage.event) == ("c-home", Event.APPEND)


def test_older_messages_are_looked_up_only_where_the_newest_are_not_known(rules: Rules):
    many = [user(prose(20, n)) for n in range(NEWEST_CLUES + 1)]
    answers = Answers()
    decided(request_of(body(*many), rules), rules, answers)
    asked = [len(clues.prints.get(LinkKind.MESSAGE, ())) for clues in answers.asked if isinstance(clues, Clues)]
    assert asked[:2] == [NEWEST_CLUES, min(CLUE_MESSAGES, len(many))]
    few = Answers()
    decided(request_of(body(*many[:NEWEST_CLUES]), rules), rules, few)
    assert LinkKind.MESSAGE not in few.asked[1].prints  # type: ignore[union-attr]


def test_question_of_a_compaction_is_foreseen_before_echoes_are_looked_up(rules: Rules, known: KnownHistory):
    answers = Answers(known)
    decided(request_of(body(*PAST[4:], user(QUESTION)), rules), rules, answers)
    assert [type(asked) for asked in answers.asked] == [Clues, Foreseen, Clues, Query]
    assert answers.asked[1] == Foreseen(QUESTION)


def test_last_question_that_a_compaction_took_away_is_asked_of_the_journal(rules: Rules):
    loop = [user(QUESTION)]
    for step in range(4):
        loop += [calling((f"call-{step}", "read", {"path": f"{step}.py"})), tool(f"call-{step}", prose(30, step))]
    answers = Answers(seen_of(rules, loop), recalled=FOUND)
    answers.messages = {100: Message("user", QUESTION, {})}
    decision = decided(request_of(body(*loop[3:]), rules), rules, answers)
    assert StoredMessages("static:one", (100,)) in answers.asked and answers.query.text.startswith(QUESTION)
    assert decision.block is not None and decision.diagnosis.query == answers.query


# --- what is decided -------------------------------------------------------------------------------


def test_compaction_gets_a_block_in_the_message_that_asks(rules: Rules, known: KnownHistory):
    request = request_of(body(system("Hi."), *PAST[4:], user(QUESTION)), rules)
    decision = decided(request, rules, Answers(known, recalled=FOUND))
    assert (decision.lineage.event, decision.note) == (Event.TRUNCATE, None)
    (insertion,) = decision.insertions
    assert ANSWER in insertion.text and insertion.at == len(request.reading.chat.messages) - 1
    assert decision.added.tokens == len(insertion.text) // CHARS_PER_TOKEN


@pytest.mark.parametrize("recalled", [NOTHING, replace(FOUND, candidates=()), replace(NOTHING, account=Account())])
def test_nothing_relevant_says_so(rules: Rules, known: KnownHistory, recalled: Recalled):
    decision = decided(request_of(body(*PAST[4:], user(QUESTION)), rules), rules, Answers(known, recalled=recalled))
    assert (decision.note, decision.insertions, decision.recalled) == (Note.NOTHING_RELEVANT, (), recalled)


@pytest.mark.parametrize("recalled", [FOUND, NOTHING, replace(FOUND, candidates=())])
def test_recall_that_came_before_the_index_says_so_whatever_it_found(
    rules: Rules, known: KnownHistory, recalled: Recalled
):
    early = replace(recalled, unindexed=12, eligible=16)
    decision = decided(request_of(body(*PAST[4:], user(QUESTION)), rules), rules, Answers(known, recalled=early))
    assert (decision.note, bool(decision.insertions)) == (Note.INDEXING, recalled is FOUND)


def test_block_that_does_not_fit_into_the_window_is_left_out(rules: Rules, known: KnownHistory):
    counted = replace(rules, count=lambda text, model: 1_000_000)
    request = request_of(body(*PAST[4:], user(QUESTION)), counted)
    decision = decided(request, counted, Answers(known, recalled=FOUND))
    assert (decision.note, decision.insertions) == (Note.WINDOW_FULL, ())


def test_block_of_before_is_sent_again_where_it_stood(rules: Rules):
    known = seen_of(rules, PAST, blocks=(StoredBlock(102, BLOCK),))
    decision = decided(request_of(body(system("Hi."), *PAST, user(QUESTION)), rules), rules, Answers(known))
    assert [(insertion.at, insertion.text) for insertion in decision.insertions] == [(3, BLOCK.text)]
    assert decision.added.tokens == BLOCK.tokens


def test_blocks_of_before_that_do_not_fit_any_more_are_dropped(rules: Rules):
    known = seen_of(rules, PAST, blocks=(StoredBlock(102, BLOCK),))
    request = request_of(body(*PAST, user(QUESTION), max_tokens=1), rules)
    tight = replace(request, window_tokens=request.reading.tokens + BLOCK.tokens)
    decision = decided(tight, rules, Answers(known))
    assert (decision.drops_blocks, decision.insertions) == (True, ())


def test_restore_takes_the_place_of_blocks_that_fill_their_share(rules: Rules):
    large = replace(BLOCK, tokens=100_000)
    known = seen_of(rules, PAST, blocks=(StoredBlock(106, large),))
    request = replace(request_of(body(*PAST[4:], user(QUESTION)), rules), window_tokens=1_000_000)
    decision = decided(request, rules, Answers(known, recalled=FOUND))
    assert decision.diagnosis.sheds and [ANSWER in insertion.text for insertion in decision.insertions] == [True]


WANTED = Candidate(replace(MEMORY, id=5, occurrence=50, text=prose(120, 9)), 1.0, is_reminder=True)


@pytest.mark.parametrize(
    ("recalled", "said", "expected"),
    [
        *((failure, QUESTION, True) for failure, _ in FAILURES),
        (FOUND, "Thanks!", True),
        (FOUND, QUESTION, False),
        (NOTHING, QUESTION, False),
    ],
    ids=["late", "failed", "nothing asked", "answered", "nothing found"],
)
def test_compaction_of_which_nothing_came_back_is_restored_at_the_next_request(
    rules: Rules, known: KnownHistory, recalled: Recalled | Exception, said: str, expected: bool
):
    compacted = decided(request_of(body(*PAST[4:], user(said)), rules), rules, Answers(known, recalled=recalled))
    assert compacted.lineage.event.is_compaction and compacted.is_untold is expected
    lost = seen_of(rules, PAST[4:], lost=(100, 101), is_untold=compacted.is_untold)
    answers = Answers(lost, recalled=FOUND)
    after = decided(request_of(body(*PAST[4:], user(QUESTION)), rules), rules, answers)
    assert after.lineage.event is Event.APPEND and not after.is_untold
    assert after.diagnosis.kind is (BlockKind.RESTORE if expected else BlockKind.RECALL)
    again = decided(request_of(body(*PAST[4:]), rules), rules, Answers(lost))
    assert (again.lineage.event, again.is_untold) == (Event.RETRY, expected)


def reminded(rules: Rules, answers: Answers, *messages: Json, found: object = (WANTED,)) -> Decision:
    """The decision on a request in a conversation in which somebody asked for a passage."""
    answers.reminded = found  # type: ignore[assignment]
    request = replace(request_of(body(*messages), rules), reminders={"c-home": (5,), "c-other": (6,)})
    return decided(request, rules, answers)


def test_passage_that_somebody_asked_for_comes_whole_and_before_what_is_recalled(rules: Rules, known: KnownHistory):
    decision = reminded(rules, Answers(known, recalled=FOUND), *PAST[4:], user(QUESTION))
    assert decision.recalled is not None and decision.block is not None
    assert [one.memory.id for one in decision.recalled.candidates] == [5, 1]
    assert WANTED.memory.text in decision.block.text and ANSWER in decision.block.text
    assert decision.reminders == (5,)
    assert [one["why"] for one in decision.explain["candidates"]] == ["somebody asked for it", ""]


def test_passage_that_somebody_asked_for_comes_where_nothing_else_would(rules: Rules, known: KnownHistory):
    lost = seen_of(rules, PAST[4:], lost=(50, 51))
    decision = reminded(rules, Answers(lost), *PAST[4:], user("Thanks!"))
    assert (decision.reminders, decision.note) == ((5,), None)
    ((at, said),) = ((one.at, one.text) for one in decision.insertions)
    assert at == len(decision.reading.chat.messages) - 1 and WANTED.memory.text in said
    after_failure = reminded(rules, Answers(known, recalled=TimeoutError()), *PAST[4:], user(QUESTION))  # type: ignore[arg-type]
    assert after_failure.reminders == (5,)


@pytest.mark.parametrize("found", [(), TimeoutError()])
def test_passage_that_is_gone_or_cannot_be_read_changes_nothing(rules: Rules, known: KnownHistory, found: object):
    decision = reminded(rules, Answers(known, recalled=FOUND), *PAST[4:], user(QUESTION), found=found)
    assert (decision.reminders, decision.note, ANSWER in decision.insertions[0].text) == ((), None, True)


def test_passage_that_the_model_sees_is_not_added(rules: Rules, known: KnownHistory):
    seen = replace(WANTED, memory=replace(WANTED.memory, occurrence=100))
    decision = reminded(rules, Answers(known), *PAST, user(QUESTION), found=(seen,))
    assert (decision.reminders, decision.note, decision.insertions) == ((), Note.CALM, ())


def test_passage_waits_while_tools_work_and_while_there_is_no_room(rules: Rules, known: KnownHistory):
    loop = [*PAST, user("Read it."), calling(("1", "read_file", {})), tool("1", "done")]
    assert reminded(rules, Answers(seen_of(rules, loop[:-1])), *loop).reminders == ()
    full = replace(rules, count=lambda text, model: 1_000_000)
    assert reminded(full, Answers(known, recalled=FOUND), *PAST[4:], user(QUESTION)).reminders == ()


def test_passage_is_told_once(rules: Rules):
    stored = StoredBlock(107, replace(BLOCK, occurrences=(50,)))
    standing = seen_of(rules, PAST[4:], lost=(50,), blocks=(replace(stored, occurrence=102),))
    decision = reminded(rules, Answers(standing, recalled=NOTHING), *PAST[4:], user(QUESTION))
    assert decision.reminders == ()


def test_side_request_serves_a_conversation_and_gets_nothing(rules: Rules, known: KnownHistory):
    beside = [system("You generate titles for conversations."), user("Generate a short title for this conversation.")]
    spoken = user("\n".join(f"{m['role']}: {m['content']}" for m in PAST))
    phrases = tuple(replace(link, kind=LinkKind.PHRASE) for link in known.links)
    decision = decided(
        request_of(body(*beside, spoken), rules), rules, Answers(KnownHistory(), KnownHistory(phrases, known.heads))
    )
    assert (decision.lineage.role, decision.conversation) == (Role.SIDE, "c-home")
    assert (decision.note, decision.insertions) == (Note.SIDE_REQUEST, ())


def test_role_that_the_policy_leaves_out_is_no_matter_of_memory():
    rules = rules_of(Policy.model_validate({"memory": {"off_for_roles": ["main"]}}))
    assert drive(request_of(body(user(QUESTION)), rules), rules, Answers()) is Note.OFF


# --- the conversation's name -----------------------------------------------------------------------


def test_new_conversation_is_named_by_chance_unless_the_client_names_it(rules: Rules):
    def named(new_id: str, **headers: str) -> str:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        return decided(request_of(body(user(QUESTION)), rules, sent, new_id=new_id), rules, Answers()).conversation

    assert (named("1"), named("2")) == ("c-1", "c-2")
    mine, other = {"x_palimpsest_conversation": "mine"}, {"x_palimpsest_conversation": "other"}
    assert named("1", **mine) == named("2", **mine) != named("1", **other)


def test_sub_agent_that_shares_the_id_of_whom_it_serves_has_a_conversation_of_its_own(rules: Rules):
    headers = {"x-palimpsest-conversation": "mine"}
    whom = decided(request_of(body(user(QUESTION)), rules, headers), rules, Answers()).conversation
    request = request_of(body(user("Look for the port.")), rules, headers, new_id="own")
    serving = replace(request, speaker=replace(request.speaker, subagent_hint=True, parent_ids=("client:1",)))
    link = Link(LinkKind.CLIENT_ID, 1, whom, Role.MAIN, 1)
    decision = decided(serving, rules, Answers(KnownHistory(), KnownHistory((link,))))
    assert (decision.lineage.role, decision.lineage.parent, decision.conversation) == (Role.SUBAGENT, whom, "c-own")


# --- facts -----------------------------------------------------------------------------------------

USE = Policy.model_validate({"facts": {"policy": "use", "tokens": 60}, "memory": {"reach": "tenant"}})
HOME = standing(fact("home", "Lisbon"))
NAME = standing(fact("name", "Ada"))


def told_by(decision: Decision) -> list[str]:
    """The facts that a request carries anew."""
    return list(decision.fact_choice.ids) if decision.fact_choice else []


class Talk:
    """A conversation of a person with facts, on the core alone."""

    def __init__(self, *facts: CurrentFact, policy: Policy = USE) -> None:
        self.core = Core(rules_of(policy))
        self.core.journal.current_facts = facts
        self.client = Client(self.core)

    def ask(self, text: str) -> Decision:
        self.client.ask(text)
        return self.core.decisions[-1]

    def say(self, turns: int) -> Decision:
        self.client.talk(turns)
        return self.core.decisions[-1]

    def compact(self, keep: int = 2) -> None:
        """The client drops all but its last messages."""
        self.client.messages = [self.client.messages[0], *self.client.messages[-keep:]]

    def go_on(self, step: str, at: int) -> None:
        """One of `STEPS`, the `at`-th."""
        journal, client, newest = self.core.journal, self.client, 1e9 + at * 1e6
        match step:
            case "ask":
                client.ask(prose(12, at))
            case "tool":
                client.messages += [
                    calling((f"call-{at}", "read", {"path": f"{at}"})),
                    tool(f"call-{at}", prose(9, at)),
                ]
                client.send()
            case "compact":
                self.compact(min(4, len(client.messages) - 1))
                client.ask(prose(15, ("behind", at)))
            case "edit":
                while client.messages[-1]["role"] != "user":
                    client.messages.pop()
                client.messages.pop()
                client.ask(prose(15, ("other", at)))
            case "again":
                while client.messages[-1]["role"] not in ("user", "tool"):
                    client.messages.pop()
                client.send(prose(20, ("again", at)))
            case "new":
                more = standing(fact(f"pet {at}", "Rex", said_at=newest))
                journal.current_facts = (more, *journal.current_facts)
            case "move":
                journal.current_facts = (standing(fact("home", f"Town {at}", said_at=newest)), NAME)
            case "end":
                journal.ended = (NAME.fact,)
                journal.current_facts = tuple(one for one in journal.current_facts if one is not NAME)
            case _:
                changed = {"reach": {"memory": {"reach": "user"}}}.get(step, {"facts": {"policy": step}})
                given = USE.model_dump() | {}
                for part, values in changed.items():
                    given[part] |= values
                self.core.rules = rules_of(Policy.model_validate(given))


def test_conversation_begins_with_what_stands_and_does_not_hear_it_again():
    talk = Talk(HOME, NAME)
    first = talk.ask("Hi there!")
    assert told_by(first) == ["f-home-Lisbon", "f-name-Ada"] and first.note is None
    assert first.block is not None and first.block.kind is BlockKind.FACTS
    then = talk.ask("And now?")
    assert told_by(then) == [] and [one.text for one in then.insertions] == [first.block.text]
    assert then.note is Note.NOTHING_RELEVANT


def test_edit_of_the_question_that_a_compaction_came_with_hears_what_that_heard():
    talk = Talk(HOME, NAME)
    talk.say(6)
    talk.compact()
    first = talk.ask(prose(12, "asked first"))
    assert told_by(first) == ["f-home-Lisbon", "f-name-Ada"]
    talk.say(1)
    del talk.client.messages[-4:]
    assert told_by(talk.ask(prose(12, "asked otherwise"))) == told_by(first)


def test_what_the_first_message_did_not_hear_comes_with_one_of_the_next():
    talk = Talk()
    talk.say(1)
    talk.core.journal.current_facts = (standing(fact("home", "Lisbon", said_at=-1e6)),)
    assert told_by(talk.say(1)) == ["f-home-Lisbon"] and told_by(talk.say(1)) == []
    late = Talk()
    late.say(4)
    late.core.journal.current_facts = talk.core.journal.current_facts
    assert told_by(late.say(1)) == []


def test_new_fact_of_another_conversation_is_told_when_a_person_speaks_next():
    talk = Talk(HOME)
    talk.say(3)
    talk.core.journal.current_facts = (standing(fact("pet", "Rex", said_at=1e9)), HOME)
    assert told_by(talk.ask("Go on.")) == ["f-pet-Rex"]
    talk.client.messages.append(calling(("call-1", "read", {"path": "a.py"})))
    talk.client.messages.append(tool("call-1", prose(30)))
    talk.core.journal.current_facts = (standing(fact("pet", "Tom", said_at=2e9)), HOME)
    talk.client.send()
    assert told_by(talk.core.decisions[-1]) == []
    assert told_by(talk.ask("And?")) == ["f-pet-Tom"]


def test_compaction_brings_back_what_stands():
    talk = Talk(HOME, NAME)
    talk.say(5)
    talk.compact()
    again = talk.ask(QUESTION)
    assert again.lineage.event is Event.TRUNCATE and told_by(again) == ["f-home-Lisbon", "f-name-Ada"]
    assert told_by(talk.ask("Thanks. What else?")) == []


def test_window_that_slides_over_the_conversation_brings_no_fact_back_each_time():
    talk = Talk(standing(fact("home", "Lisbon", said_at=-1e6)))
    told_at = []
    for at in range(12):
        decision = talk.ask(f"{prose(20, at)}?")
        told_at += [at] * bool(told_by(decision))
        talk.compact(keep=4)
    assert told_at[0] == 0 and len(told_at) == 2  # when it begins, and when the window begins to slide


@pytest.mark.parametrize(("fill", "tier"), [(0.3, Tier.CALM), (0.65, Tier.WARM), (0.75, Tier.TIGHT), (0.9, Tier.FULL)])
def test_where_all_facts_are_told_they_are_at_every_tier(fill: float, tier: Tier):
    policy = Policy.model_validate({"facts": {"policy": "all"}, "memory": {"reach": "tenant"}})
    rules, long = rules_of(policy), [message for n in range(40) for message in (user(prose(20, n)), *PAST[1:2])]
    request = request_of(body(*long, user(QUESTION), max_tokens=1), rules)
    request = replace(request, window_tokens=int(request.reading.tokens / fill))
    answers = Answers(seen_of(rules, long), standing=CurrentFacts((HOME,)))
    decision = decided(request, rules, answers)
    assert decision.diagnosis.pressure.tier is tier
    assert any("Lisbon" in insertion.text for insertion in decision.insertions)


def test_fact_that_the_conversation_states_is_not_told_in_it():
    talk = Talk()
    talk.say(1)
    prints = request_of(body(*talk.client.messages), talk.core.rules).reading.history_prints
    talk.core.journal.current_facts = (standing(fact("home", "Lisbon", said_at=1e9), prints[0].full),)
    assert told_by(talk.ask("Go on.")) == []
    assert talk.core.decisions[-1].explain["facts"] == {"told": [], "left_out": {"its message is in the request": 1}}


def test_facts_stand_in_front_of_what_is_recalled(known: KnownHistory):
    rules = rules_of(USE)
    answers = Answers(seen_of(rules, PAST), recalled=FOUND, standing=CurrentFacts((HOME,)))
    decision = decided(request_of(body(*PAST[4:], user(QUESTION)), rules), rules, answers)
    (insertion,) = decision.insertions
    assert insertion.text.index("Lisbon") < insertion.text.index(ANSWER)
    assert decision.block is not None and decision.block.kind is BlockKind.RESTORE
    assert decision.block.tokens == len(insertion.text) // CHARS_PER_TOKEN
    assert decision.explain["facts"]["told"] == [{"fact": "f-home-Lisbon", "why": "standing"}]
    assert decision.explain["candidates"][0]["packed"]


def test_fact_whose_message_is_quoted_is_not_told_beside_it():
    rules = rules_of(USE)
    stated = standing(fact("port", "4711", occurrence=MEMORY.occurrence))
    answers = Answers(seen_of(rules, PAST), recalled=FOUND, standing=CurrentFacts((stated,)))
    decision = decided(request_of(body(*PAST[4:], user(QUESTION)), rules), rules, answers)
    assert told_by(decision) == [] and decision.block is not None and decision.block.kind is BlockKind.RESTORE


def test_facts_that_do_not_fit_into_the_window_are_left_out():
    talk = Talk(HOME)
    talk.core.rules = replace(talk.core.rules, count=lambda text, _: 1 if text.startswith("fact") else 1_000_000)
    assert talk.ask("Hi!").insertions == () and talk.core.decisions[-1].explain["facts"]["told"] == []


@pytest.mark.parametrize(("failure", "note"), FAILURES)
def test_without_its_facts_a_request_goes_on(failure: Exception, note: Note):
    rules = rules_of(USE)
    answers = Answers(seen_of(rules, PAST), recalled=FOUND, standing=failure)
    decision = decided(request_of(body(*PAST[4:], user(QUESTION)), rules), rules, answers)
    assert decision.note is None and decision.block is not None and decision.fact_choice is None


@pytest.mark.parametrize("policy", ["off", "suggest"])
def test_facts_are_looked_up_only_where_they_are_used(policy: str):
    talk = Talk(HOME, policy=Policy.model_validate({"facts": {"policy": policy}, "memory": {"reach": "tenant"}}))
    assert talk.ask("Hi there!").insertions == () and talk.say(2).insertions == ()
    assert not any(isinstance(asked, FactQuery) for asked in talk.core.asked)


def test_conversation_that_hears_only_of_itself_looks_up_facts_once_it_lost_something():
    talk = Talk(HOME, policy=Policy.model_validate({"facts": {"policy": "use"}, "memory": {"reach": "conversation"}}))
    talk.say(5)
    assert not any(isinstance(asked, FactQuery) for asked in talk.core.asked)
    talk.compact()
    decision = talk.ask(QUESTION)
    (asked,) = (asked for asked in talk.core.asked if isinstance(asked, FactQuery))
    assert asked.whose.reach is Reach.CONVERSATION and asked.whose.conversation == decision.conversation


def test_side_requests_sub_agents_and_repeated_requests_hear_no_new_facts():
    talk = Talk(HOME)
    talk.say(2)
    talk.core.journal.current_facts = (HOME, standing(fact("pet", "Rex", said_at=1e9)))
    talk.client.messages.pop()
    talk.client.send(prose(30, "again"))
    assert talk.core.decisions[-1].lineage.event is Event.RETRY and told_by(talk.core.decisions[-1]) == []
    talk.client.beside([system("You generate titles for conversations."), user("Generate a short title for this.")])
    assert told_by(talk.core.decisions[-1]) == []


def test_behind_the_system_prompt_facts_are_told_each_time():
    talk = Talk(HOME, policy=USE.model_copy(update={"memory": USE.memory.model_copy(update={"placement": "system"})}))
    for text in ("Hi!", "And now?"):
        (insertion,) = talk.ask(text).insertions
        assert (insertion.role, "Lisbon" in insertion.text) == ("system", True)


STEPS = st.lists(
    st.sampled_from(["ask", "ask", "tool", "compact", "edit", "again", "new", "move", "end", "off", "use", "reach"]),
    max_size=14,
)


@given(STEPS)
@settings(max_examples=examples(60), deadline=None)
def test_whatever_happens_blocks_are_repeated_as_they_were_and_nothing_is_told_twice(steps: list[str]):
    talk = Talk(HOME, NAME)
    said: dict[str, str] = {}  # blocks by the message that carries them
    for at, step in enumerate(["ask", *steps]):
        talk.go_on(step, at)
        decision = talk.core.decisions.pop() if talk.core.decisions else None
        if decision is None:
            continue
        carriers = decision.reading.chat.messages
        for place, stored in decision.replayed.repeated:
            assert said[carriers[place].text] == stored.block.text
        if decision.block is None:
            continue
        said[carriers[decision.anchor].text] = decision.block.text
        before = stated_in_blocks(stored.block.text for stored in decision.replayed.visible)
        for statement, holds in stated_in_blocks([decision.block.text]).items():
            is_overruled = " home: " in statement and not statement.endswith(f": {newest_value(HOME.fact, before)}")
            assert before.get(statement) is not holds or is_overruled
        lines = [line for line in decision.block.text.splitlines() if line.startswith("fact: ")]
        assert sum(len(f"{line}\n") // CHARS_PER_TOKEN for line in lines) <= USE.facts.tokens


@given(STEPS)
@settings(max_examples=examples(15), deadline=None)
def test_facts_that_are_only_suggested_change_nothing(steps: list[str]):
    suggesting, off = (
        Talk(HOME, NAME, policy=Policy.model_validate({"facts": {"policy": policy}, "memory": {"reach": "tenant"}}))
        for policy in ("suggest", "off")
    )
    for at, step in enumerate(["ask", *steps]):
        if step not in ("off", "use", "reach"):
            suggesting.go_on(step, at)
            off.go_on(step, at)
    assert suggesting.core.decisions == off.core.decisions
    assert not any("facts" in decision.explain for decision in suggesting.core.decisions)


# --- what fails ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("failure", "note"), FAILURES)
@pytest.mark.parametrize("after", [0, 1])
def test_without_its_history_a_request_is_a_conversation_of_its_own(
    rules: Rules, known: KnownHistory, failure: Exception, note: Note, after: int
):
    answers = Answers(*[known][:after], failure, recalled=FOUND)
    decision = decided(request_of(body(*PAST[4:], user(QUESTION)), rules, new_id="new"), rules, answers)
    assert (decision.conversation, decision.lineage.event, decision.note) == ("c-new", Event.START, note)
    assert decision.insertions == () and not any(isinstance(asked, Query) for asked in answers.asked)


@pytest.mark.parametrize(("failure", "note"), FAILURES)
def test_without_recall_only_the_blocks_of_before_are_sent(rules: Rules, failure: Exception, note: Note):
    known = seen_of(rules, PAST, blocks=(StoredBlock(106, BLOCK),))
    decision = decided(request_of(body(*PAST[4:], user(QUESTION)), rules), rules, Answers(known, recalled=failure))
    assert (decision.note, decision.lineage.event, decision.conversation) == (note, Event.TRUNCATE, "c-home")
    assert [insertion.text for insertion in decision.insertions] == [BLOCK.text]


def test_without_the_last_question_nothing_is_recalled(rules: Rules):
    loop = [user(QUESTION)]
    for step in range(4):
        loop += [calling((f"call-{step}", "read", {"path": f"{step}.py"})), tool(f"call-{step}", prose(30, step))]
    answers = Answers(seen_of(rules, loop), recalled=FOUND)
    answers.messages = MemoryFault("reading the journal: it is gone")
    decision = decided(request_of(body(*loop[3:]), rules), rules, answers)
    assert (decision.note, decision.block) == (Note.FAULT, None)


def test_request_that_goes_as_it_came_carries_nothing_and_says_why(rules: Rules, known: KnownHistory):
    decision = decided(request_of(body(*PAST[4:], user(QUESTION)), rules), rules, Answers(known, recalled=FOUND))
    bare = decision.bare(Note.TOO_LONG, 1000)
    assert (bare.insertions, bare.added.tokens, bare.note) == ((), 0, Note.TOO_LONG)
    assert bare.diagnosis.pressure.prompt_tokens == decision.own_tokens
    assert (bare.explain["note"], "block" in bare.explain) == ("too-long", False)


def test_a_secret_of_any_length_names_conversations_and_another_names_others() -> None:
    long = conversation_named("t", "session-1", b"s" * 100)
    assert long == conversation_named("t", "session-1", b"s" * 64) != conversation_named("t", "session-1", b"s" * 63)
    assert long != conversation_named("t", "session-1", b"s" * 100, user="ann")
