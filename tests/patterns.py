"""What a pattern matches, and what it is made of: read from the pattern itself, so that none is forgotten."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from functools import cache
from itertools import cycle
from re import _constants as op  # type: ignore[attr-defined]
from re import _parser as parser
from typing import Any

LETTERS = "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zAbC4fG6hJ8kM2nP5qR7sT9uV1wX3yZ"


def example(pattern: re.Pattern[str]) -> str:
    """A text that the pattern matches whole; what stands around it is not asked."""
    return "".join(_chosen(parser.parse(pattern.pattern, pattern.flags), cycle(LETTERS)))


@cache  # modules import patterns of each other
def fragments(pattern: re.Pattern[str]) -> set[str]:
    """The texts that a pattern names, its shortest match, and parts of it: what makes it begin again and again."""
    parsed = parser.parse(pattern.pattern, pattern.flags)
    whole = "".join(_chosen(parsed, cycle(LETTERS)))
    literal = {run for run in _literals(parsed) if run.strip("\0")}
    return {
        *literal,
        whole,
        whole[: len(whole) // 2],
        whole[:-1],
        *(whole[:size] for size in (4, 8) if len(whole) > size),
    }


def _chosen(items: Any, letters: Iterator[str]) -> Iterator[str]:
    for kind, value in items:
        if kind is op.LITERAL:
            yield chr(value)
        elif kind is op.NOT_LITERAL:
            yield next(letter for letter in letters if ord(letter) != value)
        elif kind is op.ANY:
            yield next(letters)
        elif kind is op.IN:
            yield _member(value, letters)
        elif kind in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT):
            is_optional = value[:2] == (0, 1)
            for _ in range(1 if is_optional else value[0]):
                yield from _chosen(value[2], letters)
        elif kind is op.SUBPATTERN:
            yield from _chosen(value[3], letters)
        elif kind is op.ATOMIC_GROUP:
            yield from _chosen(value, letters)
        elif kind is op.BRANCH:
            yield from _chosen(value[1][0], letters)
        elif kind is op.GROUPREF_EXISTS:
            yield from _chosen(value[2] or (), letters)


def _member(members: Any, letters: Iterator[str]) -> str:
    fits = _fits(members)
    for _ in LETTERS:
        if fits(letter := next(letters)):
            return letter
    return next(chr(code) for code in range(9, sys.maxunicode) if fits(chr(code)))


def _fits(members: Any) -> Callable[[str], bool]:
    negated = members[0][0] is op.NEGATE
    signs = {
        op.CATEGORY_DIGIT: str.isdigit,
        op.CATEGORY_SPACE: str.isspace,
        op.CATEGORY_WORD: lambda c: c.isalnum() or c == "_",
        op.CATEGORY_NOT_SPACE: lambda c: not c.isspace(),
        op.CATEGORY_NOT_WORD: lambda c: not (c.isalnum() or c == "_"),
        op.CATEGORY_NOT_DIGIT: lambda c: not c.isdigit(),
    }

    def holds(letter: str) -> bool:
        for kind, value in members:
            if kind is op.LITERAL and ord(letter) == value:
                return True
            if kind is op.RANGE and value[0] <= ord(letter) <= value[1]:
                return True
            if kind is op.CATEGORY and signs[value](letter):
                return True
        return False

    return lambda letter: holds(letter) is not negated


def _literals(items: Any) -> Iterator[str]:
    run = ""
    for kind, value in items:
        if kind is op.LITERAL:
            run += chr(value)
            continue
        if run:
            yield run
        run = ""
        if kind in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT):
            yield from _literals(value[2])
        elif kind is op.SUBPATTERN:
            yield from _literals(value[3])
        elif kind is op.ATOMIC_GROUP:
            yield from _literals(value)
        elif kind is op.BRANCH:
            for branch in value[1]:
                yield from _literals(branch)
    if run:
        yield run
