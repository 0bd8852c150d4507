"""
A person's own words in a user message, without what the client writes there and quotation marks around all of it.

Clients speak in that role too: they go on by themselves, or tell of commands that were run. And a shell, or a client
that builds its own command line, may leave a whole message between quotation marks.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import dropwhile

from palimpsest.core.caller.client_table import Asides
from palimpsest.domain import Chat, Message

QUOTES = {'"': '"', "'": "'", "“": "”", "„": "“”", "«": "»", "「": "」"}  # what opens one, and what may close it
ASIDE_TAGS = (
    # claude-code: what it tells of commands that were run in it, of its agents and its editor, and its reminders
    *("local-command-caveat", "local-command-stdout", "local-command-stderr"),
    *("command-name", "command-message", "system-reminder", "task-notification", "ide_opened_file", "ide_selection"),
    "environment_context",  # codex-exec
)
"""Elements that clients write into messages of the user's: not said, not asked, and found by nobody."""
_WRAPS = re.compile(  # around what was typed: by Cline and Cursor
    r"</?(?:task|feedback|answer|user_(?:message|query|input|command))(?: [^<>\n]{0,80})?>\s?"
)
_ARGUMENTS = re.compile(  # of a command of claude-code's: numbers alone are not said, words are
    r"<command-args>(?:[\W\d_]{0,80}</command-args>)?|</command-args>"
)
_NOTES = re.compile(
    # by hermes, of a turn that was interrupted: alone, or in front of what was typed
    r"(?:\s*\[System note: [^\[\]]{0,200}\binterrupted\b[^\[\]]{0,800}\]\s*)+"
    # by claude-code: the text of a skill that the model has started
    r"|\s*Base directory for this skill: (?s:(?:(?!\[Request interrupted).)+)"
)
_ELEMENT = re.compile(r"\s*<([\w-]{1,40})>(?s:.*)</\1>\s*")  # a client's, as `<environment_details>`: Cline
_EMPTY = re.compile(r"<([\w-]{1,40})></\1>")  # as `<command-args></command-args>`: a command without any
ASIDE_CHARS = 1000  # a longer message was written by somebody, or holds more than what a client says


def human_text(text: str, asides: Asides) -> str:
    """The part of a user message that a person wrote, or "" if the client wrote all of it."""
    typed = untagged_words("".join(text[start:stop] for start, stop in spoken(text)))
    said = _unquoted(_EMPTY.sub("", typed).strip())
    if len(said) <= ASIDE_CHARS:
        line = " ".join(said.lower().split())
        if any(pattern.fullmatch(line) for pattern in asides.texts):
            return ""
    return said


def untagged_words(text: str) -> str:
    """A user's message, without the tags in which some clients wrap what was typed."""
    return _WRAPS.sub("", text)


def spoken(text: str) -> Sequence[tuple[int, int]]:
    """
    The stretches of a user message outside the elements that clients write there, as offsets.

    An element that is not closed is text; each is looked for once, so time is linear.
    """
    found = [tag.span() for tag in _ARGUMENTS.finditer(text)] if "<" in text else []
    found += [note.span() for note in [_NOTES.match(text)] if note]
    for tag in ASIDE_TAGS if "<" in text else ():
        opens, closes, at = f"<{tag}>", f"</{tag}>", 0
        while (start := text.find(opens, at)) >= 0 and (stop := text.find(closes, start)) >= 0:
            at = stop + len(closes)
            found.append((start, at))
    stretches, at = [], 0
    for start, stop in (*sorted(found), (len(text), len(text))):
        if at < start:
            stretches.append((at, start))
        at = max(at, stop)
    return stretches


def is_unspoken(message: Message, asides: Asides) -> bool:
    """Whether a message of the user's is the client's own, as a whole."""
    return message.role == "user" and bool(message.text.strip()) and not human_text(message.text, asides)


def typed_behind(message: Message, asides: Asides) -> str:
    """What a person wrote in the parts of a message behind its longest one, such as a summary of the client's."""
    return "\n".join(filter(None, (_typed(text, asides) for text in behind_longest(message, asides))))


def behind_longest(message: Message, asides: Asides) -> list[str]:
    """The texts of the parts behind the one in which most was said, as they were sent, from what a person wrote on."""
    content = message.raw.get("content")
    parts = content if isinstance(content, list) else ()
    texts = [part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str)]
    longest = max(range(len(texts)), key=lambda at: len(_typed(texts[at], asides)), default=0)
    return [*dropwhile(lambda text: not _typed(text, asides), texts[longest + 1 :])]


def _typed(text: str, asides: Asides) -> str:
    return "" if _ELEMENT.fullmatch(untagged_words(text)) else human_text(text, asides)


def newest_spoken(chat: Chat, asides: Asides) -> tuple[int, str]:
    """The newest message in which a person says something, as an index into `chat.messages`, and what; or -1, ""."""
    for at in range(len(chat.messages) - 1, -1, -1):
        message = chat.messages[at]
        if message.role == "user" and (said := human_text(message.text, asides)):
            return at, said
    return -1, ""


def _unquoted(text: str) -> str:
    """The text without one pair of quotation marks that encloses all of it; two quotations stay as they are."""
    opening, inside, closing = text[:1], text[1:-1], text[1:][-1:]
    if not closing or closing not in QUOTES.get(opening, ""):
        return text
    # What builds a command line marks quotation marks inside so.
    inside = inside.replace('\\"', "\0") if opening == '"' else inside
    return text if opening in inside or closing in inside else inside.replace("\0", '"').strip()
