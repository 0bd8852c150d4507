"""
The folder that a coding agent works in, as its system prompt or its first messages name it.

Clients write "Working directory: /home/ann/shop", `<cwd>/home/ann/shop</cwd>`, or "# Current Workspace Directory
(/home/ann/shop) Files". Conversations in one folder belong to one project, though no header says so.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from itertools import islice

from palimpsest.domain import Message

FIRST_MESSAGES = 4  # Codex sends its instructions, those of the project, and then its environment
LABEL_CHARS = 48  # in front of the folder: "I'm currently working in the directory"
_FOLDER = re.compile(r"(?:<cwd>|[:(](?:\*\*)?[ \t]*)[`\"']?((?:~?/|[A-Za-z]:\\)[^\s`\"'<>)(,;*]+)")
_LABEL = re.compile(
    r"(?i)\b(?:cwd|(?:work(?:ing|space)|project|repository|current)(?P<root> root)?(?: in the)?(?: work(?:ing|space))?"
    r"(?: (?:directory|folder|path|dir))?)(?: is)? ?\Z"
)
# The root, a home, and what is mounted under one name whatever is worked on: /workspace, /app
_OF_NO_PROJECT = re.compile(r"(?i)[/\\~]*|/[^/]*|/(?:home|users)/[^/]*|[a-z]:\\(?:users\\)?[^\\]*")


def working_folder(messages: Iterable[Message], key: bytes) -> int:
    """The keyed hash of the folder, 63 bits; 0 where none of a project is named. `key`: of the tenant."""
    if not (folder := named_folder(messages)):
        return 0
    digest = hashlib.blake2b(folder.encode(errors="surrogatepass"), digest_size=8, key=key, person=b"folder").digest()
    return int.from_bytes(digest, "big") >> 1


def named_folder(messages: Iterable[Message]) -> str:
    """The folder as it is written, that of a workspace before one inside; "" where none of a project is named."""
    inside = ""
    for message in islice(messages, FIRST_MESSAGES):
        for found in _FOLDER.finditer(message.text if message.is_instruction or message.role == "user" else ""):
            label = _LABEL.search(message.text, max(found.start() - LABEL_CHARS, 0), found.start())
            folder = found[1].rstrip("/\\.")
            if (label is None and not found[0].startswith("<")) or _OF_NO_PROJECT.fullmatch(folder):
                continue
            if label and label["root"]:
                return folder
            inside = inside or folder
    return inside
