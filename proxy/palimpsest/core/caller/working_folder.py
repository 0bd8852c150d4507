"""
The project that an agent works in: the folder that its system prompt or its first messages name, or else that prompt.

Clients write "Working directory: /home/ann/shop", `<cwd>/home/ann/shop</cwd>`, or "# Current Workspace Directory
(/home/ann/shop) Files". Conversations in one folder belong to one project, though no header says so. A person writes
such words too, of an error or of another project: of the user's messages only what clients write there counts.

An agent with tools that names no folder at all, as of a support desk, is known by its system prompt, dates apart. A
short one ("You are a helpful assistant.") tells nothing, and a long one is that of a client for any project.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice

from palimpsest.domain import Message

FIRST_MESSAGES = 4  # Codex sends its instructions, those of the project, and then its environment
LOOKED_AT_CHARS = 100_000  # of each of them: system prompts have some 60,000 at most
LEAST_LETTERS = 60  # of a system prompt by which an agent is known: a shorter one may be of any agent
PROMPT_CHARS = 4_000  # of it at most: those of coding agents are longer, and the same in each project
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
_WORD = re.compile(r"[^\W_]+")
_MONTH = (
    "jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    "|nov(?:ember)?|dec(?:ember)?"
)
_DATE = re.compile(  # or time, in lower case
    rf"\b(?:\d{{4}}-\d\d-\d\d(?:[t ]\d[\d:.]*(?:z|[+-]\d\d:?\d\d)?)?|\d{{1,2}}[./-]\d{{1,2}}[./-]\d{{2,4}}"
    rf"|\d{{1,2}}:\d\d(?::\d\d)?(?: ?[ap]m)?|(?:{_MONTH})\.? \d{{1,2}}(?:st|nd|rd|th)?"
    rf"|(?:\d{{1,2}}(?:st|nd|rd|th|\.)? (?:of )?)?(?:{_MONTH})"
    r"|(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?)\b(?:,? (?:19|20)\d\d\b)?"
)
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
        return -_hashed(prompt, key) if has_tools and (prompt := _lasting_prompt(messages)) else 0
    folder = unicodedata.normalize("NFC", folder)  # macOS writes accents as signs of their own
    if _OF_WINDOWS.match(folder):  # editors there write the drive in lower case, shells in upper case or with slashes
        folder = folder.replace("\\", "/").lower()
    return _hashed(folder, key)


def named_folder(messages: Iterable[Message]) -> str:
    """
    The folder as it is written, that of a workspace before one inside; "" where none of a project is named. Without a
    sign behind it, it goes to the end of the line: names of folders hold blanks. Instructions go before the user's.
    """
    return next(filter(None, map(_named, _texts(messages))), "")


def _hashed(named: str, key: bytes) -> int:
    digest = hashlib.blake2b(named.encode(errors="surrogatepass"), digest_size=8, key=key, person=b"folder").digest()
    return int.from_bytes(digest, "big") >> 1


def _lasting_prompt(messages: Iterable[Message]) -> str:
    """The words and numbers of a system prompt, without its dates; "" where it tells no agent, or there is a folder."""
    first = list(islice(messages, FIRST_MESSAGES))
    said = "\n".join(one.text for one in first if one.is_instruction)
    if len(said) > PROMPT_CHARS or any(_written(chain(*_texts(first)))):
        return ""
    words = _WORD.findall(_DATE.sub(" ", said.lower()))
    return " ".join(words) if sum(map(len, words)) >= LEAST_LETTERS else ""


def _texts(messages: Iterable[Message]) -> tuple[Iterable[str], Iterable[str]]:
    """Where a folder may be named: the first instructions, and what clients wrote into the user's first messages."""
    first = list(islice(messages, FIRST_MESSAGES))
    by_user = (message.text[:LOOKED_AT_CHARS] for message in first if message.role == "user")
    by_clients = (found[0] for text in by_user for found in _BY_CLIENTS.finditer(text))
    return (message.text[:LOOKED_AT_CHARS] for message in first if message.is_instruction), by_clients


def _named(texts: Iterable[str]) -> str:
    inside = ""
    for folder, is_root in _written(texts):
        if not _OF_NO_PROJECT.fullmatch(folder):
            if is_root:
                return folder
            inside = inside or folder
    return inside


def _written(texts: Iterable[str]) -> Iterator[tuple[str, bool]]:
    """Every folder that is written, one of no project, too, and whether it is the root of a workspace."""
    for found in chain.from_iterable(map(_NAMED.finditer, texts)):
        written: str = found[1] or found[3] or found[4]
        folder = _BEHIND.sub("", written).strip(" \t\r`\"'*")
        if _PATH.match(folder):
            yield folder.rstrip("/\\.`\"'*"), bool(found["root"])
