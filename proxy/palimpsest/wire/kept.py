"""
References of a request to what the provider keeps: earlier answers by their ids, conversations, files, containers.

Providers know these by account. Where several tenants share one, an id of another tenant's would be answered.
"""

from __future__ import annotations

import json
from typing import Any

from palimpsest.domain.errors import WireError
from palimpsest.domain.frozen import frozen

# Method and path of what neither reads nor leaves anything that another caller could ask for.
STATELESS_PATHS = frozenset(
    {
        *("/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/responses/compact", "/v1/messages"),
        *("/v1/messages/count_tokens", "/v1/embeddings", "/v1/moderations", "/v1/rerank", "/v1/images/generations"),
        *("/v1/images/edits", "/v1/images/variations", "/v1/audio/speech", "/v1/audio/transcriptions"),
        "/v1/audio/translations",
    }
)
MODELS_PATH = "/v1/models"

_BARE = frozenset({"id", "type", "status"})  # an item with no more than these stands for one that the provider has
_FILES = frozenset({"file_id", "file_ids", "vector_store_ids"})
_SAID = frozenset(
    {"messages", "input", "system", "prompt", "images", "image", "mask"}
)  # what may hold files, at any depth

_Object = tuple[tuple[str, Any], ...]
"""A JSON object as its pairs, in order: a key may stand there twice, and readers differ on which one counts."""


@frozen
class ProviderReferences:
    """What one request names."""

    answers: tuple[str, ...]  # ids of answers, or of items in them
    fields: tuple[str, ...]  # names of fields that hold ids of anything else


def is_stateless(method: str, path: str) -> bool:
    """Whether a request for this path (raw, without its query) touches nothing that the provider keeps for others."""
    if method in ("GET", "HEAD"):
        return path in ("/", MODELS_PATH) or path.startswith(f"{MODELS_PATH}/")
    return method in ("POST", "OPTIONS") and path in STATELESS_PATHS


def provider_references(body: bytes) -> ProviderReferences:
    """
    Everything that a JSON body names of it; of a key used twice, both values. Raises `WireError`: it is no object.
    """
    try:
        root = json.loads(body, object_pairs_hook=tuple)
    except (ValueError, RecursionError) as cause:
        raise WireError("reading the request body: it is not JSON, or nested too deep") from cause
    if not isinstance(root, tuple):
        raise WireError("reading the request body: not a JSON object")
    answers: list[str] = []
    fields: list[str] = []
    for name, value in root:
        if name == "previous_response_id" and _is_id(value):
            answers.append(str(value))
        elif name in ("conversation", "container") and (_is_id(value) or _id_of(value)):
            fields.append(name)
        elif name == "tools" and isinstance(value, list):
            for tool_name, held in (pair for tool in value if isinstance(tool, tuple) for pair in tool):
                if tool_name in _FILES or tool_name == "container":
                    fields += [tool_name] if _is_id(held) else _files_in(held)
        elif name in _SAID:
            fields += _files_in(value)
        if name == "input" and isinstance(value, list):
            items = (item for item in value if isinstance(item, tuple) and {name for name, _ in item} <= _BARE)
            answers += filter(None, map(_id_of, items))
    return ProviderReferences(tuple(dict.fromkeys(answers)), tuple(dict.fromkeys(fields)))


def _files_in(value: Any) -> list[str]:
    """Names of the fields that hold ids of files. What a model gave a tool is none of it: arguments have any name."""
    found, waiting = [], [value]
    while waiting:
        node = waiting.pop()
        if isinstance(node, list):
            waiting += node
        elif isinstance(node, tuple):
            is_call = any(name == "type" and str(held).endswith("tool_use") for name, held in node)
            for name, held in node:
                if name in _FILES and _is_id(held):
                    found.append(name)
                elif not (is_call and name == "input"):
                    waiting.append(held)
    return found


def _is_id(value: Any) -> bool:
    return any(isinstance(one, str) and one for one in (value if isinstance(value, list) else [value]))


def _id_of(value: Any) -> str:
    pairs: _Object = value if isinstance(value, tuple) else ()
    return next((held for name, held in pairs if name == "id" and isinstance(held, str)), "")
