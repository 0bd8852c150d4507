"""The document of the admin API, as people and generators of clients read it."""

from __future__ import annotations

import re
from typing import Any

import orjson
import pytest
from palimpsest.edge.admin.openapi import document
from palimpsest.edge.admin.operation import PREFIX
from palimpsest.edge.admin.routes import all_operations
from palimpsest.features.registry import OPERATIONS

from tests.edge.admin.asking import ACME, House
from tests.running import ROOT

DOCUMENT = document(all_operations(OPERATIONS))


def test_every_operation_is_in_it_once() -> None:
    told = {(method.upper(), path) for path, methods in DOCUMENT["paths"].items() for method in methods}
    assert told == {(one.method, PREFIX + re.sub(r":\w+}", "}", one.path)) for one in all_operations(OPERATIONS)}
    names = [one["operationId"] for methods in DOCUMENT["paths"].values() for one in methods.values()]
    assert len(set(names)) == len(names)


def test_every_parameter_and_every_field_is_described() -> None:
    operations = [one for methods in DOCUMENT["paths"].values() for one in methods.values()]
    parameters = [
        (one["operationId"], part["name"])
        for one in operations
        for part in one["parameters"]
        if not part["description"]
    ]
    contents = [one["requestBody"]["content"] for one in operations if "requestBody" in one]
    bodies = [content["application/json"]["schema"] for content in contents if "application/json" in content]
    fields = [
        (name, field)
        for shape in (*DOCUMENT["components"]["schemas"].values(), *bodies)
        for name, field in shape.get("properties", {}).items()
        if "description" not in field and "$ref" not in field and field.get("type") != "array"
    ]
    assert (parameters, [name for name, _ in fields]) == ([], [])


def test_the_guide_lists_every_operation() -> None:
    table = (ROOT / "docs" / "api.md").read_text().partition("## All operations")[2]
    told = [
        f"| `{one.method} {one.path.replace(':path}', '}')}` | {one.summary[0].lower()}{one.summary[1:]} |"
        for one in all_operations(OPERATIONS)
    ]
    assert [line for line in told if line not in table] == []


def references(value: Any) -> set[str]:
    if isinstance(value, dict):
        own = {value["$ref"]} if isinstance(value.get("$ref"), str) else set()
        return own.union(*map(references, value.values()))
    return set().union(*map(references, value)) if isinstance(value, list) else set()


def test_every_reference_leads_somewhere() -> None:
    for reference in references(DOCUMENT):
        _, *path = reference.split("/")
        found = DOCUMENT
        for name in path:
            found = found[name]
        assert found


def test_what_may_be_left_out_and_what_may_not_is_told_apart() -> None:
    search = DOCUMENT["paths"]["/memory/v1/search"]["get"]
    assert [part["name"] for part in search["parameters"] if part["required"]] == ["q"]
    limit = next(part["schema"] for part in search["parameters"] if part["name"] == "limit")
    assert limit == {"type": "integer", "minimum": 1, "maximum": 200, "default": 20}


async def test_it_is_served_to_whoever_has_a_key(house: House) -> None:
    assert await house.get("openapi.json", ACME) == orjson.loads(orjson.dumps(DOCUMENT))


def test_the_command_prints_it(capsys: pytest.CaptureFixture[str]) -> None:
    from palimpsest.commands.cli import main

    assert main(["openapi"]) == 0
    assert orjson.loads(capsys.readouterr().out) == orjson.loads(orjson.dumps(DOCUMENT))
