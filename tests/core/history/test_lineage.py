"""What a request continues, and what its client did to the history."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from palimpsest.core.history.lineage import RESTORED_GONE
from palimpsest.domain import Event, Json, Role

from tests.core.driving import (
    Client,
    Core,
    Verdict,
    assistant,
    calling,
    prose,
    system,
    tool,
    user,
)

SUMMARY = prose(90, "summary")  # long enough to be known again by any key; of 60 words the sample may be too small


@pytest.fixture
def client() -> Client:
    """Six turns old: system, then six questions and their answers."""
    client = Client(Core())
    client.talk(6)
    return client


@pytest.fixture
def worker() -> Client:
    """In the middle of a tool loop: a task, then eight calls with their results."""
    client = Client(Core(), tools=("read", "grep"))
    client.ask(prose(20, "task"), calling(("call-0", "read", {"path": "0.py"})))
    for step in range(1, 9):
        client.messages.append(tool(f"call-{step - 1}", prose(40, step)))
        client.send(calling((f"call-{step}", "read", {"path": f"{step}.py"})))
    client.messages.append(tool("call-8", prose(40, "last")))
    return client


def summarise(client: Client, history: list[Json] | None = None, answer: str = SUMMARY) -> Verdict:
    """Ask for a summary beside the conversation, as most clients do."""
    spoken = "\n".join(f"{m['role']}: {m['content']}" for m in history or client.messages[1:])
    return client.beside([system("You are a context summarization assistant."), user(spoken)], answer)


# --- what goes on ----------------------------------------------------------------------------------


def test_first_request_starts_a_conversation_of_its_own():
    core = Core()
    one, two = Client(core, seed=1).talk(1), Client(core, seed=2).talk(1)
    assert one.event is two.event is Event.START and one.role is Role.MAIN and one.conversation != two.conversation


def test_first_request_with_a_long_history_starts_a_conversation():
    history = [message for n in range(20) for message in (user(prose(20, n)), assistant(prose(30, -n - 1)))]
    assert Client(Core(), [system("Hi."), *history]).ask("And now?").event is Event.START


def test_human_message_behind_the_history_is_an_append(client: Client):
    verdict = client.ask("Go on.")
    assert verdict.event is Event.APPEND and verdict.lineage.kept == (*range(12), -1) and verdict.lineage.dropped == ()


def test_short_answers_lead_back_together_with_what_they_answered():
    client = Client(Core())
    assert [client.ask(text, "Ok.").event for text in ("one", "two", "three")] == ["start", "append", "append"]


def test_same_short_answer_to_another_question_leads_nowhere():
    core = Core()
    Client(core).ask("one", "Ok.")
    assert Client(core, [user("two"), assistant("Ok.")]).ask("go").event is Event.START


def test_tool_result_is_a_tool_step(worker: Client):
    assert worker.send().event is Event.TOOL


def test_parallel_tool_results_in_any_order_are_a_tool_step():
    client = Client(Core())
    client.ask("Look.", calling(("a", "read", {"path": "a"}), ("b", "read", {"path": "b"})))
    client.messages += [tool("b", prose(9, 1)), tool("a", prose(9, 2))]
    assert client.send().event is Event.TOOL


def test_human_message_behind_a_tool_result_is_an_append(worker: Client):
    assert worker.ask("Stop, and tell me what you found.").event is Event.APPEND


def test_tool_result_with_a_note_of_the_clients_behind_it_is_a_tool_step(worker: Client):
    worker.messages.append(user("<agent_done>\n" + prose(20, "note") + "\n</agent_done>\n"))
    assert worker.send().event is Event.TOOL


def test_retold_tool_call_with_its_result_as_user_message_is_a_tool_step(client: Client):
    client.ask(prose(20, "task"), calling(("c", "search", {"query": "x"})))
    client.messages[-1] = assistant("Calling tools: search(query=x)")
    client.messages.append(user(f"Observation:\n{prose(30, 'found')}"))
    assert client.send().event is Event.TOOL


def test_same_messages_again_are_a_retry(client: Client):
    client.ask("Go on.")
    del client.messages[-1]
    verdict = client.send()
    assert verdict.event is Event.RETRY and verdict.lineage.fresh == ()


def test_refused_request_leaves_nothing(client: Client):
    client.messages.append(user("Go on."))
    client.send(refused=True)
    assert client.send().event is Event.APPEND


def test_client_that_counts_its_tries_says_that_it_tries_again(client: Client):
    client.messages.append(user("Go on."))
    client.send(refused=True)
    client.headers["x-stainless-retry-count"] = "1"
    assert client.send().event is Event.RETRY


def test_call_leads_back_when_the_client_gives_it_another_id():
    client = Client(Core(), tools=("read",))
    home = client.ask("Look.", calling(("call-1", "read", {"path": "a.py"}))).conversation
    client.messages[-1:] = [calling(("other-1", "read", {"path": "a.py"})), tool("other-1", prose(20))]
    verdict = client.send()
    assert verdict.event is Event.TOOL and verdict.conversation == home


def test_equal_answers_are_told_apart_by_the_ids_of_their_calls():
    core = Core()
    twins = [Client(core, tools=("read",)) for _ in range(2)]
    homes = [c.ask("Look.", calling((f"call-{n}", "read", {"path": "a.py"}))).conversation for n, c in enumerate(twins)]
    for n in (1, 0):
        twins[n].messages.append(tool(f"call-{n}", prose(20)))
        verdict = twins[n].send()
        assert verdict.conversation == homes[n] and not verdict.lineage.ambiguous


GREETING = "Good morning, and welcome to the shop. You can ask me about orders, deliveries, returns and repairs."


def counted(first: str, who: str, result: str, answer: str = GREETING) -> list[Json]:
    """How a conversation begins with a model that counts its calls anew in each."""
    called = calling(("functions.load_profile:0", "load_profile", {"who": who}))
    return [user(first), called, tool("functions.load_profile:0", result), assistant(answer)]


@pytest.mark.parametrize(
    "other",
    [
        counted("Hello, Bob here.", "bob", '{"plan": 2}'),
        counted("Hello, Bob here.", "alice", '{"plan": 1}', "Welcome, Bob. What can I do for you?"),
        counted("Good morning, it is Alice.", "bob", '{"plan": 2}', "Welcome, Bob. What can I do for you?"),
    ],
    ids=["nothing else is the same", "the same call", "the same first words"],
)
def test_call_that_is_only_numbered_leads_to_no_other_conversation(other: list[Json]):
    core = Core()
    alice, bob = Client(core, tools=("load_profile",)), Client(core, tools=("load_profile",))
    alice.messages[1:] = counted("Good morning, it is Alice.", "alice", '{"plan": 1}', "Welcome, Alice.")
    home = alice.ask("My locker code is 7431.", "Noted, Alice.").conversation
    bob.messages[1:] = other
    first = bob.ask("I want to buy a bicycle.", prose(30, "bicycle"))
    assert first.event is Event.START and first.conversation != home
    assert bob.ask("A red one.", prose(30, "red")).conversation == first.conversation
    assert alice.ask("Anything else?", "No.").conversation == home


def test_calls_that_are_only_numbered_lead_back_beside_what_they_followed():
    client = Client(Core(), tools=("read",))
    home = client.ask("Look.", calling(("functions.read:0", "read", {"path": "a.py"}))).conversation
    for number in range(1, 5):
        client.messages.append(tool(f"functions.read:{number - 1}", f"{number} lines"))
        verdict = client.send(calling((f"functions.read:{number}", "read", {"path": "b.py"})))
        assert verdict.event is Event.TOOL and verdict.conversation == home


def test_conversation_that_the_caller_names_is_no_other_one_whatever_they_share():
    core = Core()
    same = ("Hello.", prose(30, "the same greeting"))
    clients = [Client(core, headers={"x-palimpsest-conversation": name}) for name in ("alice-1", "bob-1")]
    homes = [client.ask(*same).conversation for client in clients]
    assert len(set(homes)) == 2
    for client, home in zip(clients, homes, strict=True):
        verdict = client.ask("Go on.", prose(30, "the same again"))
        assert verdict.event is Event.APPEND and verdict.conversation == home
        client.messages[1:-2] = [user(f"Summary of the conversation so far: {prose(60, 'the same summary')}")]
        assert client.ask("And now?", prose(30, "now")).conversation == home


def test_conversation_that_the_caller_names_is_not_continued_by_who_does_not_name_it():
    core = Core()
    same = ("Hello.", prose(30, "the same greeting"))
    named, other = Client(core, headers={"x-palimpsest-conversation": "alice-1"}), Client(core)
    home = named.ask(*same).conversation
    other.messages += named.messages[len(other.messages) :]
    verdict = other.ask("My own business.", prose(30, "business"))
    assert verdict.event is Event.START and verdict.conversation != home
    assert other.ask("Go on.").conversation == verdict.conversation
    assert named.ask("Go on.").conversation == home


def test_answer_leads_back_when_the_client_leaves_its_thoughts_out():
    client = Client(Core())
    home = client.ask("Why?", f"<think>{prose(200, 'thought')}</think>\n\n{prose(40, 'answer')}").conversation
    client.messages[-1] = assistant(prose(40, "answer"))
    verdict = client.ask("And?")
    assert verdict.event is Event.APPEND and verdict.conversation == home


# --- edits -----------------------------------------------------------------------------------------

EDITS: dict[str, Callable[[list[Json]], list[Json]]] = {
    "last question asked otherwise": lambda m: [*m[:-2], user(prose(20, "other"))],
    "back by two turns": lambda m: [*m[:-4], user(prose(20, "other"))],
    "back to the first question": lambda m: [*m[:1], user(prose(20, "other"))],
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_history_with_another_end_is_no_compaction(client: Client, edit: Callable[[list[Json]], list[Json]]):
    client.messages = edit(client.messages)
    assert client.send().event in (Event.EDIT, Event.START)


def test_branch_goes_on_from_where_it_left(client: Client):
    branch = client.copy()
    client.talk(2)
    branch.messages = [*branch.messages[:-2], user(prose(20, "other"))]
    assert branch.send(prose(30, "other")).event is Event.EDIT
    assert client.talk(1).event is branch.talk(1).event is Event.APPEND


def test_answer_sent_back_in_other_words_is_no_edit(client: Client):
    client.messages[-1] = assistant(prose(30, "without the thoughts"))
    assert client.talk(1).event is Event.APPEND


def test_regenerated_answer_goes_on_as_a_branch(client: Client):
    other = client.copy()
    client.ask("Go on.", prose(30, "first answer"))
    assert other.ask("Go on.", prose(30, "second answer")).event is Event.RETRY
    assert client.talk(1).event is other.talk(1).event is Event.APPEND


def test_cleared_conversation_with_a_new_question_is_never_a_compaction(client: Client):
    client.messages = [*client.messages[:1], user(prose(20, "something else"))]
    assert not client.send().event.is_compaction


@pytest.mark.parametrize("examples", [2, 4, 6])
def test_conversation_cleared_down_to_the_examples_of_the_client_is_never_a_compaction(examples: int):
    shown = [m for n in range(examples // 2) for m in (user(prose(20, n)), assistant(prose(20, -n - 1)))]
    client = Client(Core(), [system("You are an editor."), *shown])
    client.talk(5)
    client.messages = [system("You are an editor."), *shown, user(prose(20, "something else"))]
    assert not client.send().event.is_compaction


def test_two_conversations_that_open_with_the_same_examples_are_two():
    core = Core()
    shown = [user(prose(20, "example")), assistant(prose(30, "example"))]
    one, two = (Client(core, [system("Edit."), *shown], seed=n) for n in (1, 2))
    assert one.talk(3).conversation != two.talk(3).conversation


@pytest.mark.parametrize("answered", [True, False])
def test_last_question_that_goes_on_otherwise_behind_the_same_beginning_is_an_edit(client: Client, answered: bool):
    client.messages.append(user(f"{prose(20, 'question')} and more"))
    client.send() if answered else client.copy().send()
    client.messages = [*client.messages[: -1 - answered], user(f"{prose(20, 'question')} and less")]
    assert client.send().event is Event.EDIT


BOILERPLATE = "Sure, I can help with that. Please tell me a little more about what you need, and I will get started."


@pytest.fixture
def other(client: Client) -> Client:
    """Another conversation, three turns old, that was answered first in words which fit any question."""
    other = Client(client.core, seed="other")
    other.ask("I need a lawyer.", BOILERPLATE)
    other.talk(2)
    return other


def test_edit_goes_back_to_its_conversation_though_a_shorter_one_was_answered_alike(other: Client):
    own = Client(other.core, seed="own")
    own.ask("I want to bake bread.", BOILERPLATE)
    home = own.talk(9).conversation
    own.messages[3:] = []
    verdict = own.ask("Which flour is best?")
    assert (verdict.event, verdict.conversation) == (Event.EDIT, home)


@pytest.mark.parametrize("front", [[], [user("Hi!"), assistant("Hello!")]], ids=["first", "behind others"])
def test_answer_alone_leads_nowhere_where_every_question_is_another_one(other: Client, front: list[Json]):
    asked = [user("How do I repair a bicycle?"), assistant(BOILERPLATE)]
    assert Client(other.core, [system("Hi."), *front, *asked]).ask("With what?").event is Event.START


@pytest.mark.parametrize("kept", [None, -2], ids=["all", "last exchange"])
def test_question_that_was_sent_with_more_around_it_and_is_kept_without_that_goes_on(client: Client, kept: int | None):
    homes = set()
    for turn in range(4):
        question = prose(20, ("question", turn))
        homes.add(client.ask(f"Answer by this context:\n{prose(40, ('context', turn))}\n{question}").conversation)
        client.messages[-2] = user(question)
        client.messages[1:] = client.messages[1:][kept:]
    assert len(homes) == 1


# --- edits of a compacted history ------------------------------------------------------------------


@pytest.fixture
def compacted(client: Client) -> Client:
    """Compacted, and asked something: the summary, two messages that were kept, a question and its answer."""
    summarise(client)
    client.messages[1:-2] = [user(SUMMARY)]
    assert client.ask(prose(20, "asked first")).event is Event.SUMMARY
    return client


def reworded(client: Client, words: object, dropped: int = 2) -> Verdict:
    """So many of the last messages are dropped, and something else is asked in their place."""
    del client.messages[-dropped:]
    return client.ask(prose(20, words))


def test_edit_of_the_question_that_a_compaction_came_with_restores_again(compacted: Client):
    verdict = reworded(compacted, "asked otherwise")
    assert verdict.event is Event.EDIT and verdict.lineage.restores
    assert RESTORED_GONE in verdict.lineage.evidence


def test_each_edit_of_an_edit_restores_again(compacted: Client):
    assert all(reworded(compacted, n).lineage.restores for n in range(20))


def test_question_that_begins_as_the_one_that_it_replaces_restores_again(compacted: Client):
    begins = prose(20, "asked first")
    compacted.messages[-2:] = [user(f"{begins} in other words")]
    verdict = compacted.send()
    assert verdict.event is Event.EDIT and verdict.lineage.restores


def test_what_follows_the_question_that_restored_restores_nothing(compacted: Client):
    assert not compacted.talk(2).lineage.restores
    assert not reworded(compacted, "asked otherwise").lineage.restores


def test_edit_some_turns_later_that_goes_back_behind_that_question_restores_again(compacted: Client):
    compacted.talk(2)
    assert reworded(compacted, "asked otherwise", dropped=6).lineage.restores
    assert not compacted.talk(1).lineage.restores


def test_edit_among_what_the_compaction_kept_restores_again(compacted: Client):
    assert reworded(compacted, "asked otherwise", dropped=4).lineage.restores


def test_same_question_again_restores_nothing_anew(compacted: Client):
    del compacted.messages[-1]
    verdict = compacted.send()
    assert verdict.event is Event.RETRY and not verdict.lineage.restores


def test_each_branch_from_one_compacted_history_restores_once(compacted: Client):
    branches = [compacted, *(compacted.copy() for _ in range(3))]
    for n, branch in enumerate(branches[1:]):
        branch.seed = n
        assert reworded(branch, ("branch", n)).lineage.restores
    assert not any(branch.talk(1).lineage.restores for _ in range(2) for branch in branches)
    assert reworded(branches[1], "other", dropped=6).lineage.restores


def test_edit_that_goes_back_before_the_compaction_restores_nothing(client: Client):
    whole = client.copy()
    summarise(client)
    client.messages[1:-2] = [user(SUMMARY)]
    client.talk(2)
    verdict = reworded(whole, "other", dropped=4)
    assert verdict.event is Event.EDIT and not verdict.lineage.restores


def test_of_several_compactions_the_newest_is_meant(compacted: Client):
    compacted.talk(1)
    second = prose(90, "second summary")
    summarise(compacted, answer=second)
    compacted.messages[1:-4] = [user(second)]  # the question that the first came with is still there
    assert compacted.talk(1).event is Event.SUMMARY
    assert reworded(compacted, "other").lineage.restores
    assert not reworded(compacted.copy(), "next", dropped=0).lineage.restores


def test_compaction_in_the_middle_of_work_is_not_undone_by_an_edit_of_a_later_question(worker: Client):
    summarise(worker)
    worker.messages[1:-4] = [user(SUMMARY)]
    assert worker.send().event is Event.SUMMARY
    worker.talk(1)
    verdict = reworded(worker, "other")
    assert verdict.event is Event.EDIT and not verdict.lineage.restores


def test_edit_in_a_window_that_slides_restores_nothing_that_the_question_before_did_not(client: Client):
    seen = []
    for turn in range(4):
        del client.messages[1:3]
        seen.append(client.ask(prose(20, ("slides", turn))).lineage.restores)
    assert seen == [True, False, False, False]
    assert not reworded(client, "other").lineage.restores
    for turn in range(3):
        client.ask(prose(20, ("grows", turn)))
    assert not reworded(client, "other").lineage.restores


CLEARED: dict[str, tuple[list[Json], list[Json], list[Json]]] = {
    "to nothing": ([], [], []),
    "to what the client puts in front": ([user(prose(30, "rules"))], [user(SUMMARY)], []),
    "to a reminder that stands last": ([], [], [user(prose(20, "reminder"))]),
}


@pytest.mark.parametrize(("front", "summary", "last"), CLEARED.values(), ids=CLEARED)
def test_compacted_history_that_is_cleared_restores_nothing(front: list[Json], summary: list[Json], last: list[Json]):
    client = Client(Core(), [system("Hi."), *front], headers={"x-session-id": "one"})
    client.talk(4)
    said = client.messages[-2:]
    client.messages = [system("Hi."), *front, *summary, *said, user(prose(20, "asked first")), *last]
    compacted = client.send()
    client.messages = [system("Hi."), *front, user(prose(20, "something else")), *last]
    cleared = client.send()
    assert cleared.event is Event.EDIT and cleared.conversation == compacted.conversation
    assert compacted.lineage.restores and not cleared.lineage.restores


def test_summary_in_the_system_prompt_is_a_compacted_history_too(client: Client):
    summarise(client)
    client.messages = [client.messages[0], system(f"Summary: {SUMMARY}")]
    assert client.talk(1).event is Event.SUMMARY
    assert reworded(client, "other").lineage.restores


# --- truncation ------------------------------------------------------------------------------------


@pytest.mark.parametrize("dropped", [2, 4, 6, 10])
def test_oldest_messages_gone_and_nothing_in_their_place_is_a_truncation(client: Client, dropped: int):
    del client.messages[1 : 1 + dropped]
    verdict = client.talk(1)
    assert verdict.event is Event.TRUNCATE and verdict.lineage.dropped == tuple(range(dropped))


def test_single_oldest_message_gone_is_a_truncation(client: Client):
    del client.messages[1]
    assert client.talk(1).event is Event.TRUNCATE


def test_sliding_window_truncates_at_every_request_and_is_one_state(client: Client):
    seen = []
    for turn in range(5):
        client.messages.append(user(prose(20, turn)))
        client.messages[1:] = client.messages[-7:]
        seen.append(client.send())
    assert {verdict.event for verdict in seen} == {Event.TRUNCATE} and len({v.conversation for v in seen}) == 1
    assert [verdict.lineage.window_full for verdict in seen] == [False, True, True, True, True]


def test_window_in_a_tool_loop_may_begin_with_an_orphaned_result(worker: Client):
    worker.messages[1:] = worker.messages[5:]
    assert worker.messages[1]["role"] == "tool"
    assert worker.send().event is Event.TRUNCATE


def test_window_of_two_messages_is_a_truncation(client: Client):
    client.messages[1:] = [*client.messages[-1:], user("Go on.")]
    assert client.send().event is Event.TRUNCATE


def test_window_that_swallows_the_system_prompt_is_a_truncation(client: Client):
    client.messages = [*client.messages[-3:], user("Go on.")]
    assert client.send().event is Event.TRUNCATE


@pytest.mark.parametrize("marker", [user("Skipped 3 messages."), user("[3 earlier messages were removed]")])
def test_middle_cut_out_with_a_marker_is_a_truncation(client: Client, marker: Json):
    client.messages[3:9] = [marker]
    assert client.talk(1).event is Event.TRUNCATE


def test_oldest_kept_message_cut_in_its_middle_is_kept(client: Client):
    del client.messages[1:4]
    text = client.messages[1]["content"]
    client.messages[1] = client.messages[1] | {"content": f"{text[:50]}\n...\n{text[-30:]}"}
    verdict = client.talk(1)
    assert verdict.event is Event.TRUNCATE and verdict.lineage.changed == (0,)


# --- summaries -------------------------------------------------------------------------------------

STANDING: dict[str, Callable[[list[Json]], list[Json]]] = {
    "user message, then the last turns": lambda m: [m[0], user(f"Summary so far:\n\n{SUMMARY}"), *m[-4:]],
    "second system message": lambda m: [m[0], system(f"Summary so far: {SUMMARY}"), *m[-4:]],
    "assistant message behind a made-up question": lambda m: [
        m[0], user("What did we do so far?"), assistant(SUMMARY), *m[-4:]
    ],
    "bare user message": lambda m: [m[0], user(SUMMARY), *m[-4:]],
    "inside the system prompt": lambda m: [system(f"{m[0]['content']}\n\n{SUMMARY}"), *m[-4:]],
    "user message and an acknowledgement": lambda m: [
        m[0], user(f"<state_snapshot>{SUMMARY}</state_snapshot>"), assistant("Got it. Thanks!"), *m[-4:]
    ],
    "in the middle, the first turns kept": lambda m: [*m[:3], user(SUMMARY), *m[-4:]],
    "behind all that people said": lambda m: [m[0], *[x for x in m[1:] if x["role"] == "user"], user(SUMMARY)],
}  # fmt: skip


@pytest.mark.parametrize("compact", STANDING.values(), ids=STANDING)
def test_answer_to_a_summariser_that_stands_in_the_next_request_is_a_summary(
    client: Client, compact: Callable[[list[Json]], list[Json]]
):
    home = client.talk(1).conversation
    summarise(client)
    client.messages = [*compact(client.messages), user("Go on.")]
    verdict = client.send()
    assert verdict.event is Event.SUMMARY and verdict.conversation == home


@pytest.mark.parametrize("compact", STANDING.values(), ids=STANDING)
def test_summary_that_comes_trimmed_and_without_its_first_words_is_one(
    client: Client, compact: Callable[[list[Json]], list[Json]]
):
    summarise(client, answer=f"<analysis>{prose(40, 'thought')}</analysis>\n\n<summary>{SUMMARY}</summary>")
    client.messages = [*compact(client.messages), user("Go on.")]
    assert client.send().event is Event.SUMMARY


def test_nothing_kept_but_the_summary_is_a_summary_of_its_conversation(client: Client):
    home = client.talk(1).conversation
    summarise(client)
    client.messages = [client.messages[0], user(f"Summary of the work so far:\n{SUMMARY}\n\nGo on.")]
    verdict = client.send()
    assert verdict.event is Event.SUMMARY and verdict.conversation == home and len(verdict.lineage.dropped) == 14


@pytest.mark.parametrize("agrees", [(), (assistant("Understood, I go on from there."),)], ids=["", "agrees"])
@pytest.mark.parametrize("beside", [True, False], ids=["asked for beside it", "asked for in it"])
def test_summary_tells_two_conversations_apart_that_go_on_with_the_same_word(beside: bool, agrees: tuple[Json, ...]):
    """One client's summaries share their headings, the words in front of them, and its own answer behind them."""
    core, homes = Core(), []
    for number in range(2):
        client = Client(core, seed=number)
        homes.append(client.talk(6).conversation)
        said = f"1. Primary request and intent of the user in this session: {prose(90, number)}"
        if beside:
            summarise(client, answer=said)
        else:
            client.ask("Sum up what we did.", assistant(said))
        client.messages[1:] = [user(f"This session is continued from a previous conversation. It is:\n{said}"), *agrees]
        verdict = client.ask("continue", assistant("Good."))
        assert verdict.event is Event.SUMMARY and verdict.conversation == homes[-1]


@pytest.mark.repeats
def test_short_summary_is_known_however_few_of_its_words_are_sampled():
    """Of 37 words the store keeps seven runs or so, by chance of their hashes: of one summary in 25 fewer than four."""
    events = []
    for seed in range(100):
        again = Client(Core(), seed=seed)
        again.talk(2)
        said = prose(37, ("short", seed))
        summarise(again, answer=said)
        again.messages = [again.messages[0], user(f"I spoke to you previously about a number of things.\n{said}")]
        again.messages += [assistant("Ok."), user("Go on.")]
        events.append(again.send().event)
    assert events.count(Event.SUMMARY) >= 99


def test_nothing_kept_but_a_system_message_with_the_summary_is_a_summary(client: Client):
    summarise(client)
    client.messages = [client.messages[0], system(f"Summary of the conversation so far: {SUMMARY}")]
    assert client.send().event is Event.SUMMARY


def test_summary_that_the_client_made_without_us_is_a_summary(client: Client):
    client.messages[1:-4] = [user(f"Here is what happened before:\n{SUMMARY}")]
    verdict = client.talk(1)
    assert verdict.event is Event.SUMMARY and verdict.lineage.summary_at == (0,)


RESUMED = (
    "This session is being continued from a previous conversation. The first request was: {said} It asks for more."
)


def test_text_that_says_it_goes_on_with_what_was_said_is_a_summary_though_nothing_else_is_left(client: Client):
    home = client.talk(1).conversation
    client.messages = [client.messages[0], user(RESUMED.format(said=client.messages[1]["content"])), user("And now?")]
    verdict = client.send()
    assert verdict.event is Event.SUMMARY and verdict.conversation == home and verdict.lineage.summary_at == (0,)


def test_beginning_of_a_long_task_leads_back_to_it():
    core = Core()
    for number in range(6):  # one sample of a long text might hold its beginning by chance
        client = Client(core)
        task = prose(600, f"task {number}")
        home = client.ask(task, assistant(prose(30, f"answer {number}"))).conversation
        quoted = " ".join(task.split()[:40])
        client.messages = [client.messages[0], user(RESUMED.format(said=quoted)), user("And now?")]
        verdict = client.send()
        assert verdict.event is Event.SUMMARY and verdict.conversation == home


def test_words_of_assistants_that_never_passed_here_are_no_answer_that_is_left(client: Client):
    own = prose(40, "own")
    client.messages += [user("Go on."), assistant(own), user("And then?")]
    home = client.send().conversation
    said = client.messages[1]["content"]
    client.messages = [client.messages[0], user(RESUMED.format(said=said)), assistant(f"{own} More."), user("And now?")]
    verdict = client.send()
    assert verdict.event is Event.SUMMARY and verdict.conversation == home


@pytest.mark.parametrize(
    ("prompt", "says"),
    [("You are a careful assistant.", "Please do this: {said} " * 2), ("You are another assistant.", RESUMED)],
    ids=["says nothing of it", "another system prompt"],
)
def test_text_that_quotes_what_was_said_elsewhere_is_a_start(client: Client, prompt: str, says: str):
    quoting = says.format(said=client.messages[1]["content"])
    client.messages = [system(prompt), user(quoting)]
    assert client.send().event is Event.START


def test_summary_in_the_middle_of_a_tool_loop_is_a_summary(worker: Client):
    summarise(worker)
    worker.messages[1:-4] = [user(f"Context summary:\n\n{SUMMARY}")]
    assert worker.messages[2]["role"] == "assistant"
    assert worker.send().event is Event.SUMMARY


def test_next_summary_replaces_the_summary_before(client: Client):
    for cycle in range(3):
        said = prose(60, cycle)
        summarise(client, answer=said)
        client.messages[1:-4] = [user(f"Here is what happened before:\n{said}")]
        assert client.talk(1).event is Event.SUMMARY
        assert client.talk(4).event is Event.APPEND


def test_summary_in_the_words_of_the_one_before_is_one_where_it_stands_behind_later_messages(client: Client):
    questions = [message for message in client.messages if message["role"] == "user"]
    summarise(client)
    client.messages[1:] = [*questions, user(f"Another model wrote this: {SUMMARY}")]
    assert client.talk(3).event is Event.APPEND
    asked = [message for message in client.messages if message["role"] == "user"]
    client.messages[1:] = [*questions, *asked[len(questions) + 1 :], asked[len(questions)]]
    assert client.ask(prose(20, "more")).event is Event.SUMMARY


OPAQUE: Json = {"type": "compaction", "encrypted_content": "b3BhcXVl"}


def test_what_only_the_provider_can_read_stands_for_what_is_gone(client: Client):
    home = client.talk(1).conversation
    client.messages[1:-2] = [assistant("") | {"content": [OPAQUE]}]
    compacted = client.ask(prose(20, "more"))
    assert (compacted.event, compacted.conversation) == (Event.SUMMARY, home)
    assert client.talk(1).event is Event.APPEND


def test_what_only_the_provider_can_read_beside_the_whole_history_is_no_compaction(client: Client):
    client.messages.insert(3, assistant("") | {"content": [OPAQUE]})
    assert client.talk(1).event is Event.APPEND


def test_what_only_the_provider_can_read_leads_back_when_nothing_else_does(client: Client):
    home = client.talk(1).conversation
    answer = assistant("") | {"content": [OPAQUE]}
    asked = [*client.messages[1:], user("Create a summary of the conversation above. Provide a detailed summary.")]
    assert client.core.hear({"model": "large", "messages": asked}, answer).role is Role.SIDE
    client.messages[1:] = [answer]
    compacted = client.ask("Where were we?")
    assert (compacted.event, compacted.conversation) == (Event.SUMMARY, home)


def test_what_the_provider_compacted_in_its_answer_stands_for_what_was_before(client: Client):
    compacted = {"type": "compaction", "content": SUMMARY}
    answer = assistant("") | {"content": [compacted, {"type": "text", "text": prose(20, "answer")}]}
    home = client.ask(prose(20, "more"), answer).conversation
    client.messages[1:-1] = []
    after = client.ask(prose(20, "even more"))
    assert (after.event, after.conversation) == (Event.SUMMARY, home)
    assert client.talk(1).event is Event.APPEND


def test_summary_that_loses_its_company_is_no_second_compaction(client: Client):
    """Files that were read again beside it are gone once the client's process starts anew."""
    summarise(client)
    again = f"What the files hold now.\n{prose(60, 'files')}"
    client.messages[1:] = [user(again), user(f"{prose(60, 'more files')}\n{SUMMARY}")]
    assert client.send(prose(20, "answer")).event is Event.SUMMARY
    client.messages[1:3] = [user(f"It goes on.\n{SUMMARY}")]
    wrapped = client.ask(prose(20, "next"))
    assert (wrapped.event, wrapped.lineage.summary_at) == (Event.APPEND, (0,))
    summarise(client, answer=prose(60, "second"))
    client.messages[1:] = [user(f"It goes on.\n{prose(60, 'second')}")]
    assert client.ask(prose(20, "last")).event is Event.SUMMARY


def test_summary_renewed_behind_the_same_opening_is_still_no_word_of_the_users(client: Client):
    """Where nothing else is gone: the client summed up its summary alone."""
    opening = f"What was said before this point was compacted into the following summary: {prose(40, 'opening')}"
    summarise(client)
    client.messages[1:-4] = [user(f"{opening}\n{SUMMARY}")]
    assert client.ask(prose(20, "one")).event is Event.SUMMARY
    summarise(client, answer=prose(60, "second"))
    client.messages[1] = user(f"{opening}\n{prose(60, 'second')}")
    renewed = client.ask(prose(20, "two"))
    assert (renewed.event, renewed.lineage.summary_at) == (Event.APPEND, (0,))


def test_summary_renewed_at_every_turn_is_a_summary_each_time(client: Client):
    for cycle in range(3):
        said = prose(60, cycle)
        summarise(client, answer=said)
        client.messages = [client.messages[0], system(said), *client.messages[-3:], user(prose(20, cycle))]
        assert client.send().event is Event.SUMMARY


def test_first_question_kept_before_the_summary_is_a_summary(client: Client):
    client.messages[2:-3] = [user(f"The middle was condensed:\n{SUMMARY}")]
    assert client.talk(1).event is Event.SUMMARY


def test_summary_that_was_thrown_away_is_no_compaction(client: Client):
    summarise(client)
    assert client.talk(2).event is Event.APPEND


def test_of_two_summaries_made_at_once_either_may_come_back(client: Client):
    summarise(client, client.messages[1:7], prose(60, "one"))
    summarise(client, client.messages[7:], prose(60, "two"))
    client.messages[1:-4] = [user(f"{prose(60, 'one')}\n\n---\n\n{prose(60, 'two')}")]
    assert client.talk(1).event is Event.SUMMARY


def test_summary_asked_for_by_a_person_stays_a_part_of_the_history(client: Client):
    client.ask("Summarize our conversation so far, please.", SUMMARY)
    assert client.ask("Thank you.").event is Event.APPEND


@pytest.mark.parametrize("answer", [SUMMARY, f"The user asked: {prose(60, 'daily task')} It was done. {SUMMARY}"])
def test_task_given_anew_is_a_start_although_a_summary_quotes_it(answer: str):
    core = Core()
    task = f"Today is {{}}. {prose(60, 'daily task')}"
    client = Client(core, seed="monday")
    client.ask(task.format("Monday"))
    client.talk(5)
    summarise(client, answer=answer)
    client.messages[1:-4] = [user(f"Here is what happened before:\n{answer}")]
    assert client.talk(1).event is Event.SUMMARY
    assert Client(core, seed="tuesday").ask(task.format("Tuesday")).event is Event.START
    assert Client(core, seed="later").ask(task.format("Monday")).event is Event.START


def test_summary_that_stands_in_the_system_prompt_is_new_only_once(client: Client):
    summarise(client)
    client.messages = [client.messages[0], system(f"Summary: {SUMMARY}"), *client.messages[-6:]]
    assert client.talk(1).event is Event.SUMMARY
    assert client.talk(1).event is Event.APPEND
    client.messages[-2:] = [user(prose(20, "asked otherwise"))]
    assert client.send().event is Event.EDIT
    del client.messages[2:4]
    assert client.talk(1).event is Event.TRUNCATE


# --- cleared tool results --------------------------------------------------------------------------


@pytest.mark.parametrize("placeholder", ["[cleared]", "", f"{prose(10)} ... (truncated)"])
def test_tool_results_replaced_in_their_places_are_cleared(worker: Client, placeholder: str):
    for at in (3, 5):
        worker.messages[at] = worker.messages[at] | {"content": placeholder}
    verdict = worker.send()
    assert verdict.event is Event.CLEAR and len(verdict.lineage.dropped) == 2


def test_clearing_that_moves_on_with_every_request_is_clearing_each_time(worker: Client):
    for step in range(9, 12):
        worker.messages[(step - 9) * 2 + 3]["content"] = "[cleared]"
        verdict = worker.send(calling((f"call-{step}", "read", {"path": "x.py"})))
        assert verdict.event is Event.CLEAR
        worker.messages.append(tool(f"call-{step}", prose(40, step)))


def test_calls_dropped_together_with_their_results_are_a_truncation(worker: Client):
    del worker.messages[2:8]
    assert worker.send().event is Event.TRUNCATE


# --- what clients rebuild at every request ---------------------------------------------------------


def test_reminder_glued_to_the_last_message_and_taken_off_again_is_no_compaction(client: Client):
    seen = []
    for turn in range(4):
        client.messages.append(user(prose(20, turn) + "\n\nRemember: answer in French."))
        seen.append(client.send().event)
        client.messages[-2] = user(prose(20, turn))
    assert set(seen) == {Event.APPEND}


def test_reminder_message_that_always_stands_last_is_no_compaction():
    client = Client(Core())
    seen = []
    for turn in range(4):
        client.messages += [user(prose(20, turn)), user(prose(40, "reminder"))]
        seen.append(client.send().event)
        del client.messages[-2]
    assert seen == ["start", "append", "append", "append"]


def test_reminder_that_stands_beside_one_question_only_is_no_compaction(client: Client):
    client.messages += [user(prose(20, "question")), user(prose(40, "reminder"))]
    client.send()
    del client.messages[-2]
    assert client.talk(1).event is Event.APPEND


def test_one_message_cut_out_of_the_middle_is_a_truncation(client: Client):
    del client.messages[5]
    assert client.talk(1).event is Event.TRUNCATE


def test_files_rewritten_in_front_of_the_dialogue_are_no_compaction():
    client = Client(Core())
    dialogue: list[Json] = []
    seen = []
    for turn in range(4):
        dialogue.append(user(prose(20, turn)))
        files = [user(f"The file:\n{prose(80, turn)}"), assistant("Ok.")]
        client.messages = [system(f"Edit. It is {turn} o'clock."), *files, *dialogue]
        seen.append(client.send().event)
        dialogue.append(client.messages[-1])
    assert seen == ["start", "append", "append", "append"]


@pytest.mark.parametrize("stands", [0, 1], ids=["first", "before the question"])
def test_context_that_is_looked_up_anew_for_every_question_is_no_compaction(stands: int):
    client = Client(Core())
    dialogue: list[Json] = []
    seen = []
    for turn in range(5):
        looked_up = user(prose(80, ("looked up", turn)))
        at = len(dialogue) * stands
        dialogue.append(user(prose(20, turn)))
        client.messages = [system("Answer from the documents."), *dialogue[:at], looked_up, *dialogue[at:]]
        seen.append(client.send().event)
        dialogue.append(client.messages[-1])
    assert seen == ["start", "append", "append", "append", "append"]


@pytest.mark.parametrize("told", ["It is 2031-01-{}.", "You have {} dollars left.", "Turn {}"])
def test_system_prompt_that_changes_with_every_request_is_no_event(client: Client, told: str):
    for turn in range(3):
        client.messages[0] = system(told.format(10 + turn))
        assert client.talk(1).event is Event.APPEND


def test_hand_over_that_filters_tool_steps_out_is_no_compaction(worker: Client):
    worker.send()
    worker.messages = [system("You are the second agent."), *[m for m in worker.messages[1:] if is_spoken(m)]]
    assert not worker.talk(1).event.is_compaction


def is_spoken(message: Json) -> bool:
    return message["role"] != "tool" and not message.get("tool_calls")


# --- who it is -------------------------------------------------------------------------------------


def test_client_id_leads_back_when_nothing_else_does():
    client = Client(Core(), headers={"x-palimpsest-conversation": "c"})
    home = client.talk(3).conversation
    client.messages = [system("Hi."), user(prose(20, "new"))]
    verdict = client.send()
    assert verdict.conversation == home and verdict.event is Event.TRUNCATE


def test_two_client_ids_keep_equal_conversations_apart():
    core = Core()
    one, two = (Client(core, headers={"x-session-id": name}) for name in ("1", "2"))
    assert one.talk(3).conversation != two.talk(3).conversation


def test_twins_are_ambiguous_until_they_differ():
    core = Core()
    one, two = Client(core), Client(core)
    first, second = one.ask("Hello!"), two.ask("Hello!")
    assert first.event is second.event is Event.START and first.conversation != second.conversation
    assert one.ask("Go on.", prose(30, "one")).lineage.ambiguous
    assert two.ask("And then?", prose(30, "two")).event is Event.APPEND
    apart = one.talk(1), two.talk(1)
    assert not any(v.lineage.ambiguous for v in apart) and apart[0].conversation != apart[1].conversation


def test_sub_agent_is_known_by_the_task_that_a_call_gave_it(client: Client):
    task = "Find every caller of the function and list them by file."
    home = client.ask("Look into it.", calling(("c", "delegate", {"kind": "explore", "prompt": task}))).conversation
    agent = Client(client.core, [system("You explore."), user(task)], seed="agent")
    first, second = agent.send(), agent.talk(1)
    assert first.role is second.role is Role.SUBAGENT and first.lineage.parent == home
    assert first.conversation == second.conversation != home
    client.messages.append(tool("c", agent.messages[-1]["content"]))
    assert client.send().event is Event.TOOL


def test_sub_agent_that_names_its_parent_is_one():
    core = Core()
    home = Client(core, headers={"x-session-id": "top"}).talk(2).conversation
    agent = Client(core, [user("Look.")], headers={"x-session-id": "below", "x-parent-session-id": "top"})
    verdict = agent.send()
    assert verdict.role is Role.SUBAGENT and verdict.lineage.parent == home != verdict.conversation


def test_sub_agent_that_shares_the_id_of_its_conversation_is_known_by_its_task():
    named, reminder = {"x-session-id": "one"}, "<reminder>\nThe date is known, and so is the place.\n</reminder>\n"
    task = "Find every caller of the function and list them by file."
    client = Client(Core(), [system("You work."), user(f"{reminder}Look into it.")], headers=named)
    home = client.send(calling(("c", "delegate", {"kind": "explore", "prompt": task}))).conversation
    agent = Client(client.core, [system("You explore."), user(f"{reminder}{task}")], seed="agent", headers=named)
    first, second = agent.send(), agent.talk(1)
    assert first.role is second.role is Role.SUBAGENT and first.lineage.parent == home
    assert first.conversation == second.conversation != home
    client.messages.append(tool("c", agent.messages[-1]["content"]))
    going_on = client.send()
    assert (going_on.event, going_on.role, going_on.conversation) == (Event.TOOL, Role.MAIN, home)


def test_task_behind_a_reminder_of_the_clients_is_still_a_sub_agents(client: Client):
    task = "Find every caller of the function and list them by file."
    home = client.ask("Look into it.", calling(("c", "delegate", {"kind": "explore", "prompt": task}))).conversation
    reminded = user(f"<reminder>\nThe date is known.\n</reminder>\n\n{task}")
    verdict = Client(client.core, [system("You explore."), reminded], seed="agent").send()
    assert (verdict.role, verdict.lineage.parent) == (Role.SUBAGENT, home)


def test_parallel_sub_agents_with_identical_bytes_never_join_each_other():
    core = Core()
    task = "Read the documentation and report on it in full."
    Client(core).ask("Go.", calling(("a", "task", {"prompt": task}), ("b", "task", {"prompt": task})))
    agents = [Client(core, [system("You explore."), user(task)]) for _ in range(2)]
    assert (
        len({agent.send("Same answer to both of them, and long enough to lead back.").conversation for agent in agents})
        == 2
    )
