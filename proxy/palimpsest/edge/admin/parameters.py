"""
Parameters of one request to the admin API, parsed: from the path, from the query, and from the JSON object in its body.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from difflib import get_close_matches
from typing import Any, TypeVar

import orjson
from pydantic import ValidationError
from starlette.requests import Request

from palimpsest.edge.admin.operation import JSON, NOT_BLANK, Operation, Refused

P = TypeVar("P")

MAX_BODY_BYTES = 1 << 20  # of a JSON object; the longest names and words to search for need a thousandth of it


async def parse(operation: Operation[P], request: Request) -> P:
    """
    What was asked.

    Raises:
        Refused: 400, with words about what is wrong; 404 where that is in the path; 413 for a body that is too large.
    """
    known = [field.name for field in fields(operation.asks)]  # type: ignore[arg-type]
    in_path = {name: value for name, value in request.path_params.items() if name in operation.path_names}
    if blank := next((name for name, value in in_path.items() if not value.strip()), None):
        raise Refused(404, f"{blank} is required")
    outside = [name for name in known if name not in in_path]
    query = request.query_params.multi_items()
    names = [name for name, _ in query]
    if operation.body == JSON:
        _refuse_unknown(names, ())
        body = await _json_object(request)
        _refuse_unknown(body, outside)
        try:
            given = orjson.dumps(body | in_path)
        except orjson.JSONEncodeError:  # it is read more deeply nested than it is written
            raise Refused(400, "the body is nested too deeply") from None
        return _told(operation, lambda: operation.adapter.validate_json(given, strict=True))
    _refuse_unknown(names, outside)
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise Refused(400, f"{twice}: given more than once")
    return _told(operation, lambda: operation.adapter.validate_strings(dict(query) | in_path))


async def _json_object(request: Request) -> dict[str, Any]:
    data = b""
    async for piece in request.stream():
        data += piece
        if len(data) > MAX_BODY_BYTES:
            raise Refused(413, f"the body is larger than {MAX_BODY_BYTES} bytes")
    try:
        body = orjson.loads(data or b"{}")
    except orjson.JSONDecodeError:
        body = None
    if not isinstance(body, dict):
        raise Refused(400, "the body must be a JSON object")
    return body


def _refuse_unknown(names: Iterable[str], known: Iterable[str]) -> None:
    """A misspelt filter that was passed over would list, or delete, more than was meant."""
    known = sorted(known)
    for name in names:
        if name not in known:
            near = get_close_matches(name, known, 1)
            hint = f"did you mean {near[0]}?" if near else f"allowed: {', '.join(known) or 'none'}"
            raise Refused(400, f"{name}: not known here; {hint}")


def _told(operation: Operation[P], parsed: Callable[[], P]) -> P:
    try:
        return parsed()
    except ValidationError as wrong:
        errors = wrong.errors(include_url=False)
        bounds = operation.adapter.json_schema()["properties"]
        is_of_path = any(error["loc"][:1] and error["loc"][0] in operation.path_names for error in errors)
        raise Refused(404 if is_of_path else 400, "; ".join(_words(error, bounds) for error in errors)) from wrong


def _words(error: Mapping[str, Any], bounds: Mapping[str, Any]) -> str:
    name = ".".join(str(part) for part in error["loc"])
    if error["type"] == "missing" or error.get("ctx", {}).get("pattern") == NOT_BLANK:
        return f"{name} is required"
    declared = bounds.get(name, {})
    if "minimum" in declared and "maximum" in declared:
        return f"{name}: must be a number from {declared['minimum']} to {declared['maximum']}"
    if error["type"] == "string_pattern_mismatch":
        meant = str(declared.get("description", "")).rstrip(".")
        return f"{name}: not understood; expected: {meant[:1].lower()}{meant[1:]}"
    text = str(error["msg"]).removeprefix("Value error, ")
    return f"{name}: {text.replace('Input should', 'must', 1)}"
