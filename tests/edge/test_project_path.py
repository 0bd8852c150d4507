"""A base URL may name the project of all requests below it; a header that names one goes before."""

from __future__ import annotations

import pytest
from palimpsest.edge.project_path import ProjectPaths
from starlette.types import Receive, Scope, Send

NAMED = b"x-palimpsest-scope"


async def handed_on(path: str, *headers: tuple[bytes, bytes]) -> Scope:
    """The scope that the application behind gets."""
    got: list[Scope] = []

    async def behind(scope: Scope, receive: Receive, send: Send) -> None:
        got.append(scope)

    async def nothing(*_: object) -> None:
        raise AssertionError("nobody reads or answers")

    scope = {"type": "http", "path": "?", "raw_path": path.encode(), "headers": [(b"host", b"here"), *headers]}
    await ProjectPaths(behind)(scope, nothing, nothing)  # type: ignore[arg-type]
    return got[0]


@pytest.mark.parametrize(
    ("path", "rest", "project"),
    [
        ("/@shop/v1/chat/completions", "/v1/chat/completions", b"shop"),
        ("/@Ann%27s%20shop/v1/models/a%2Fb", "/v1/models/a%2Fb", b"Ann's shop"),
        ("/@l%C3%A4den/v1", "/v1", "läden".encode()),
        ("/@two%0Alines/v1", "/v1", b"two%0Alines"),
        ("/@shop", "/", b"shop"),
        ("/%40shop/v1", "/v1", b"shop"),
        ("/@/v1", "/v1", None),
        ("/@one/@two/v1", "/@two/v1", b"one"),
    ],
)
async def test_a_path_that_opens_with_a_project_is_that_without_it_and_a_header(
    path: str, rest: str, project: bytes | None
) -> None:
    got = await handed_on(path)
    assert (got["raw_path"], dict(got["headers"]).get(NAMED)) == (rest.encode(), project)
    assert got["path"] == rest.replace("%2F", "/")


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/@shop", "*"])
async def test_any_other_path_stays_as_it_is(path: str) -> None:
    got = await handed_on(path)
    assert (got["raw_path"], got["path"], got["headers"]) == (path.encode(), "?", [(b"host", b"here")])


async def test_a_header_that_names_a_project_goes_before_the_path() -> None:
    got = await handed_on("/@shop/v1", (NAMED, b"garden"))
    assert [value for name, value in got["headers"] if name == NAMED] == [b"garden"]
