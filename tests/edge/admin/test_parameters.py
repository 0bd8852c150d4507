"""What may be asked, and what is said where it cannot be understood."""

from __future__ import annotations

from typing import Any

import pytest

from tests.edge.admin.asking import House


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("conversations?limit=0", "limit: must be a number from 1 to 200"),
        ("conversations?limit=201", "limit: must be a number from 1 to 200"),
        ("conversations?limit=x", "limit: must be a number from 1 to 200"),
        ("conversations?limt=5", "limt: not known here; did you mean limit?"),
        ("stats?tenant=a", "tenant: not known here; allowed: none"),
        ("conversations?limit=5&limit=6", "limit: given more than once"),
        ("conversations?role=boss", "role: must be 'main', 'subagent' or 'side'"),
        ("conversations?since=yesterday", "since: must be a valid datetime"),
        ("conversations?cursor=x", "cursor: not one of this list"),
        ("turns?added=maybe", "added: must be a valid boolean"),
        ("search", "q is required"),
        ("search?q=+", "q is required"),
        ("search?q=x&limit=0&role=", "limit: must be a number from 1 to 200"),
    ],
)
async def test_what_is_asked_wrongly_is_400_and_told_how_it_is_right(house: House, path: str, words: str) -> None:
    status, said = await house.ask(f"/memory/v1/{path}")
    assert (status, said["error"]["code"], said["error"]["type"]) == (400, 400, "palimpsest_error")
    assert words in said["error"]["message"]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "nothing is selected"),
        (b"{", "the body must be a JSON object"),
        (b"[]", "the body must be a JSON object"),
        (b'{"user":' + b"[" * 600 + b"]" * 600 + b"}", "the body is nested too deeply"),
        (b'{"user":' + b"[" * 5000 + b"]" * 5000 + b"}", "the body must be a JSON object"),
        ({"users": "ann"}, "users: not known here; did you mean user?"),
        ({"user": "ann", "dry_run": 1}, "dry_run: must be a valid boolean"),
        ({"turn": 1.5}, "turn: must be a valid string"),
        ({}, "nothing is selected"),
        ({"user": ""}, "user is required"),
        ({"older_than": "soon"}, "older_than: not understood; expected: age of messages: 90d, 12h, 4w"),
    ],
)
async def test_a_body_is_read_as_strictly(house: House, body: Any, words: str) -> None:
    status, said = await house.ask("/memory/v1/forget", method="POST", body=body)
    assert status == 400
    assert words in said["error"]["message"]


async def test_a_body_that_is_too_large_is_not_read(house: House) -> None:
    body = {"matching": "x" * (1 << 20)}
    assert (await house.ask("/memory/v1/forget", method="POST", body=body))[0] == 413


@pytest.mark.parametrize("number", ["0", "-1", "01", "1.0", "last", "9" * 5000])
async def test_what_is_wrong_in_a_path_names_nothing(house: House, number: str) -> None:
    for path in (f"conversations/c-1/turns/{number}", f"memories/{number.replace('01', 'x').replace('1.0', 'y')}"):
        assert (await house.ask(f"/memory/v1/{path}"))[0] == 404
