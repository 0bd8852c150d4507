"""
Names of a text, verbatim: paths, identifiers, versions, numbers, codes, addresses. No plain words.

Unlike the tags of `core/archive/chunking.py` they keep their case, and every number of four digits is one: whoever goes
on with a piece of work types them again exactly.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeAlias

from palimpsest.domain.word_cache import word_cache

LEAST_CHARS, MOST_CHARS = 4, 120  # shorter ones stand everywhere, longer ones are data
CACHED_TOKENS = 50_000  # a session of a million characters has some ten thousand

Places: TypeAlias = Sequence[tuple[str, int]]  # names with the characters that stand before them

_TOKEN = re.compile(r"[\w@][\w./:@-]{3,}")
_IS_NAME = re.compile(r"[_/@]|\w\.\w|[a-z][A-Z]|\d").search
_CHANGES = re.compile(
    r"[\d.,]+(?:[mµn]?s|[kKMG]i?B|[KMG]|p)|.*\d\d:\d\d:\d\d.*|and/or"
).fullmatch  # each time: measures, moments, pages of lines
_LINE = re.compile(r":\d+(?::\S*)?$")  # behind a file, as searches and compilers print it: the file is the name
_PART = re.compile(r"[A-Z]?[a-z]{2,}|[A-Z]{3,}")
_NUMBER = re.compile(r"v?[\d.,:/TZ_+-]+")
_FILE = re.compile(
    r"\.(?:c|cc|cfg|conf|cpp|cs|css|csv|env|go|h|html|ini|ipynb|java|js|jsonl?|jsx|kt|lock|log|md|php|proto|py|rb|rs"
    r"|scss|sh|sql|svelte|swift|toml|tsx?|txt|vue|xml|ya?ml)$"
)


@word_cache(CACHED_TOKENS)
def _name(token: str) -> str:
    """The name that a token is, without the signs that close a sentence; "" where it is a plain word or data."""
    name = token.strip(".:-/")
    if (line := _LINE.search(name)) and is_file(name[: line.start()]):
        name = name[: line.start()]
    is_one = LEAST_CHARS <= len(name) <= MOST_CHARS and _IS_NAME(name) and not _CHANGES(name)
    return name if is_one else ""


def names(text: str) -> set[str]:
    """The different names of a text."""
    found = set(map(_name, set(_TOKEN.findall(text))))
    found.discard("")
    return found


def placed(text: str) -> Places:
    """Every name of a text in its order, each with its place, in characters."""
    found: list[tuple[str, int]] = []
    for token in _TOKEN.finditer(text):
        if name := _name(word := token[0]):
            found.append((name, token.start() + word.find(name)))
    return found


def is_number(name: str) -> bool:
    """Whether a name is a number, a version, a date or a time, and no identifier."""
    return _NUMBER.fullmatch(name) is not None


def is_file(name: str) -> bool:
    """Whether a name ends like a file does."""
    return _FILE.search(name) is not None


@word_cache(CACHED_TOKENS)
def parts(name: str) -> tuple[str, ...]:
    """The words that a name is made of, lower case."""
    return tuple({part.lower() for part in _PART.findall(name)})
