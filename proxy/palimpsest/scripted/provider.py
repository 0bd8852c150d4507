"""
What a provider answers without its model: model lists, token counts, stored answers, compacted windows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from palimpsest.domain import Json
from palimpsest.scripted import responses
from palimpsest.scripted.chat import error_body
from palimpsest.scripted.reply import MODELS, Received

COMPACTED_TOKENS = 100  # of the item that a window becomes
_STORED = re.compile(r"/(responses|conversations)/([^/]+)$")


class Provider:
    """The state that OpenAI stores: responses by id, and conversations."""

    def __init__(self) -> None:
        self.windows: dict[str, int] = {}  # of models that the list has besides, as vLLM names them
        self._objects: dict[str, Json] = {}  # responses and conversations, by id
        self._windows: dict[str, tuple[Json, ...]] = {}  # the items behind each

    def answer(self, got: Received, number: int) -> tuple[int, Json | bytes] | None:
        """Status and body of a request that needs no script, or None; `number` makes new ids."""
        if got.endpoint.endswith("/models"):
            return 200, _models(got, self.windows)
        if got.method in ("GET", "DELETE") and (named := _STORED.search(got.endpoint)):
            return self._stored(got.method, named[1], named[2])
        if got.method != "POST":
            return None
        method = next((method for ending, method in self._endpoints() if got.endpoint.endswith(ending)), None)
        return method(got, number) if method else None

    def keep(self, got: Received, response: Json) -> None:
        """Store a response, unless its request forbids it."""
        if not response["store"]:
            return
        window = (*self._window(got.json), *response["output"])
        self._objects[response["id"]], self._windows[response["id"]] = response, window
        if response["conversation"]:
            self._windows[response["conversation"]["id"]] = window

    def _endpoints(self) -> Sequence[tuple[str, Callable[[Received, int], tuple[int, Json | bytes] | None]]]:
        return (
            ("/messages/count_tokens", lambda got, number: (200, {"input_tokens": got.tokens})),
            ("/conversations", self._open),
            ("/responses/compact", self._compact),
            ("/responses", lambda got, number: self._unknown(got.json)),
        )

    def _open(self, got: Received, number: int) -> tuple[int, Json]:
        """A new conversation with its first items."""
        name = f"conv_{number}"
        self._objects[name] = {"id": name, "object": "conversation", "created_at": 0, "metadata": {}}
        self._windows[name] = tuple(got.json.get("items") or ())
        return 200, self._objects[name]

    def _compact(self, got: Received, number: int) -> tuple[int, Json | bytes]:
        """The user's messages, and one item in place of the rest."""
        if refusal := self._unknown(got.json):
            return refusal
        window = self._window(got.json)
        users = [
            {"id": f"msg_{number}_{index}", "type": "message", "status": "completed", "role": "user"}
            | {"content": _parts(item["content"])}
            for index, item in enumerate(window)
            if item.get("role") == "user"
        ]
        return 200, {
            "id": f"resp_{number}",
            "object": "response.compaction",
            "created_at": 0,
            "output": [*users, responses.compaction(window, number)],
            "usage": responses.usage(got.tokens, COMPACTED_TOKENS),
        }

    def _unknown(self, asked: Json) -> tuple[int, bytes] | None:
        name = asked.get("previous_response_id")
        if name and name not in self._windows:
            text = f"Previous response with id '{name}' not found."
            return 400, error_body(text, 400, param="previous_response_id", code="previous_response_not_found")
        name = _conversation(asked)
        if name and name not in self._windows:
            return 404, error_body(f"Conversation with id '{name}' not found.", 404)
        return None

    def _window(self, asked: Json) -> tuple[Json, ...]:
        """All items of a request, including those of the history behind its id."""
        given = asked.get("input") or ()
        items = [{"type": "message", "role": "user", "content": given}] if isinstance(given, str) else given
        return (*self._windows.get(asked.get("previous_response_id") or _conversation(asked), ()), *items)

    def _stored(self, method: str, kind: str, name: str) -> tuple[int, Json | bytes]:
        found = self._objects.get(name)
        if found is None:
            return 404, error_body(f"{kind.removesuffix('s').capitalize()} with id '{name}' not found.", 404)
        if method == "DELETE":
            del self._objects[name], self._windows[name]
            return 200, {"id": name, "object": f"{found['object']}.deleted", "deleted": True}
        return 200, found


def _parts(content: str | list[Json]) -> list[Json]:
    """A user's message as OpenAI returns it."""
    return [{"type": "input_text", "text": content}] if isinstance(content, str) else content


def _conversation(asked: Json) -> str:
    """The id of the conversation that a request belongs to, or ""."""
    conversation = asked.get("conversation")
    return (conversation.get("id") if isinstance(conversation, dict) else conversation) or ""


def _models(got: Received, windows: Mapping[str, int]) -> Json:
    """The list, in the format of the caller's API."""
    if "anthropic-version" in {name.lower() for name in got.headers}:
        data = [
            {"type": "model", "id": name, "display_name": name, "created_at": "1970-01-01T00:00:00Z"} for name in MODELS
        ]
        return {"data": data, "has_more": False, "first_id": MODELS[0], "last_id": MODELS[-1]}
    listing = [{"id": name, "object": "model", "created": 0, "owned_by": "script"} for name in MODELS]
    listing += [{"id": name, "object": "model", "max_model_len": tokens} for name, tokens in windows.items()]
    return {"object": "list", "data": listing}
