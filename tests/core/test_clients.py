"""
Behaviour of clients that could not be recorded, one story each, after their sources. The core knows none by name.

Facts: the clients' own repositories, read and not run. The words are ours wherever they do not matter.
"""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest
from palimpsest.domain import Event, Json, Role
from palimpsest.wire import chat

from tests.core.driving import Client, Core, Verdict, assistant, calling, prose, system, tool, user

RECORDED = Path(__file__).parent / "caller" / "open_webui.jsonl"
SUMMARY = prose(80, "summary")
CODER = "You are a coding agent in a terminal. Work step by step with your tools."
TOOLS = ("read", "edit", "bash")


@pytest.fixture
def coder() -> Client:
    """Two turns of talk, then a task in its sixth tool step."""
    client = Client(Core(), [system(CODER)], tools=TOOLS)
    client.talk(2)
    return at_work(client)


def at_work(client: Client, steps: int = 6) -> Client:
    client.ask(f"Please repair the parser. {prose(30, (client.seed, 'task'))}", call(client, 0))
    for step in range(1, steps):
        client.messages.append(result(client, step - 1))
        client.send(call(client, step))
    client.messages.append(result(client, steps - 1))
    return client


def call(client: Client, step: int) -> Json:
    return calling((f"call_9f3kz{client.seed}{client.answers}{step}q", "read", {"path": f"src/{step}.py"}))


def result(client: Client, step: int) -> Json:
    return tool(client.messages[-1]["tool_calls"][0]["id"], prose(60, (client.seed, "result", client.answers, step)))


def spoken(messages: list[Json]) -> str:
    """The history written out, calls and results as text."""
    return "\n".join(f"[{m['role'].title()}]: {m['content'] or m.get('tool_calls')}" for m in messages)


def summary_of(client: Client, verdict: Verdict, home: str) -> None:
    assert (verdict.role, verdict.event, verdict.conversation) == (Role.MAIN, Event.SUMMARY, home)


# --- nothing is kept but the summary ---------------------------------------------------------------


def test_history_may_start_at_the_summary_with_the_prompt_quoted_behind_it(coder: Client):
    home = coder.send(call(coder, 7)).conversation
    asked = [
        system("You are summarizing a conversation to preserve context for continuing work later."),
        *coder.messages[1:],
    ]
    side = coder.beside([*asked, user("Provide a detailed summary of our conversation above.")], SUMMARY)
    assert (side.role, side.lineage.parent) == (Role.SIDE, home)
    task = coder.messages[5]["content"]
    coder.messages[1:] = [
        user(SUMMARY),
        user(f"The previous session was interrupted because it got too long, the initial user request was: `{task}`"),
    ]
    summary_of(coder, coder.send(call(coder, 8)), home)
    coder.messages.append(result(coder, 8))
    assert coder.send().event is Event.TOOL


def test_fresh_start_with_one_user_message_that_holds_summary_and_files(coder: Client):
    home = coder.send(call(coder, 7)).conversation
    coder.beside(
        [system("You are a helpful AI assistant tasked with summarizing conversations."), user(spoken(coder.messages))],
        SUMMARY,
    )
    coder.messages[1:] = [user(f"## Conversation Summary\n{SUMMARY}\n\n## Folded files\n{prose(300, 'files')}")]
    summary_of(coder, coder.send(), home)


def test_task_that_is_all_one_user_message_is_replaced_by_its_summary():
    client = at_work(Client(Core(), [system("You are Researcher. Your goal: find records.")], tools=TOOLS))
    home = client.send(call(client, 7)).conversation
    order = "Analyze the following conversation and create a structured summary."
    told = f"{order}\n<conversation>\n{spoken(client.messages[1:])}"
    side = client.beside(
        [system("You are a precise assistant that creates structured summaries of agent conversations."), user(told)],
        SUMMARY,
    )
    assert (side.role, side.lineage.parent) == (Role.SIDE, home)
    client.messages[1:] = [user(f"<summary>\n{SUMMARY}\n</summary>\n\nContinue the task from where it left off.")]
    summary_of(client, client.send(), home)


def test_system_prompt_goes_too_when_only_the_summary_is_left(coder: Client):
    home = coder.send(call(coder, 7)).conversation
    coder.beside([system("Summarize this conversation."), *coder.messages[1:]], SUMMARY)
    coder.messages = [assistant(SUMMARY), user("Go on.")]
    summary_of(coder, coder.send(), home)


# --- the task is gone, or stands apart -------------------------------------------------------------


def test_task_gone_and_compacted_between_a_call_and_its_answer(coder: Client):
    home = coder.send(call(coder, 7)).conversation
    coder.messages.append(result(coder, 7))
    side = coder.beside(
        [system("Summarize the provided coding session for whoever continues it."), user(spoken(coder.messages[1:-2]))],
        SUMMARY,
        max_tokens=800,
    )
    assert side.role is Role.SIDE
    coder.messages[1:-4] = [user(f"Context summary:\n\n{SUMMARY}")]
    summary_of(coder, coder.send(), home)


def test_first_events_stay_and_the_middle_becomes_a_bare_summary(coder: Client):
    home = coder.send(call(coder, 7)).conversation
    events = "\n".join(f"<EVENT id={n}>\n{m['content']}\n</EVENT>" for n, m in enumerate(coder.messages[3:9]))
    side = coder.beside(
        [user(f"You are maintaining a context-aware state summary for an interactive agent.\n{events}")], SUMMARY
    )
    assert side.role is Role.SIDE
    coder.messages.append(result(coder, 7))
    coder.messages[3:9] = [user(SUMMARY)]
    summary_of(coder, coder.send(), home)


def test_calls_without_results_are_given_made_up_ones_beside_the_summary(coder: Client):
    home = coder.send(call(coder, 7)).conversation
    orphan = coder.messages[-1]
    coder.messages[1:] = [
        user(f"## Conversation Summary\n{SUMMARY}"),
        orphan,
        tool(orphan["tool_calls"][0]["id"], "Deferred."),
    ]
    summary_of(coder, coder.send(), home)


# --- odd side requests -----------------------------------------------------------------------------


def test_two_summaries_asked_for_at_once_right_after_a_turn_may_come_back_later_or_never(coder: Client):
    home = coder.send("Done.").conversation
    halves = coder.messages[1:9], coder.messages[9:]
    asked = [system("You are a context summarization assistant. Read a conversation and produce a structured summary.")]
    for half, said in zip(halves, (SUMMARY, prose(80, "other half")), strict=True):
        assert coder.beside([*asked, user(spoken(half))], said).role is Role.SIDE
    later = coder.copy()
    assert coder.ask("Now test it.", prose(30, "now")).event is Event.APPEND
    later.messages[1:-3] = [user(f"The history before this point was compacted into:\n<summary>{SUMMARY}</summary>")]
    summary_of(later, later.ask("Now test it."), home)


def test_raw_history_with_the_same_tools_and_the_order_glued_to_the_last_result(coder: Client):
    home = coder.copy().send(call(coder, 7)).conversation
    order = (
        "CRITICAL: Respond with TEXT ONLY. Do NOT call any tools.\n\nYour task is to create a detailed summary of the "
        f"conversation so far. {prose(80, 'template')}\n\nPut your summary in <summary> tags."
    )
    side = coder.beside(
        [*coder.messages, user(order)],
        f"<summary>{SUMMARY}</summary>",
        tools=[{"function": {"name": n}} for n in TOOLS],
    )
    assert (side.role, side.lineage.parent) == (Role.SIDE, home)
    coder.messages[1:] = [user(f"This session is being continued from a previous conversation. {SUMMARY}")]
    summary_of(coder, coder.send(), home)


def test_memory_extraction_over_the_raw_history_with_some_tools_is_beside_it(coder: Client):
    home = coder.send("Done.").conversation
    extractor = [
        system("You are now acting as the managed memory extraction subagent for an AI coding assistant."),
        *coder.messages[1:],
    ]
    asked = [*extractor, user("Managed memory directory: `/memory`. Read it, then update it.")]
    side = coder.beside(asked, tools=[{"function": {"name": "read"}}])
    assert (side.role, side.conversation) == (Role.SIDE, home)
    assert coder.ask("Go on.").event is Event.APPEND


@pytest.mark.parametrize(
    "order",
    [
        "### Task:\nGenerate a concise, 3-5 word title summarizing the chat history.\n### Chat History:\n{told}",
        "### Task:\nGenerate 1-3 broad tags categorizing the main themes of the chat history.\n### History:\n{told}",
        "### Task:\nSuggest 3-5 relevant follow-up questions to continue the chat, given the conversation.\n{told}",
        "Provide a concise, 5-word-or-less title for the conversation, using its same language:\n\n{told}",
        "Based on the chat history, give this conversation a name. Keep it short.\n\n```\n{told}\n```",
        "Progressively summarize the lines of conversation provided, adding onto the summary.\n{told}\nNew summary:",
        "Given the following conversation and a follow up question, rephrase the follow up question to be a standalone "
        "question.\n\nChat History:\n{told}\nFollow Up Input: And then?\nStandalone question:",
    ],
)  # fmt: skip
def test_lone_templates_over_the_written_history_are_beside_it(order: str):
    client = Client(Core(), [system("You are a helpful assistant.")])
    home = client.talk(2).conversation
    told = "\n".join(f"{m['role'].upper()}: {m['content']}" for m in client.messages[1:])
    side = client.beside([user(order.format(told=told))])
    assert (side.role, side.lineage.parent) == (Role.SIDE, home)
    assert client.talk(1).event is Event.APPEND


@pytest.mark.parametrize(
    "order",
    [
        "### Task:\nAnalyze the chat history to determine the necessity of generating search queries, in the given "
        "language.\n### Output:\nJSON.\n### Chat History:\n<chat_history>\nUSER: {typed}\n</chat_history>",
        "### Task:\nYou are an autocompletion system. Continue the text in `<text>` based on the **completion type** "
        "in `<type>`.\n### Context:\n<chat_history>\n\n</chat_history>\n<type>General</type>\n<text>{typed}</text>",
        "### Task:\nGenerate a detailed prompt for am image generation task based on the given language.\n"
        "### Chat History:\n<chat_history>\nUSER: {typed}\n</chat_history>",
        "Your task is to reflect the speaker's likely facial expression through a fitting emoji.\n\n"
        "Message: ```{typed}```",
    ],
)
def test_lone_templates_over_what_was_not_said_yet_are_beside_every_conversation(order: str):
    client = Client(Core(), [])
    assert client.beside([user(order.format(typed="What should I cook for Ines?"))]).role is Role.SIDE


# --- preambles, windows, agents --------------------------------------------------------------------


def test_preamble_that_vanishes_at_the_compaction_and_returns_is_no_second_one():
    preamble = [
        user(f"We are setting up the context. {prose(80, 'environment')}"),
        assistant("Got it. Thanks for the context!"),
    ]
    client = Client(Core(), [system(CODER), *preamble], tools=TOOLS)
    client.talk(6)
    asked = [
        system("You are the component that summarizes internal chat history into a given structure."),
        *client.messages[1:],
    ]
    assert (
        client.beside(
            [*asked, user("First, reason in your scratchpad. Then, generate the <state_snapshot>.")], SUMMARY
        ).role
        is Role.SIDE
    )
    client.messages[1:-4] = [
        user(f"<state_snapshot>{SUMMARY}</state_snapshot>"),
        assistant("Got it. Thanks for the additional context!"),
    ]
    assert client.talk(1).event is Event.SUMMARY
    client.messages[1:1] = preamble
    assert client.talk(1).event is Event.APPEND


@pytest.mark.parametrize("size", [1, 2, 3])
def test_window_of_one_or_two_messages_is_a_truncation_as_long_as_something_of_ours_is_in_it(size: int):
    client = Client(Core(), [system("Be brief.")])
    seen = []
    for turn in range(5):
        client.messages.append(user(prose(20, turn)))
        client.messages[1:] = client.messages[1:][-size:]
        seen.append(client.send().event)
    assert set(seen[2:]) == ({Event.START} if size == 1 else {Event.TRUNCATE})


def test_sub_agents_in_parallel_with_other_prompt_and_fewer_tools_work_apart(coder: Client):
    tasks = [f"Find all uses of function number {n} and report them by file." for n in range(2)]
    spawn = calling(*((f"spawn-{n}", "task", {"agent": "explore", "prompt": text}) for n, text in enumerate(tasks)))
    home = coder.send(spawn).conversation
    agents = [
        Client(coder.core, [system("You explore code."), user(text)], tools=("read",), seed=text) for text in tasks
    ]
    seen = [agent.send(call(agent, 0)) for agent in agents]
    for agent in agents:
        agent.messages.append(result(agent, 0))
    seen += [agent.send(prose(40, agent.seed)) for agent in agents]
    assert {verdict.role for verdict in seen} == {Role.SUBAGENT} and {
        verdict.lineage.parent for verdict in seen[:2]
    } == {home}
    assert [v.event for v in seen] == ["start", "start", "tool", "tool"]
    assert seen[0].conversation == seen[2].conversation != seen[1].conversation == seen[3].conversation
    coder.messages += [tool(f"spawn-{n}", agent.messages[-1]["content"]) for n, agent in enumerate(agents)]
    back = coder.send()
    assert (back.event, back.conversation, back.role) == (Event.TOOL, home, Role.MAIN)


def test_task_behind_a_preamble_still_tells_a_sub_agent(coder: Client):
    task = "Look at all the files here and report about the harbor in them."
    coder.send(calling(("spawn", "agent", {"description": "look around", "prompt": task})))
    agent = Client(
        coder.core,
        [system("You are a general-purpose agent."), user(prose(80, "environment")), assistant("Got it!"), user(task)],
    )
    assert agent.send().role is Role.SUBAGENT


def test_program_that_is_written_out_whole_for_every_turn_is_the_conversation_itself():
    core, told = Core(), ""
    for turn in range(4):
        told += f"Human: {prose(20, turn)}\n"
        client = Client(
            core, [user(f"The following is a friendly conversation between a human and an AI.\n\n{told}AI:")]
        )
        assert client.send(prose(30, ("answer", turn))).role is Role.MAIN
        told += f"AI: {client.messages[-1]['content']}\n"


def test_system_prompt_with_looked_up_documents_that_change_makes_no_side_request_of_a_question():
    client = Client(Core())
    for turn in range(5):
        client.messages[0] = system(f"You answer from these documents for our staff:\n{prose(200, turn)}")
        verdict = client.ask("Please give me a short summary of the conversation so far, as a digest.")
        assert verdict.role is Role.MAIN and verdict.event is (Event.APPEND if turn else Event.START)


def test_person_who_switches_models_and_asks_for_a_summary_is_no_side_request(coder: Client):
    coder.talk(1)
    coder.model = "larger"
    assert coder.ask("Summarize our conversation so far, please.").role is Role.MAIN


def test_equal_steps_of_two_conversations_are_told_apart_by_their_calls_after_equal_compactions():
    core = Core()
    clients = [Client(core, [system(CODER)], tools=TOOLS, seed=n) for n in range(2)]
    homes = [client.talk(4).conversation for client in clients]
    for n, client in enumerate(clients):
        client.ask(prose(20, n), calling((f"call-{n}", "think", {"thought": "the same in both"})))
        client.beside(
            [system("You are maintaining a context-aware state summary."), user(spoken(client.messages))], SUMMARY
        )
        first = f"{client.messages[1]['content']}\n{SUMMARY}\n{client.messages[-2]['content']}"
        client.messages[1:-1] = [user(first)]
        client.messages.append(tool(f"call-{n}", "Your thought has been logged."))
        summary_of(client, client.send("The same answer in both of them, which is long enough to lead back."), homes[n])
    assert [client.talk(1).conversation for client in clients] == homes


def test_one_step_that_is_summed_up_at_once_is_a_summary():
    client = Client(Core(), [system("You plan."), assistant(prose(60, "older summary"))], tools=TOOLS)
    home = client.ask(prose(20, "task"), calling(("call-1", "read", {"path": "a.py"}))).conversation
    read = tool("call-1", prose(300, "too much"))
    told = f"Summarize the conversation below.\n\n{spoken([*client.messages[1:], read])}"
    client.beside([system("You are a helpful assistant that summarizes conversations"), user(told)], SUMMARY)
    client.messages[3:] = []
    client.messages[2:2] = [assistant(f"[summary] {SUMMARY}")]
    summary_of(client, client.send(), home)


def test_summary_that_is_summed_up_again_in_one_message_is_a_side_request(coder: Client):
    home = coder.send("Done.").conversation
    order = "Progressively summarize the lines of conversation provided, adding onto the summary.\n\n"
    first = coder.beside([user(f"{order}{spoken(coder.messages[1:4])}\n\nNew summary:")], SUMMARY)
    again = coder.beside([user(f"{order}Current summary:\n{SUMMARY}\n\n{spoken(coder.messages[4:7])}\n\nNew summary:")])
    assert first.role is again.role is Role.SIDE and first.lineage.parent == again.lineage.parent == home


# --- recorded beside this file -----------------------------------------------------------------------


def test_open_web_ui_names_its_chat_and_asks_beside_it():
    """Recorded from version 0.12.4: a question, follow-ups, a title and tags, and all of that once more."""
    requests = [orjson.loads(line) for line in RECORDED.read_text().splitlines()]
    core, verdicts = Core(), []
    for request in requests:
        verdicts.append(core.hear(request["body"], assistant(prose(20, request["body"])), request["headers"], chat))
    roles = [Role.MAIN, *3 * [Role.SIDE]]
    assert [verdict.role for verdict in verdicts] == 2 * roles
    assert len({verdict.conversation for verdict in verdicts}) == 1
    assert [verdict.event for verdict in verdicts if verdict.role is Role.MAIN] == [Event.START, Event.APPEND]
