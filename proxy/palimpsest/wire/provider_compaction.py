"""
Requests for a compaction on the Responses wire, and whether the answer to one is a compaction: few servers with that
API know what it is.
"""

from __future__ import annotations

from palimpsest.domain.ports import Wire
from palimpsest.wire import compaction, responses
from palimpsest.wire.json_body import object_in
from palimpsest.wire.message import OPAQUE_PART, objects, text_of

REFUSALS = frozenset({400, 404, 405, 422, 501})  # of what is not known; credentials, limits and failures say otherwise
_TRIGGER = f'"{responses.TRIGGER}"'.encode()
_BEFORE = frozenset({"", "reasoning"})  # types of items that may stand in front of a compaction


def may_compact(body: bytes, wire: Wire) -> bool:
    """Whether a request may ask for a compaction; found without parsing it."""
    return wire is compaction or (wire is responses and _TRIGGER in body)


def holds_compaction(payload: bytes) -> bool | None:
    """Whether an event of the answer, or the whole of it, holds a compaction; None: it does not tell."""
    heard = object_in(payload)
    item, response = heard.get("item"), heard.get("response")
    whole = response if isinstance(response, dict) else heard
    listed = [item] if isinstance(item, dict) else objects(whole.get("output"))
    kinds = [text_of(one.get("type")) for one in listed]
    if any(OPAQUE_PART in kind for kind in kinds):
        return True
    return None if _BEFORE.issuperset(kinds) else False
