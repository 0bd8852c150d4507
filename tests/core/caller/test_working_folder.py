from __future__ import annotations

import pytest
from palimpsest.core.caller.working_folder import (
    FIRST_MESSAGES,
    LOOKED_AT_CHARS,
    PROMPT_CHARS,
    named_folder,
    working_folder,
)
from palimpsest.domain import Message

from tests.growing import exponent, repeated

KEY, OTHER_KEY = b"k" * 32, b"o" * 32


def said(text: str, role: str = "system") -> Message:
    return Message(role, text, {})


@pytest.mark.parametrize(
    ("text", "folder"),
    [
        ("<env>\nWorking directory: /home/ann/shop\nIs directory a git repo: Yes", "/home/ann/shop"),
        ("# Environment\n - Primary working directory: /home/ann/shop\n - Platform: linux", "/home/ann/shop"),
        ("<environment_context>\n  <cwd>/home/ann/shop</cwd>\n  <shell>bash</shell>", "/home/ann/shop"),
        ("  Working directory: /srv/shop/web\n  Workspace root folder: /srv/shop\n", "/srv/shop"),
        ("# Current Workspace Directory (/home/ann/shop) Files\nmain.py", "/home/ann/shop"),
        ("# Current Working Directory (c:\\Users\\ann\\shop) Files", "c:\\Users\\ann\\shop"),
        ("I'm currently working in the directory: /Users/ann/shop\nHere is the folder structure", "/Users/ann/shop"),
        ("Workspace Path: /home/ann/shop", "/home/ann/shop"),
        ("Workspace: ~/code/shop.", "~/code/shop"),
        ("The current directory is: `/home/ann/shop/`", "/home/ann/shop"),
        ("Working directory: `/home/ann/my shop`.", "/home/ann/my shop"),
        ("**Working directory:** /home/ann/shop", "/home/ann/shop"),
        ("Repository: /srv/shop\nReport in one sentence.", "/srv/shop"),
        ("<cwd>/Users/ann/My Projects/shop (copy)</cwd>", "/Users/ann/My Projects/shop (copy)"),
        (
            "Working directory: /Users/ann/Library/Mobile Documents/ann's, shop\n",
            "/Users/ann/Library/Mobile Documents/ann's, shop",
        ),
        ("Working directory: /home/ann/shop, today is 2026-11-29", "/home/ann/shop"),
        ("Working directory: /home/ann/shop (git repo)", "/home/ann/shop"),
        ("Working directory: C:/Users/ann/shop", "C:/Users/ann/shop"),
        ("Working directory: \\\\server\\ann\\shop", "\\\\server\\ann\\shop"),
    ],
)
def test_the_folder_is_read_as_clients_write_it(text: str, folder: str):
    assert named_folder([said(text)]) == folder


@pytest.mark.parametrize(
    "text",
    [
        "Working directory persists between calls, but prefer absolute paths.",
        "See the project: https://example.com/shop for more.",
        "Read the file: /home/ann/shop/main.py",
        "current project: the shop",
        "Working directory: /",
        "Working directory: /workspace",
        "Working directory: /home/ann",
        "Working directory: /Users/ann/",
        "Working directory: ~",
        "Working directory: C:\\Users\\ann",
        "Working directory: /home/runner/workspace",
        "Working directory: /usr/src/app",
        "",
    ],
)
def test_a_text_that_names_no_folder_of_a_project_has_none(text: str):
    assert named_folder([said(text)]) == "" and working_folder([said(text)], KEY) == 0


@pytest.mark.parametrize(
    "text",
    [
        "<environment_context>\n  <cwd>/home/ann/shop</cwd>\n  <shell>bash</shell>",
        "<task>\nMend it\n</task>\n<environment_details>\n# Open Tabs\na.py\n\n"
        "# Current Working Directory (/home/ann/shop) Files\nmain.py\n</environment_details>",
        "Mend it<environment_details>\nCurrent time: 12\nWorking directory: /home/ann/shop/web\n"
        "Workspace root folder: /home/ann/shop\n</environment_details>",
        "<user_info>\nOS Version: linux 6\nWorkspace Path: /home/ann/shop\nToday's date: Monday\n</user_info>",
        "This is the Gemini CLI.\nMy system is: linux\nI'm currently working in the directory: /home/ann/shop\n",
    ],
)
def test_of_the_user_s_messages_what_clients_write_there_is_read(text: str):
    assert named_folder([said("You are an agent."), said(text, "user")]) == "/home/ann/shop"


@pytest.mark.parametrize(
    "text",
    [
        "I get: error in project: /etc/nginx is not readable. current: /usr/bin",
        "In my current path: /usr/local/bin nothing is found",
        "project root: /srv/blog",
        "Working directory: /srv/blog",
        "# project: /srv/blog",
        "<error>cwd: /srv/blog</error>",
    ],
)
def test_what_a_person_writes_names_no_folder(text: str):
    assert named_folder([said(text, "user")]) == ""
    assert named_folder([said(text, "user"), said("Working directory: /home/ann/shop")]) == "/home/ann/shop"


def test_an_instruction_goes_before_a_user_s_message():
    messages = [said("<env>\nWorkspace root: /srv/blog\n</env>", "user"), said("cwd: /home/ann/shop", "developer")]
    assert named_folder(messages) == "/home/ann/shop" and named_folder(messages[:1]) == "/srv/blog"


def test_the_first_messages_of_clients_and_instructions_are_read_and_no_others():
    here = said("<cwd>/home/ann/shop</cwd>", "user")
    others = [said("Hello", "user")] * FIRST_MESSAGES
    assert named_folder([*others[1:], here]) == "/home/ann/shop"
    assert named_folder([*others, here]) == ""
    assert named_folder([said("Working directory: /home/ann/shop", role) for role in ("assistant", "tool")]) == ""


def test_a_folder_has_one_hash_in_a_tenant_and_another_one_in_another_tenant():
    one, same = said("Working directory: /srv/shop"), said("<cwd>/srv/shop/</cwd>", "user")
    assert 0 < working_folder([one], KEY) == working_folder([same], KEY) < 1 << 63
    assert working_folder([one], OTHER_KEY) != working_folder([one], KEY) != working_folder([said("cwd: /srv/a")], KEY)


AGENT = "You are the operations assistant of a bicycle rental company. You read its tickets, logs and bookings."


def test_an_agent_with_tools_that_names_no_folder_is_known_by_the_words_of_its_prompt():
    one, later = said(f"{AGENT} Today is Monday, 12 May 2026."), said(f"{AGENT} Today is Friday, 3 July 2026.")
    known = working_folder([one], KEY, has_tools=True)
    assert known == working_folder([later], KEY, has_tools=True) < 0
    assert known != working_folder([said(f"{AGENT} Be brief.")], KEY, has_tools=True)
    assert working_folder([one], KEY) == 0
    for one, other in (("Customer #4711", "Customer #9913"), ("May 1st, 9:14 AM", "June 4th 2026, 16:10")):
        is_same = len({working_folder([said(f"{AGENT} {text}")], KEY, has_tools=True) for text in (one, other)}) == 1
        assert is_same is (one != "Customer #4711")
    of_any_project = said(f"{AGENT} Working directory: /workspace")
    long = said(AGENT * PROMPT_CHARS)
    for other in (said("You are a helpful assistant."), said(AGENT, "user"), of_any_project, long):
        assert working_folder([other], KEY, has_tools=True) == 0
    in_folder = said(f"{AGENT} Working directory: /srv/shop")
    assert working_folder([in_folder], KEY, has_tools=True) == working_folder([said("cwd: /srv/shop")], KEY)


def test_a_folder_of_windows_has_one_hash_however_it_is_written():
    written = ("C:\\Users\\ann\\Shop", "c:\\Users\\ann\\shop", "C:/Users/ann/Shop/")
    assert len({working_folder([said(f"Working directory: {one}")], KEY) for one in written}) == 1
    assert len({working_folder([said(f"Working directory: {one}")], KEY) for one in ("/srv/Shop", "/srv/shop")}) == 2


def test_a_folder_has_one_hash_whether_its_accents_are_signs_of_their_own_or_not():
    one, same = (said(f"Working directory: /srv/caf{accented}") for accented in ("\u00e9", "e\u0301"))
    assert working_folder([one], KEY) == working_folder([same], KEY)


@pytest.mark.parametrize("role", ["system", "user"])
def test_how_long_a_text_is_read_has_a_limit(role: str) -> None:
    assert named_folder([said("x" * LOOKED_AT_CHARS + "\n<cwd>/srv/shop</cwd>", role)]) == ""
    for sign in (":/a ", "current ", "cwd(", "project root ", "<env>", "<cwd>", "I'm ", " \t", "cwd:/a (git "):
        assert exponent(lambda text: named_folder([said(text, role)]), repeated(sign, ""), 4_000, 16_000) < 1.6
