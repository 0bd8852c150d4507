"""Findings read well in a terminal, in a pipe and by a program."""

from __future__ import annotations

import io

import orjson
from palimpsest.commands.doctor.finding import document, failed, ok, table, warning
from rich.console import Console

FINDINGS = [ok("store", "fine"), warning("clock", "late", "set it"), failed("port", "taken by \x1b[31mx", "move")]


def test_each_finding_is_a_line_and_its_advice_the_next() -> None:
    out = io.StringIO()
    Console(file=out, width=100).print(table(FINDINGS))
    assert [line.split() for line in out.getvalue().splitlines()] == [
        ["ok", "store", "fine"],
        ["warning", "clock", "late"],
        ["->", "set", "it"],
        ["failed", "port", "taken", "by", "\\x1b[31mx"],
        ["->", "move"],
    ]


def test_a_program_gets_the_same() -> None:
    told = orjson.loads(document(FINDINGS))
    assert told["fine"] is False
    assert told["checks"][1] == {"check": "clock", "state": "warning", "found": "late", "advice": "set it"}
    assert orjson.loads(document(FINDINGS[:2]))["fine"] is True
