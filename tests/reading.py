"""
Every rule that reads texts as they come, and the texts that it might be slow for.

They are made of what the rule itself looks for, repeated: the slow ones are found before somebody else finds them.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

import palimpsest.core
import palimpsest.wire
from palimpsest.core.archive.chunking import identifiers, names, query_terms, split_into_passages, tags
from palimpsest.core.caller.client_table import Asides, Signals
from palimpsest.core.facts.extraction import proposals
from palimpsest.core.facts.statements import FORMS
from palimpsest.core.history.link_keys import clues, further_clues, request_links
from palimpsest.core.history.request_roles import intent_of
from palimpsest.core.history.shingles import shingles
from palimpsest.core.recall.human_text import ASIDE_TAGS, human_text
from palimpsest.core.redaction import formats, redaction
from palimpsest.core.work.account import LostMessage, account
from palimpsest.core.work.calls import calls_of, is_refusal, outcome_of, written_edits
from palimpsest.core.work.numbered import items_of
from palimpsest.domain import BLOCK_CLOSE, BLOCK_OPEN, Chat, Event, Lineage, Message, Role, Speaker
from palimpsest.wire.fingerprint import fingerprint_of
from palimpsest.wire.message import is_aside, read_message, without_blocks
from palimpsest.wire.storage_codec import to_stored

from tests.growing import TextOf, Work, repeated
from tests.patterns import fragments

KEY = b"k" * 32
ROOM_CHARS = 2_000


@dataclass(frozen=True, slots=True)
class Rule:
    """Something that reads texts, and what it looks for."""

    name: str
    work: Work
    fragments: Collection[str]


COMMON = frozenset(
    {" ", "\n", "a", "A", "0", "-", ".", "=", "/", "\\", '"', "<", "a.", "a-", "a=", "\u0301\u0327", "é"}
)
BESIDE = ("", ".", " ", "-")  # glued to a fragment: what ends a run, and what does not


def texts_of(found: Collection[str], beside: Collection[str] = BESIDE) -> Iterator[tuple[str, TextOf]]:
    """Each fragment repeated, by itself and with something between; and with a long word behind it."""
    for fragment in sorted({*found, *COMMON}):
        for sign in beside:
            yield fragment + sign, repeated(fragment + sign)
        if len(beside) == len(BESIDE):
            yield f"{fragment}(aA0)", repeated("aA0", before=fragment)


def rules() -> Iterator[Rule]:
    """Every rule that reads a text as it came, with the fragments of its own patterns."""
    yield Rule(
        "redact: formats",
        redaction.redact,
        frozenset().union(*(fragments(f.pattern) for f in formats.long_formats())),
    )
    short = frozenset().union(*(fragments(form.pattern) for form in formats.short_formats()))
    optional = {f"{f.command}{part}" for f in formats.short_formats() if f.command for part in fragments(f.pattern)}
    yield Rule("redact: headers, commands", redaction.redact, short | optional)
    of_module = {name: _fragments_of(name) for name in _modules()}
    for name in ("redaction", "assignments"):
        yield Rule(f"redact: {name}", redaction.redact, of_module[f"palimpsest.core.redaction.{name}"])
    yield Rule("redact: each name", redaction.redact, _assignments())
    told = of_module["palimpsest.core.archive.chunking"] | of_module["palimpsest.core.recall.dates"]
    for reader in (tags, names, query_terms, identifiers):
        yield Rule(reader.__name__, reader, told)
    yield Rule("digest", lambda text: split_into_passages(text, "user"), told)
    stated = frozenset().union(*(fragments(form.pattern) for forms in FORMS.values() for form in forms)) | FORMS.keys()
    stated |= of_module["palimpsest.core.facts.sentences"] | of_module["palimpsest.core.facts.contexts"]
    yield Rule("facts of a user", lambda text: proposals(text, "user"), stated)
    yield Rule("facts of a tool", lambda text: proposals(text, "tool"), of_module["palimpsest.core.facts.extraction"])
    wire = of_module["palimpsest.wire.fingerprint"] | of_module["palimpsest.wire.message"]
    wire |= {"</a>", "<a>", "\n\n<a>y</a>", "\n\n<a></a> ", "1:00", "10:30:00.1 am", BLOCK_OPEN, BLOCK_CLOSE}
    fresh = count()

    def print_of(role: str) -> Work:  # a number in front, else it would be remembered
        return lambda text: fingerprint_of(
            read_message({"role": role, "content": f"{'x' * 90}{next(fresh)}{text}"}), KEY
        )

    yield Rule("fingerprint of a result", print_of("tool"), wire)
    yield Rule("fingerprint of a question", print_of("user"), wire)
    yield Rule("own blocks", without_blocks, wire)
    yield Rule("aside", is_aside, wire)
    gone = Asides((re.compile("go on"),))
    elements = {f"<{slash}{tag}>" for tag in ASIDE_TAGS for slash in ("", "/")}
    yield Rule("spoken", lambda text: human_text(text, gone), wire | elements | {"<a></a>", '\\"'})
    yield Rule("stored", lambda text: to_stored(read_message({"role": "user", "content": text}), str), wire)
    echoed = (
        of_module["palimpsest.core.history.shingles"]
        | of_module["palimpsest.core.history.link_keys"]
        | {"</a>\n", "<a>", "</a> ", "word "}
    )
    yield Rule("shingles", lambda text: shingles(text, KEY), echoed)
    yield Rule("links and clues", _links, echoed)
    yield Rule(
        "side request",
        lambda text: intent_of(_chat(text), Signals()),
        of_module["palimpsest.core.history.request_roles"],
    )
    work = frozenset().union(*(of_module[f"palimpsest.core.work.{name}"] for name in ("account", "numbered", "rules")))
    yield Rule("account of work", _account, work)
    yield Rule("account of a command", lambda text: _account(f"<command-name>{text}"), work)
    yield Rule("calls", _calls, of_module["palimpsest.core.work.calls"])
    yield Rule("numbered items", lambda text: items_of(text, frozenset({1})), work | {"1. a\n"})


def _modules() -> Iterator[str]:
    for package in (palimpsest.core, palimpsest.wire):
        for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            yield info.name


def _fragments_of(module: str) -> frozenset[str]:
    found: set[str] = set()
    for value in vars(importlib.import_module(module)).values():
        for pattern in _patterns(value):
            found |= fragments(pattern)
    return frozenset(part for part in found if part)


def _patterns(value: Any) -> Iterator[re.Pattern[str]]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, tuple | list):
        for item in value:
            yield from _patterns(item)
    elif isinstance(value, dict):
        yield from _patterns(list(value.values()))


def _assignments() -> frozenset[str]:
    names = ("password", "_pass", "pwd", "secret", "api_key", "X_KEY", "token", "--token", '"auth"', "mnemonic", "<pwd")
    signs = ("=", ": ", ' = "', "='", " ", ">", '\\":\\"', '="a1', "=a1b2c3d4,", "=pwdpwd", "=a.b.", " x7 ")
    return frozenset(name + sign for name in names for sign in signs)


def _chat(text: str) -> Chat:
    messages = (Message("system", text, {}), Message("user", text, {}), Message("assistant", text, {}))
    return Chat(model="m", messages=messages, raw={}, body=b"")


def _account(text: str) -> None:
    account([LostMessage(at, role, text) for at, role in enumerate(("user", "assistant", "tool"))], [], ROOM_CHARS)


def _calls(text: str) -> None:
    calls_of(text)
    outcome_of(text)
    is_refusal(text)
    written_edits(text)


def _links(text: str) -> None:
    chat, speaker, lineage = _chat(text), Speaker("t"), Lineage(Event.START, Role.MAIN, kept=(-1, -1))
    prints = [fingerprint_of(message, KEY) for message in chat.history]
    clues(chat, prints, speaker, KEY)
    further_clues(chat, lineage, speaker, KEY)
    request_links(chat.history, prints, range(len(prints)), speaker, KEY)
