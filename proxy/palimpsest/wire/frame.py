"""
The frame of a block: what sets quoted messages apart from all that is ours, and by what a block is known again.

    <palimpsest-memory>
    Quoted earlier messages: ...
    [2026-03-05 09:12 UTC]
    user: My shoe size is 43.5.
    [14:40]
    tool: first line
    > every further line
    </palimpsest-memory>

A message begins behind its role, and each further line of it behind `> `: at the start of a line only the frame speaks,
and no message can write a day, a role or the end of the block. The tag's name inside a quote is escaped however it is
spelt, and so are the marks by which models tell the turns of a conversation apart: many servers obey them anywhere.
Twelve forms of lines, days and openings gave a small model as many right answers, within chance (70 questions): this is
the shortest that prevents all that. Only more messages in a block did worse.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from itertools import pairwise

from palimpsest.domain import BLOCK_CLOSE, BLOCK_OPEN, BlockKind

QUOTE = "> "
ESCAPED = {"<": "&lt;", "[": "&#91;"}  # what opens a tag or a mark, as a model reads it all the same
ECHO_CHARS = 20  # of a line of a block, at least: shorter ones are said without having read them
ROLE_CHARS = 20  # clients may write any text as a role
TAG_NAME = "palimpsestmemory"
TAG_JOINT = len("palimpsest")  # between the two words may stand any sign
JOINTS = 8  # signs and blanks there, and in front of the name; a few, so that a text of signs is read once

_HIDDEN = re.compile(r"\[redacted:([a-z0-9-]{1,40})\]")  # an agent that is shown a file may write it back
_ROLE = re.compile(r"\W+")
_OPENS = re.compile(r"[<\uff1c\ufe64\u2039\u27e8\u3008\u1438]")  # and what looks like it
_MARKS = re.compile(
    r"<(?=[|\uff5c][^\s|\uff5c<>]{1,40}[|\uff5c]>|/?s>|/?(?:bos|eos|pad|unk)>|/?(?:start|end)_of_\w{1,20}>|</?SYS>)"
    r"|\[(?=/?[A-Z_]{0,20}INST\])",
    re.IGNORECASE,
)
_LOOKS_LIKE = str.maketrans("аеіорѕтуӏгмһαειορτυγμıℓ", "aeiopstylrmhaeioptyymil")  # Cyrillic and Greek for Latin
_HEAD = re.compile(f'{BLOCK_OPEN}(?: kind="(?:{"|".join(BlockKind)})")?>\\n')
_DAY = r"\[\d{4}-\d\d-\d\d(?: \d\d:\d\d UTC)?\]"
_LINE = rf"(?:>.*|[\w-]+: .*|{_DAY}|\[\d\d:\d\d\])"  # of a block: a quote, a day or a time
_LINES = re.compile(rf"(?:{_LINE}\n)+")
_ECHO = re.compile(  # begins with the tag or with a day: nothing else is sure to be ours
    rf"^(?:{_HEAD.pattern}(?:.+\n)?|{_DAY}\n)(?:(?:{_LINE}(?:\n|\Z))+(?:{BLOCK_CLOSE})?)", re.MULTILINE
)


def opened(kind: BlockKind, reading: str) -> str:
    """The first two lines of a block: its tag, which names any kind but the usual one, and how it is to be read."""
    named = "" if kind is BlockKind.RECALL else f' kind="{kind.value}"'
    return f"{BLOCK_OPEN}{named}>\n{reading}\n"


def quotation(role: str, text: str) -> str:
    """
    A message as it stands in a block, without its empty lines; ends with a line break. What the archive keeps in the
    place of a credential is said not to be the value.
    """
    text = _HIDDEN.sub(r"[redacted:\1; not the value]", escaped(text))
    lines = f"\n{QUOTE}".join(line for line in text.splitlines() if line.strip())
    return f"{_ROLE.sub('-', role)[:ROLE_CHARS]}: {lines}\n"


def escaped(text: str) -> str:
    """A text that opens no tag of ours, in whatever letters, and no turn of a conversation."""
    if "<" in text or "[" in text:
        text = _MARKS.sub(lambda mark: ESCAPED[mark[0]], text)
    if not _OPENS.search(text):
        return text
    return _OPENS.sub(lambda opens: ESCAPED["<"] if _has_tag_name(text, opens.end()) else opens[0], text)


def passages_of(block: str) -> list[str]:
    """The messages that a block quotes, without their roles and days; escapes stay."""
    passages: list[str] = []
    for line in block.splitlines()[2:-1]:
        if line.startswith(QUOTE) and passages:
            passages[-1] += f"\n{line.removeprefix(QUOTE)}"
        elif not line.startswith("["):
            passages.append(line.partition(": ")[2])
    return passages


def without_blocks(text: str) -> str:
    """
    A text without the blocks that a proxy put in front of it, and without the blank line behind each.

    Only what is written as this file writes it counts, and only at the start: whoever speaks of a block is kept whole.
    """
    at = 0
    while (stop := _block_end(text, at)) > at:
        at = stop + 2 if text.startswith("\n\n", stop) else stop
    return text[at:]


def own_words(text: str, block: str = "") -> Sequence[tuple[int, int]]:
    """
    The stretches of an answer that are its own, as offsets: without blocks of ours and lines of them.

    A model that is shown a block sometimes says it again: whole, cut off, or a line from the middle of it.

    Args:
        block: that the model was shown, if it is known.
    """
    found = [echo.span() for echo in _ECHO.finditer(text)] if "[" in text or BLOCK_OPEN in text else []
    shown = {line for line in block.splitlines() if len(line) >= ECHO_CHARS}
    if shown:
        at = 0
        for line in text.splitlines(keepends=True):
            if line.strip() in shown:
                found.append((at, at + len(line)))
            at += len(line)
    ends = [(0, 0), *sorted(found), (len(text), len(text))]
    return [(before[1], behind[0]) for before, behind in pairwise(ends) if before[1] < behind[0]]


def _block_end(text: str, at: int) -> int:
    """The end of the block that begins at this offset; the offset itself where none does."""
    if (head := _HEAD.match(text, at)) is None:
        return at
    reading = text.find("\n", head.end()) + 1
    lines = _LINES.match(text, reading) if reading else None
    return lines.end() + len(BLOCK_CLOSE) if lines and text.startswith(BLOCK_CLOSE, lines.end()) else at


def _has_tag_name(text: str, at: int) -> bool:
    """Whether our tag name stands here, in look-alike letters, too, and with a few signs before and inside."""
    found = signs = 0
    while found < len(TAG_NAME) and at < len(text):
        letters = _letters(text[at])
        if letters:
            if not TAG_NAME.startswith(letters, found):
                return False
            found += len(letters)
        elif found in (0, TAG_JOINT) and not _is_invisible(text[at]):
            signs += 1
            if signs > JOINTS or _OPENS.match(text[at]):
                return False
        elif not _is_invisible(text[at]):
            return False
        at += 1
    return found == len(TAG_NAME)


def _letters(char: str) -> str:
    """The Latin letters that a character looks like, lower case; none where it is no letter."""
    if char.isascii():
        return char.lower() if char.isalnum() else ""
    plain = unicodedata.normalize("NFKD", char).lower().translate(_LOOKS_LIKE)
    return "".join(letter for letter in plain if letter.isalnum())


def _is_invisible(char: str) -> bool:
    """Whether a character is not seen, or only on top of another."""
    return unicodedata.category(char) in ("Cf", "Mn", "Me") or char == "\u115f"
