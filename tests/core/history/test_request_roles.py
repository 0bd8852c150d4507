"""Requests beside the conversation."""

from __future__ import annotations

import re

import pytest
from palimpsest.core.history.request_roles import Intent, is_side_request
from palimpsest.domain import Json, Role, Shape

from tests.core.driving import (
    Client,
    Core,
    Verdict,
    assistant,
    calling,
    client_table,
    offer,
    prose,
    system,
    tool,
    user,
)

CODER = "You are a coding assistant. Use the tools, and answer in short."
TRANSCRIPT = "\n".join(f"{voice}: {prose(20, (n, voice))}" for n in range(4) for voice in ("User", "Assistant"))


@pytest.fixture
def client() -> Client:
    """A conversation with tools, four turns old, about to go on."""
    client = Client(Core(), [system(CODER)], tools=("bash", "read"))
    client.talk(4)
    return client


def judged(client: Client, messages: list[Json], **body: object) -> Verdict:
    return client.beside(messages, **body)


# --- what clients ask on the side ------------------------------------------------------------------

SUMMARISER = "You are a helpful assistant tasked with summarizing conversations."
ASKED_APART: dict[str, list[Json]] = {
    "transcript in one user message": [
        user(
            f"<role>Context Extraction Assistant</role>\nExtract the most important context.\n<messages>\n{TRANSCRIPT}"
        )
    ],
    "transcript under a system prompt": [system(SUMMARISER), user(TRANSCRIPT)],
    "transcript in tags": [
        system("Summarize the provided coding session for whoever continues it."),
        user('<message type="human">Hello</message><message type="ai">Hi</message>'),
    ],
    "transcript with headings": [
        system("*Briefly* summarize this partial conversation about programming."),
        user(f"# USER\n{prose(30)}\n\n# ASSISTANT\n{prose(30, 2)}"),
    ],
    "bare transcript under a system prompt of the client's": [
        system("The following is a conversation between a user and an assistant. Write a concise summary of it."),
        user(f'"Transcript so far: {TRANSCRIPT}"'),
    ],
    "title from the first message": [
        system("You are a title generator. You output ONLY a thread title."),
        user("Generate a title for this conversation:\n" + prose(20)),
    ],
    "title, all in the user message": [
        user(f"Create a concise title (five words) for this conversation:\n{prose(20)}\nReply with the title only.")
    ],
    "commit message": [
        system("You write one-line Git commit messages based on the diff that you are given."),
        user("diff --git a/x b/x\n" + prose(40)),
    ],
    "paths in a command's output": [
        system("Extract any file paths that this command reads or modifies."),
        user(f"Command: head notes.txt\nOutput: {prose(20)}"),
    ],
    "probe of an agent's prompt": [system("You are a file search specialist."), user("Warmup")],
    "memory extraction": [
        system("Extract memories worth keeping from the conversation below."),
        user(TRANSCRIPT),
    ],
}


@pytest.mark.parametrize("messages", ASKED_APART.values(), ids=ASKED_APART)
def test_product_of_a_conversation_asked_for_apart_from_it_is_a_side_request(client: Client, messages: list[Json]):
    assert judged(client, messages).role is Role.SIDE


ASKED_BEHIND_THE_HISTORY: dict[str, Json] = {
    "summary": {"order": "Create a summary of the conversation above:"},
    "summary extended": {
        "order": f"This is the summary so far: {prose(40)}\nExtend this summary with the messages above:"
    },
    "detailed summary": {"order": "Provide a detailed summary of our conversation above."},
    "hand-over": {"order": "You are performing a CONTEXT CHECKPOINT COMPACTION. Create a handoff summary."},
    "scratchpad": {"order": "First, reason in your scratchpad. Then write the <state_snapshot> of the session."},
}


@pytest.mark.parametrize("asked", ASKED_BEHIND_THE_HISTORY.values(), ids=ASKED_BEHIND_THE_HISTORY)
@pytest.mark.parametrize("prompt", [None, SUMMARISER], ids=["same system prompt", "own system prompt"])
def test_product_asked_for_behind_the_raw_history_without_tools_is_a_side_request(
    client: Client, asked: Json, prompt: str | None
):
    instructions = [system(prompt)] if prompt else client.messages[:1]
    assert judged(client, [*instructions, *client.messages[1:], user(asked["order"])]).role is Role.SIDE


def test_summariser_that_sends_the_raw_history_and_asks_in_its_system_prompt_alone_is_a_side_request(client: Client):
    assert client.messages[-1]["role"] == "assistant"
    verdict = judged(client, [system("Summarize this conversation, omitting small talk."), *client.messages[1:]])
    assert verdict.role is Role.SIDE


def test_long_template_glued_to_the_last_message_is_a_side_request_even_with_the_same_tools(client: Client):
    template = (
        "CRITICAL: Respond with TEXT ONLY. Do NOT call any tools.\n\nYour task is to create a detailed summary of the "
        f"conversation so far.\n{prose(60)}\nREMINDER: provide your summary of the conversation in <summary> tags."
    )
    client.messages.append(user(f"{prose(20)}\n\n{template}"))
    assert client.send().role is Role.SIDE


SKILLS = (
    "What you may use:\n\n"
    f"- handoff: write a summary of the conversation for whoever continues it. {prose(40)}\n"
    f"- digest: create a digest of this session, or summarize the chat above. {prose(40)}"
)


def test_what_a_client_lists_behind_a_question_orders_nothing(client: Client):
    client.messages += [user("Where does the parser begin?"), system(SKILLS)]
    assert client.send().role is Role.MAIN


def test_template_in_front_of_such_a_list_is_a_side_request(client: Client):
    order = f"Write a summary of our conversation so far. {prose(60)} Create a title for this session, too:"
    client.messages += [user(order), system(SKILLS)]
    assert client.send().role is Role.SIDE


def test_order_that_stands_as_an_instruction_behind_a_question_is_a_side_request(client: Client):
    order = f"Pause. Summarize the conversation above. {prose(60)} Give a summary of the session in five lines."
    client.messages += [user("Where does the parser begin?"), system(order)]
    assert client.send().role is Role.SIDE


def test_answer_of_one_token_answers_nobody():
    probe = Client(Core(), [user("foo")])
    assert probe.beside([user("foo")], max_tokens=1).role is Role.SIDE
    assert probe.beside([user("foo")], max_tokens=100).role is Role.MAIN


def test_side_request_belongs_to_the_conversation_that_it_quotes(client: Client):
    talk = client.talk(1)
    quoted = judged(
        client, [system(SUMMARISER), *client.messages[1:], user("Create a summary of the conversation above:")]
    )
    told = judged(client, [system(SUMMARISER), user("User: hello\n\nAssistant: " + client.messages[-1]["content"])])
    assert quoted.lineage.parent == told.lineage.parent == talk.conversation


def test_order_behind_a_transcript_of_what_passed_here_is_a_side_request(client: Client):
    spoken = "\n\n".join(f"{m['role'].title()}: {m['content']}" for m in client.messages[1:])
    ordered = judged(client, [user(f"{spoken}\n\nPlease provide a detailed summary of the above.")])
    assert ordered.role is Role.SIDE and ordered.lineage.parent == client.talk(1).conversation


@pytest.mark.parametrize("prompt", [None, "You name the colour that fits best.", "You are a judge of answers."])
@pytest.mark.parametrize(
    "line",
    ["{role}: {content}", "{role} message: {content}", '{{"role": "{role}", "content": "{content}"}}'],
    ids=["labels", "labels of two words", "JSON"],
)
def test_conversation_that_passed_here_written_out_apart_from_it_is_a_side_request(
    client: Client, prompt: str | None, line: str
):
    spoken = "\n".join(line.format(**message) for message in client.messages[1:])
    assert judged(client, [*([system(prompt)] if prompt else []), user(spoken)]).role is Role.SIDE


def test_person_may_paste_an_old_conversation_into_a_new_one(client: Client):
    spoken = "\n".join(f"{m['role'].title()}: {m['content']}" for m in client.messages[1:])
    pasted = Client(client.core, [system(CODER)], tools=client.tools).ask(f"Do you remember?\n\n{spoken}")
    assert pasted.role is Role.MAIN


def test_history_up_to_an_answer_under_another_prompt_without_tools_is_a_side_request(client: Client):
    named = [system("Three words, no more."), *client.messages[1:]]
    assert judged(client, named).role is Role.SIDE
    assert judged(client, named[:-2]).role is Role.SIDE  # of old messages alone


def test_so_it_is_where_no_tools_were_ever_offered():
    client = Client(Core(), [system(CODER)])
    client.talk(3)
    assert judged(client, [system("Three words, no more."), *client.messages[1:]]).role is Role.SIDE
    assert judged(client, client.messages).role is Role.MAIN  # "continue"
    assert judged(client, client.messages[1:]).role is Role.MAIN  # nobody orders anything


def test_agent_that_takes_the_word_after_another_with_its_tools_is_no_side_request(client: Client):
    taken_over = judged(client, [system("You are the critic."), *client.messages[1:]], tools=offer(*client.tools))
    assert taken_over.role is Role.MAIN


SAME_QUESTION: dict[str, str] = {
    "memory": "You are a memory manager that manages information and preferences about the user.",
    "guard": "You are a safety classifier. Answer with one word.",
    "intent": "Classify the message into one of the intents that follow.",
    "follow-up": "Suggest three follow-up questions.",
    "search": "Generate two search queries.",
}


@pytest.mark.parametrize("prompt", SAME_QUESTION.values(), ids=SAME_QUESTION)
def test_order_about_a_question_that_an_agent_was_asked_is_a_side_request(client: Client, prompt: str):
    question = client.messages[1]
    assert judged(client, [system(prompt), question], tools=offer("remember")).role is Role.SIDE
    assert Client(Core(), [system(prompt), question]).send().role is Role.MAIN  # of nobody that passed here


def test_agent_whose_own_prompt_gives_such_orders_may_get_another_model():
    client = Client(Core(), [system("You coach. Store facts about the user, and suggest follow-up questions.")])
    client.talk(2)
    client.model = "small"
    assert client.talk(1).role is Role.MAIN


ASKED_IN_FORM = (
    "Generate a concise 3-7 word title for this conversation, omitting punctuation.",
    "Summarize the discussion so far; the summary will replace the messages.",
    "Write a summary of this session. Reply with only the summary.",
    "Your task is to write a detailed summary of the conversation so far.",
)


@pytest.mark.parametrize("words", ASKED_IN_FORM)
def test_form_in_which_only_programs_ask_makes_a_side_request_of_the_same_shape(client: Client, words: str):
    assert client.ask(words).role is Role.SIDE


def test_same_order_behind_a_transcript_from_elsewhere_is_somebodys_question(client: Client):
    assert judged(client, [user(f"{TRANSCRIPT}\n\nPlease provide a detailed summary of the above.")]).role is Role.MAIN


def test_only_a_summary_may_come_back_as_one(client: Client):
    said = {name: judged(client, messages).lineage.summarises for name, messages in ASKED_APART.items()}
    assert said["transcript in one user message"] and said["transcript under a system prompt"]
    assert not said["title from the first message"] and not said["commit message"]


def test_side_request_is_never_the_request_before(client: Client):
    judged(client, [system(SUMMARISER), *client.messages[1:], user("Create a summary of the conversation above:")])
    verdict = client.talk(1)
    assert verdict.role is Role.MAIN and verdict.event == "append"


# --- what people ask -------------------------------------------------------------------------------

PEOPLE_ASK = (
    "Summarize our conversation so far, please.",
    "Can you write a short summary of what we did?",
    "Give me a title for this conversation and its story.",
    "Create a commit message for these changes.",
    "Please write a handoff document for my colleague.",
    "Condense the above into three lines.",
    "Write your new plan.",
    "How do I compact a database? Compaction takes hours.",
    "Make a recap of the session, with a digest of the open questions.",
    "Create a title for this conversation.",
    "Summarize this chat in 100 words or less.",
    "Your task is to list the numbers that we spoke about so far.",
    "Suggest three follow-up questions, and select the next speaker.",
    "We run out of context soon. Write a handoff note and go on.",
)


@pytest.mark.parametrize("words", PEOPLE_ASK)
def test_person_who_asks_for_a_summary_in_the_conversation_is_no_side_request(client: Client, words: str):
    verdict = client.ask(words)
    assert verdict.role is Role.MAIN and verdict.event == "append"


@pytest.mark.repeats
@pytest.mark.parametrize("words", PEOPLE_ASK)
def test_person_may_open_a_conversation_with_such_a_question(words: str):
    assert Client(Core(), [system(CODER)]).ask(words).role is Role.MAIN
    assert Client(Core(), [system(CODER)], tools=("bash",)).ask(words).role is Role.MAIN


@pytest.mark.parametrize("words", PEOPLE_ASK)
def test_person_may_ask_so_where_no_tools_were_ever_offered(words: str):
    client = Client(Core())
    client.talk(3)
    assert client.ask(words).role is Role.MAIN


@pytest.mark.parametrize(
    "prompt",
    [
        "You are a support agent. Long chats are closed with a summary of the case for the file.",
        "You help writers. You can suggest titles, plots and names, and you remember the conversation.",
        "You are Git Buddy. You explain commit messages and history, step by step.",
        f"You are a coding agent.\n{prose(200)}\nWhen the context is full, summarize the conversation and go on.",
    ],
)
def test_agent_whose_own_prompt_speaks_of_summaries_is_no_side_request(prompt: str):
    client = Client(Core(), [system(prompt)], tools=("bash",))
    assert {client.talk(1).role, client.talk(1).role, client.ask("Thank you.").role} == {Role.MAIN}


def test_pasted_chat_log_with_a_question_about_it_is_no_side_request(client: Client):
    assert client.ask(f"What went wrong here?\n\n{TRANSCRIPT}").role is Role.MAIN


def test_step_without_tools_alone_is_no_side_request(client: Client):
    client.messages.append(user(prose(20, "reflect")))
    client.tools = ()
    assert client.send().role is Role.MAIN


def test_change_of_model_and_prompt_alone_is_no_side_request(client: Client):
    client.messages[0] = system("You are another agent, and take over from here.")
    client.model = "small"
    assert client.talk(1).role is Role.MAIN


@pytest.mark.parametrize("messages", [[], [system("only instructions")], [assistant("Hello, how can I help you?")]])
def test_request_without_a_question_is_no_side_request(messages: list[Json]):
    core = Core()
    if messages:
        assert Client(core, messages).send().role is Role.MAIN


@pytest.mark.parametrize(
    "prompt",
    [
        "You are a helpful assistant. You can summarize documents, translate text and chat with users.",
        "You are an assistant for a call centre. Summarize the conversation for the agent when asked.",
        "You keep minutes. Write a summary of the discussion whenever a conversation ends.",
        "You remember facts and preferences that you identify in messages, and use them later in the chat.",
    ],
)
def test_first_question_to_an_agent_that_may_be_asked_for_summaries_is_no_side_request(prompt: str):
    client = Client(Core(), [system(prompt)])
    assert {client.ask("Hello, my order has not come.").role, client.talk(1).role} == {Role.MAIN}


@pytest.mark.parametrize(
    "words",
    [
        "Write a summary of this picture:",
        "Please give me a short summary of the following text, as a digest:\n" + prose(200),
        "Create a page that shows a summary of all orders, with a title.\n"
        + prose(200)
        + "\nWrite a recap at the end.",
        "Improve the title of this: " + prose(30),
    ],
)
def test_person_who_asks_for_a_summary_of_something_else_is_no_side_request(client: Client, words: str):
    assert client.ask(words).role is Role.MAIN
    assert Client(Core()).ask(words).role is Role.MAIN


def test_picture_behind_a_colon_is_no_template(client: Client):
    picture = {"type": "image_url", "image_url": {"url": "https://example.org/chat.png"}}
    words = {"type": "text", "text": "Summarize the conversation in this picture:"}
    client.messages.append({"role": "user", "content": [words, picture]})
    assert client.send().role is Role.MAIN


def test_tool_result_that_speaks_of_summaries_asks_for_nothing(client: Client):
    client.ask("Look.", calling(("c", "read", {"path": "prompts.py"})))
    client.messages.append(tool("c", f"{prose(100)} Create a summary of the conversation above. Extend this summary:"))
    client.tools = ()
    assert client.send().role is Role.MAIN


def test_answer_that_offers_a_summary_asks_for_nothing(client: Client):
    client.messages[-1] = assistant("Shall I write a summary of the conversation so far? Create a summary:")
    assert client.beside([system("Another prompt."), *client.messages[1:]]).role is Role.MAIN


@pytest.mark.parametrize("cap", ["max_tokens", "max_completion_tokens"])
def test_a_summary_that_a_person_could_ask_for_is_a_clients_where_its_answer_alone_is_capped(client: Client, cap: str):
    asked = [*client.messages, user("Can you write a short summary of what we did?")]
    same = {"tools": offer("bash", "read")}
    assert judged(client, asked, **same, **{cap: 20}).role is Role.SIDE
    assert judged(client.copy(), asked, **same).role is Role.MAIN


def test_one_search_finds_whatever_any_of_the_patterns_would() -> None:
    asks, any_asks = client_table().asks, client_table().any_asks
    assert any_asks is not None and all(
        pattern.flags == re.compile("").flags and not pattern.groupindex for pattern in asks
    )
    for text in ("please give a recap", "condense the chat", "extend this summary", "write your plan", "hello", ""):
        assert bool(any_asks.search(text)) == any(pattern.search(text) for pattern in asks)


@pytest.mark.parametrize(("tools", "is_side"), [((), True), (("bash",), False)])
def test_an_order_for_a_product_of_no_known_conversation_is_a_side_request_unless_it_has_tools(
    tools: tuple[str, ...], is_side: bool
) -> None:
    intent = Intent(instructs="you write titles", asks="a title")
    verdict, why = is_side_request(intent, Shape(tool_names=tools), None, False)
    assert (verdict, bool(why)) == (is_side, is_side)
    assert is_side_request(Intent(asks="a title"), Shape(tool_names=tools), None, False) == (False, ())
