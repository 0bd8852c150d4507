"""
Credentials in a text become `[redacted:kind]` before it reaches the disk.

Three kinds are known: private keys in armour, the credentials of `formats`, and what `assignments` give a name. None is
told by its entropy, so that commit hashes, uuids and other ids stay. Everything else is left as it is, and a JSON text
stays JSON: only the secret itself is replaced.

The time is linear in the text, whatever it says, and no step of it is long. A text with so many beginnings of
credentials that even this takes seconds is not stored: `[withheld:...]` stands in its place.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from palimpsest.core.redaction.assignments import STEMS, Assignments
from palimpsest.core.redaction.formats import LONG_CHARS, Format, long_formats, short_formats
from palimpsest.domain.frozen import frozen
from palimpsest.domain.word_cache import word_cache
from palimpsest.wire.pieces import pieces
from palimpsest.wire.storage_codec import storable

Span = tuple[int, int, str]
"""Characters `start` to `stop` are a credential of a kind."""

MIN_CHARS = 4  # of a text that could hold a credential
LOOKS = 100_000  # at beginnings of credentials, in one text: a second's work; prose and code have one in 500 characters
CHARS_PER_LOOK = 32  # further ones in a text of many megabytes
SEAM_CHARS = 128  # read behind a piece: what begins at its very end
ARMOUR_CHARS = 64 * 1024  # of a private key at most, in a line each 64
COMMAND_CHARS = 300  # of a command, in front of an option
NAME_CHARS = 500  # of a name that is stored; a user agent has 200, and a longer one costs more than it tells
REMEMBERED_NAMES = 4096  # a request brings as many as it has tools, the same ones each time
WITHHELD = "[withheld: "

_ESCAPED = re.compile(r"%[0-9A-Fa-f]{2}|\\u[0-9a-fA-F]{4}|\\[nrtbf]")
_ALNUM = re.compile(r"[A-Za-z0-9]+")
_DIGIT = re.compile(r"\d")
_TAIL = re.compile(r"[\w+/=.-]{0,4096}")  # formats of fixed length may leave the end of a longer key
_COMMAND_END = re.compile(r"(?<!\\)\n|[|;] |&&")
_ASCII_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}


def redact(text: str) -> str:
    """
    The text with every known credential replaced by `[redacted:kind]`.

    Applying it again changes nothing. Of a text that takes too long nothing is left but its hash and length; see
    `is_withheld`. The first call compiles the formats, in 50 ms: `warm` does it before.
    """
    if len(text) < MIN_CHARS:
        return text
    spans: list[Span] = []
    left = LOOKS + len(text) // CHARS_PER_LOOK
    for span in _candidates(text):
        left -= 1
        if span is not None:
            spans.append(span)
        if not left:
            digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
            return f"{WITHHELD}{len(text)} characters, sha256 {digest}]"
    if not spans:
        return text
    parts, at = [], 0
    for first, last, kind in sorted(spans, key=lambda span: span[0]):  # stable: of two at one place, the format's name
        if first >= at:
            parts += [text[at:first], f"[redacted:{kind}]"]
        at = max(at, last)
    return "".join([*parts, text[at:]])


def warm() -> None:
    """Compile the formats."""
    _anchors()


def redacted_name(name: str, key: bytes) -> str:
    """
    The name of a user, a project, a model, a tool or a client without credentials, in the form that is stored.

    What is replaced leaves a keyed hash, so that users whom clients name by their credentials stay different users.
    """
    return _redacted_name(name, key) if len(name) <= NAME_CHARS else f"[withheld: name {_hash(name, key)}]"


def stored_name(name: str, key: bytes, redacts: bool) -> str:
    """A name in the form in which it is stored, and compared with what is stored; "" stays so."""
    return storable(redacted_name(name, key) if name and redacts else name)


@word_cache(REMEMBERED_NAMES)
def _redacted_name(name: str, key: bytes) -> str:
    cleaned = redact(name)
    return cleaned if cleaned == name else f"{cleaned} {_hash(name, key)}"


def _hash(name: str, key: bytes) -> str:
    return hashlib.blake2b(
        name.encode("utf-8", "surrogatepass"), digest_size=8, key=key[:64], person=b"name"
    ).hexdigest()


def is_withheld(cleaned: str, text: str) -> bool:
    """Whether a text took too long, and `cleaned` stands in its place."""
    return cleaned.startswith(WITHHELD) and cleaned != text


def _candidates(text: str) -> Iterator[Span | None]:
    """The spans of credentials; None for each place where one might have begun and does not."""
    yield from _private_keys(text)
    assignments = Assignments(text)
    for start, stop in pieces(text):
        piece = text[start : stop + SEAM_CHARS]
        for form in _present(piece):
            yield from _matches(form, text, start, stop)
        lower = piece.lower()
        if len(lower) != len(piece):  # İ becomes two characters
            lower = piece.translate(_ASCII_LOWER)
        found = [(at, stem) for stem in STEMS if stem in lower for at in _offsets(stem, lower)]
        for at, stem in sorted(found):
            if start + at < stop:
                yield assignments.at(stem, start + at)


def _offsets(part: str, text: str) -> Iterator[int]:
    """Every offset at which `part` stands in a text, overlaps included."""
    at = text.find(part)
    while at >= 0:
        yield at
        at = text.find(part, at + 1)


# --- private keys --------------------------------------------------------------------------------

_ARMOURS = (
    (
        "-----BEGIN ",
        re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"),
        "-----END ",
        re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"),
    ),
    (
        "PuTTY-User-Key-File-",
        re.compile(r"PuTTY-User-Key-File-\d:"),
        "Private-MAC:",
        re.compile(r"Private-MAC: {0,3}\w{1,200}"),
    ),
)
_ARMOURED = re.compile(r"[A-Za-z0-9+/=:,\\\r\n -]*")  # of a key that is cut off: what looks like its lines
_KEY_LINE = re.compile(r"[A-Za-z0-9+/]{24}")  # in every key; whoever only speaks of its first line has none


def _private_keys(text: str) -> Iterator[Span | None]:
    """The spans of private keys, from first line to last, or to where a key is cut off; None: a first line alone."""
    for opening, first_line, closing, last_line in _ARMOURS:
        at = text.find(opening)
        end = 0  # of the nearest last line; -1: there is none further on
        while at >= 0:
            following = text.find(opening, at + 1)
            head = first_line.match(text, at)
            if head is not None:
                if 0 <= end < head.end():
                    end = text.find(closing, head.end())
                limit = min(at + ARMOUR_CHARS, len(text) if following < 0 else following)
                tail = last_line.match(text, end) if 0 <= end < limit else None
                cut = tail or _ARMOURED.match(text, head.end(), limit)
                stop = cut.end() if cut else head.end()
                yield (at, stop, "private-key") if _KEY_LINE.search(text, head.end(), stop) else None
            at = following


# --- formats -------------------------------------------------------------------------------------


@frozen
class _Anchors:
    """
    The formats by what to look for.

    `words` are the anchors that begin a word and end its letters with a sign, by these letters: one look-up in the
    words of a text finds which may be there. `parts` are all others of long formats.
    """

    short: Mapping[str, Sequence[Format]]
    long: Mapping[str, Sequence[Format]]
    words: Mapping[str, Sequence[str]]
    parts: Sequence[str]


@lru_cache(1)
def _anchors() -> _Anchors:
    """The formats by their anchors; anchors that begin with a whole word are listed by that word."""
    long = _by_anchor(long_formats())
    words: dict[str, list[str]] = defaultdict(list)
    parts = []
    for anchor, forms in long.items():
        letters = _ALNUM.match(anchor)
        if letters is not None and letters.end() < len(anchor) and all(form.begins_word for form in forms):
            words[letters[0]].append(anchor)
        else:
            parts.append(anchor)
    return _Anchors(_by_anchor(short_formats()), long, dict(words), parts)


def _by_anchor(forms: Iterable[Format]) -> dict[str, list[Format]]:
    """Group formats by their anchor."""
    found: dict[str, list[Format]] = defaultdict(list)
    for form in forms:
        found[form.anchor].append(form)
    return dict(found)


def _present(piece: str) -> Iterator[Format]:
    """The formats whose anchors stand in a piece of a text."""
    known = _anchors()
    for anchor, forms in known.short.items():
        if anchor in piece:
            yield from forms
    long = " ".join([word for word in piece.split() if len(word) >= LONG_CHARS])
    if long:
        words = set(_ALNUM.findall(_ESCAPED.sub(" ", long) if "%" in long or "\\" in long else long))
        anchors = [anchor for word in words & known.words.keys() for anchor in known.words[word]]
        for anchor in sorted((*anchors, *known.parts)):
            if anchor in long:
                # a single sign is too common to look at each
                yield from (form for form in known.long[anchor] if len(anchor) > 1 or form.pattern.search(long))


def _matches(form: Format, text: str, start: int, stop: int) -> Iterator[Span | None]:
    """The credentials of a format whose anchor stands in a piece of the text; None for each anchor of another thing."""
    stop += len(form.anchor) - 1
    at = text.find(form.anchor, start, stop)
    while at >= 0:
        match = None
        if not form.command or _follows_command(form.command, text, at):
            match = next((m for back in form.behind if at >= back and (m := form.pattern.match(text, at - back))), None)
        if match is None:
            yield None
            at = text.find(form.anchor, at + 1, stop)
        else:
            first, last = _secret(form, text, match)
            yield (first, last, form.kind) if _is_credential(form, text, match, first, last) else None
            at = text.find(form.anchor, max(at + 1, match.end(), last), stop)


def _secret(form: Format, text: str, match: re.Match[str]) -> tuple[int, int]:
    """The part of a match that is the secret, with all that belongs to the same word."""
    first, last = match.span(form.group)
    if not form.group:
        while (more := _TAIL.match(text, last)) and more.end() > last:
            last = more.end()
        while text[last - 1] == ".":
            last -= 1
    return first, last


def _is_credential(form: Format, text: str, match: re.Match[str], first: int, last: int) -> bool:
    if (form.needs and match[form.needs] is None) or "[redacted:" in text[first : min(last, first + COMMAND_CHARS)]:
        return False
    return not form.is_weak or _DIGIT.search(text, first, last) is not None  # a word in capitals is no key


def _follows_command(command: str, text: str, at: int) -> bool:
    first = max(0, at - COMMAND_CHARS)
    return text.rfind(command, first, at) >= 0 and command in _COMMAND_END.split(text[first:at])[-1]
