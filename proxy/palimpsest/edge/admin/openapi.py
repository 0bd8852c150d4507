"""
The OpenAPI 3.1 document of the admin API, made from the table of its operations.

Paths, parameters, bodies and replies come from the declarations by which requests are parsed and answered.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from pydantic import Field, TypeAdapter

from palimpsest import __version__
from palimpsest.domain.frozen import frozen
from palimpsest.edge.admin.operation import JSON, NOT_BLANK, PREFIX, Operation

DESCRIPTION = """\
What Palimpsest remembers, what it decided and what it added, and how to delete it.

Every call needs the admin token, as `authorization: Bearer`, or a proxy key, which sees its own tenant only. Without a
token, the machine itself is let in where the proxy listens on a loopback address. Every error has the same shape.
"""
COMPONENT = "#/components/schemas/{model}"
RESPONSE = "#/components/responses/{}"
ERROR = {"$ref": COMPONENT.format(model="Error")}

STATUSES = {
    400: "A parameter is wrong; the message says which, and what is allowed.",
    401: "No key, or a wrong one.",
    403: "Not allowed with this key: it opens its own tenant only.",
    503: "The store or an index did not answer; the log says why.",
}
FOR_BODIES = {413: "The body is too large."}


@frozen
class ErrorBody:
    message: Annotated[str, Field(description="What was wrong, and what to try.")]
    type: Annotated[str, Field(description="Always `palimpsest_error`.")]
    code: Annotated[int, Field(description="The status.")]


@frozen
class Error:
    """An error, in the shape that OpenAI clients know."""

    error: ErrorBody


def document(table: Iterable[Operation[Any]]) -> dict[str, Any]:
    """The document, as JSON values."""
    operations = list(table)
    adapters: dict[tuple[Any, str], TypeAdapter[Any]] = {(Error, "serialization"): TypeAdapter(Error)}
    for operation in operations:
        adapters[operation.asks, "validation"] = operation.adapter
        for replied in (operation.replies, *operation.other_replies.values()):
            adapters.setdefault((replied, "serialization"), TypeAdapter(replied))
    schemas, shared = TypeAdapter.json_schemas(
        [(type_, mode, adapter) for (type_, mode), adapter in adapters.items()],  # type: ignore[misc]
        ref_template=COMPONENT,
    )
    components = shared.get("$defs", {})

    def schema(type_: Any, mode: str) -> dict[str, Any]:
        found: dict[str, Any] = schemas[type_, mode]  # type: ignore[index]
        return found

    def resolved(found: dict[str, Any]) -> dict[str, Any]:
        name = found.get("$ref", "").rpartition("/")[2]
        inner: dict[str, Any] = components[name] if name else found
        return inner

    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        asked = resolved(schema(operation.asks, "validation"))
        path = PREFIX + re.sub(r":\w+}", "}", operation.path)
        replied = {operation.status: operation.replies, **operation.other_replies}
        told = {status: schema(reply, "serialization") for status, reply in replied.items()}
        paths.setdefault(path, {})[operation.method.lower()] = _operation(operation, asked, told)
    used = _used(paths | {"": schema(Error, "serialization")}, components)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Palimpsest", "version": __version__, "description": DESCRIPTION},
        "security": [{"key": []}],
        "paths": paths,
        "components": {
            "schemas": {name: components[name] for name in sorted(used)},
            "responses": {
                str(status): _answer(words, JSON, ERROR) for status, words in (STATUSES | FOR_BODIES).items()
            },
            "securitySchemes": {
                "key": {"type": "http", "scheme": "bearer", "description": "The admin token, or a proxy key."}
            },
        },
    }


def _operation(operation: Operation[Any], asked: dict[str, Any], replies: dict[int, Any]) -> dict[str, Any]:
    properties: dict[str, Any] = asked.get("properties", {})
    required = asked.get("required", [])
    parameters = []
    body: dict[str, Any] = {}
    for name, declared in properties.items():
        in_path = name in operation.path_names
        if not in_path and operation.body == JSON:
            body[name] = declared
            continue
        described = {key: value for key, value in declared.items() if key not in ("title", "description", "default")}
        if not in_path:
            described = _without_null(described)
            if declared.get("default") not in (None, ""):
                described["default"] = declared["default"]
        elif described.get("type") == "string" and "pattern" not in described:
            described["pattern"] = NOT_BLANK
        place = {"name": name, "in": "path" if in_path else "query", "required": in_path or name in required}
        parameters.append(place | {"description": declared.get("description", ""), "schema": described})
    entry: dict[str, Any] = {"summary": operation.summary, "operationId": _id(operation), "parameters": parameters}
    if operation.body == JSON and body:
        needed = [name for name in body if name in required]
        shape = {"type": "object", "properties": body, "required": needed, "additionalProperties": False}
        entry["requestBody"] = {"required": bool(needed), "content": {JSON: {"schema": shape}}}
    elif operation.body and operation.body != JSON:
        entry["requestBody"] = {"required": True, "content": {operation.body: {}}}
    statuses = {**STATUSES, **(FOR_BODIES if operation.body else {}), **operation.statuses}
    entry["responses"] = {
        str(operation.status): _answer("Done.", operation.gives, replies[operation.status]),
        **{
            str(status): _answer(words, JSON, replies.get(status, ERROR))
            if status in operation.statuses
            else {"$ref": RESPONSE.format(status)}
            for status, words in sorted(statuses.items())
        },
    }
    return entry


def _answer(words: str, media_type: str, schema: Any) -> dict[str, Any]:
    return {"description": words, "content": {media_type: {"schema": schema}}}


def _id(operation: Operation[Any]) -> str:
    """A name for generated clients: get_conversations_conversation_turns."""
    words = re.findall(r"\w+", re.sub(r":\w+}", "}", operation.path))
    return "_".join((operation.method.lower(), *words))


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """A query cannot say null: it leaves the parameter out."""
    kinds = [kind for kind in schema.get("anyOf", []) if kind != {"type": "null"}]
    if len(kinds) != 1:
        return schema
    return {**{key: value for key, value in schema.items() if key != "anyOf"}, **kinds[0]}


def _used(told: Any, components: Mapping[str, Any]) -> set[str]:
    """Names of the components to which the document refers, those that other components refer to among them."""
    used: set[str] = {"Error"} & components.keys()
    waiting = [told, *(components[name] for name in used)]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            name = str(value.get("$ref", "")).rpartition("/")[2]
            if name in components and name not in used:
                used.add(name)
                waiting.append(components[name])
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
    return used
