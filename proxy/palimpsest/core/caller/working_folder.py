"""
The folder that a coding agent works in, as its system prompt or its first messages name it.

Clients write "Working directory: /home/ann/shop", `<cwd>/home/ann/shop</cwd>`, or "# Current Workspace Directory
(/home/ann/shop) Files". Conversations in one folder belong to one project, though no header says so. A person writes
such words too, of an error or of another project: of the user's messages only what clients write there counts.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable
from itertools import islice

from palimpsest.domain import Message

FIRST_MESSAGES = 4  # Codex sends its instructions, those of the project, and then its environment
LOOKED_AT_CHARS = 100_000  # of each of them: system prompts have some 60,000 at most
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
_PATH = re.compile(r"~?/|[A-Za-z]:[\\/]|\\\\")  # how a folder begins
_OF_WINDOWS = re.compile(r"[A-Za-z]:|\\\\")
_OF_NO_PROJECT = re.compile(  # the root, a home, and what is mounted under one name whatever is worked on
    r"(?i)[/\\~]*|/[^/]*|/(?:home|users)/[^/]*(?:/workspace)?|/usr/src/app|/private/tmp|[a-z]:[\\/](?:users[\\/])?[^\\/]*"
)


def working_folder(messages: Iterable[Message], key: bytes) -> int:
    """The keyed hash of the folder, 63 bits; 0 where none of a project is named. `key`: of the tenant."""
    if not (folder := named_folder(messages)):
        return 0
    folder = unicodedata.normalize("NFC", folder)  # macOS writes accents as signs of their own
    if _OF_WINDOWS.match(folder):  # editors there write the drive in lower case, shells in upper case or with slashes
        folder = folder.replace("\\", "/").lower()
    digest = hashlib.blake2b(folder.encode(errors="surrogatepass"), digest_size=8, key=key, person=b"folder").digest()
    return int.from_bytes(digest, "big") >> 1


def named_folder(messages: Iterable[Message]) -> str:
    """
    The folder as it is written, that of a workspace before one inside; "" where none of a project is named. Without a
    sign behind it, it goes to the end of the line: names of folders hold blanks. Instructions go before the user's.
    """
    first = list(islice(messages, FIRST_MESSAGES))
    instructed = (message.text[:LOOKED_AT_CHARS] for message in first if message.is_instruction)
    by_user = (message.text[:LOOKED_AT_CHARS] for message in first if message.role == "user")
    return _named(instructed) or _named(found[0] for text in by_user for found in _BY_CLIENTS.finditer(text))


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
