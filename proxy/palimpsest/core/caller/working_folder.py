"""
The project that an agent works in: the folder that its system prompt or its first messages name, or else that prompt.

Clients write "Working directory: /home/ann/shop", `<cwd>/home/ann/shop</cwd>`, or "# Current Workspace Directory
(/home/ann/shop) Files". Conversations in one folder belong to one project, though no header says so. A person writes
such words too, of an error or of another project: of the user's messages only what clients write there counts.

An agent with tools that names no folder, as of a support desk, is known by what its system prompt says in words. A
short one ("You are a helpful assistant.") tells nothing.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Sequence
from itertools import islice

from palimpsest.core.archive.chunking import TIMES
from palimpsest.domain import Message

FIRST_MESSAGES = 4  # Codex sends its instructions, those of the project, and then its environment
LOOKED_AT_CHARS = 100_000  # of each of them: system prompts have some 60,000 at most
PROMPT_CHARS = 2_000  # of a system prompt by which an agent is known: its end may hold what changes
LEAST_LETTERS = 80  # in it: one that is shorter may be of any agent
_NAMED = re.compile(
    r"(?i)<cwd>([^<\n]{1,256})</cwd>"
    r"|\b(?:cwd|(?:work(?:ing|space)|project|repository|current)(?P<root> root)?(?: in the)?(?: work(?:ing|space))?"
    r"(?: (?:directory|folder|path|dir))?)(?: is)?(?: ?\(([^)\n]{1,256})\)|:([^\n]{1,256}))"
)
_BY_CLIENTS = re.compile(  # Codex, Kilo Code and Cursor; Cline and Roo Code; Gemini CLI and Qwen Code
    r"(?m)<(?:env\w*|user_info)>[^<]*|<cwd>[^<\n]{1,256}</cwd>"
    r"|^(?:# Current Work|[ \t]*(?:- )?I'm currently working in the directory:)[^\n]*"
)
_BEHIND = re.compile(r"(?i)(?:, | \()(?:today|the date|git|branch|platform)\b.*")  # on the same line, and no name
_LETTERS = re.compile(r"[^\W\d_]+")
_PATH = re.compile(r"~?/|[A-Za-z]:[\\/]|\\\\")  # how a folder begins
_OF_WINDOWS = re.compile(r"[A-Za-z]:|\\\\")
_OF_NO_PROJECT = re.compile(  # the root, a home, and what is mounted under one name whatever is worked on
    r"(?i)[/\\~]*|/[^/]*|/(?:home|users)/[^/]*(?:/workspace)?|/usr/src/app|/private/tmp|[a-z]:[\\/](?:users[\\/])?[^\\/]*"
)


def working_folder(messages: Sequence[Message], key: bytes, *, has_tools: bool = False) -> int:
    """
    The keyed hash of the folder, 63 bits; of the system prompt its negative; 0 where neither tells of a project.

    Args:
        key: of the tenant.
        has_tools: the request declares some; without them no system prompt counts.
    """
    if not (folder := named_folder(messages)):
        return -_hashed(prompt, key) if has_tools and (prompt := _lasting_words(messages)) else 0
    folder = unicodedata.normalize("NFC", folder)  # macOS writes accents as signs of their own
    if _OF_WINDOWS.match(folder):  # editors there write the drive in lower case, shells in upper case or with slashes
        folder = folder.replace("\\", "/").lower()
    return _hashed(folder, key)


def named_folder(messages: Iterable[Message]) -> str:
    """
    The folder as it is written, that of a workspace before one inside; "" where none of a project is named. Without a
    sign behind it, it goes to the end of the line: names of folders hold blanks. Instructions go before the user's.
    """
    first = list(islice(messages, FIRST_MESSAGES))
    instructed = (message.text[:LOOKED_AT_CHARS] for message in first if message.is_instruction)
    by_user = (message.text[:LOOKED_AT_CHARS] for message in first if message.role == "user")
    return _named(instructed) or _named(found[0] for text in by_user for found in _BY_CLIENTS.finditer(text))


def _hashed(named: str, key: bytes) -> int:
    digest = hashlib.blake2b(named.encode(errors="surrogatepass"), digest_size=8, key=key, person=b"folder").digest()
    return int.from_bytes(digest, "big") >> 1


def _lasting_words(messages: Iterable[Message]) -> str:
    """The words of a system prompt that are the same on any day; "" where they are too few to tell an agent."""
    said = "".join(one.text[:PROMPT_CHARS] for one in islice(messages, FIRST_MESSAGES) if one.is_instruction)
    words = " ".join(word for word in _LETTERS.findall(said.lower()) if word not in TIMES)
    return words if len(words) >= LEAST_LETTERS else ""


def _named(texts: Iterable[str]) -> str:
    inside = ""
    for text in texts:
        for found in _NAMED.finditer(text):
            written: str = found[1] or found[3] or found[4]
            folder = _BEHIND.sub("", written).strip(" \t\r`\"'*").rstrip("/\\.`\"'*")
            if not _PATH.match(folder) or _OF_NO_PROJECT.fullmatch(folder):
                continue
            if found["root"]:
                return folder
            inside = inside or folder
    return inside
