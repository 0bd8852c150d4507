"""
Pieces of a long text.

One call of `re` or `str` holds the interpreter until it returns. Over a text of megabytes that is a second in which no
other request is served; over a piece it is a millisecond, and others get their turn in between.
"""

from __future__ import annotations

from collections.abc import Iterator

PIECE_CHARS = 64 * 1024

# For `bytes.translate`: letters and digits in lower case, a space for every other sign of a text that is ASCII alone.
SPACED_AND_LOWER = bytes(ord(chr(code).lower()) if code < 128 and chr(code).isalnum() else 32 for code in range(256))


def pieces(text: str, most_chars: int = PIECE_CHARS) -> Iterator[tuple[int, int]]:
    """
    The pieces of a text, as their starts and stops.

    Each ends behind the last line break in it, else behind its last space, else after so many characters. A shorter
    text is one piece; an empty one has none.
    """
    start = 0
    while len(text) - start > most_chars:
        full = start + most_chars
        stop = text.rfind("\n", start, full) + 1 or text.rfind(" ", start, full) + 1 or full
        yield start, stop
        start = stop
    if start < len(text):
        yield start, len(text)


def squeezed(text: str) -> str:
    """The text with each run of white space as one space, and none at its ends."""
    if len(text) <= PIECE_CHARS:
        return " ".join(text.split())
    parts: list[str] = []
    follows = False  # the word before goes on here: it was cut
    for start, stop in pieces(text):
        piece = text[start:stop]
        if words := piece.split():
            if parts and not (follows and not piece[0].isspace()):
                parts.append(" ")
            parts.append(" ".join(words))
            follows = not piece[-1].isspace()
        else:
            follows = False
    return "".join(parts)
