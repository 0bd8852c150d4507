"""
A policy beside the one in force: what differs, what of it takes effect at once, and what waits for a restart.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from palimpsest.domain.errors import PolicyError
from palimpsest.domain.frozen import frozen
from palimpsest.settings.describe import settings_by_path
from palimpsest.settings.load import validated
from palimpsest.settings.policy import Policy

AT_RESTART = (
    *("data", "listen.host", "listen.port", "listen.workers", "listen.shutdown_seconds", "listen.drain_seconds"),
    *("archive.synchronous", "model.name", "model.folder", "model.cache", "model.download"),
)
"""What sockets, processes, the open database and the loaded model are made of."""

OWN_PLACE = ("listen.host", "listen.port")  # of one process among several that share a policy
DIGEST_CHARS = 12  # 48 bits: tells the policies of one installation apart, and can be read out


@frozen
class Comparison:
    """A policy that may take the place of the one in force; dotted paths of what differs in it, and of what waits."""

    policy: Policy
    changed: tuple[str, ...]
    waiting: tuple[str, ...]


def compare(running: Policy, loaded: Policy) -> Comparison:
    """
    What a newly read policy changes in the one that is running.

    Raises:
        PolicyError: together with what stays until a restart it would be refused.
    """
    tree, before = (policy.model_dump(mode="json") for policy in (loaded, running))
    waiting = tuple(
        path for path in AT_RESTART if _at(tree, path) != _at(before, path) and not _is_any_port(tree, path)
    )
    for path in AT_RESTART:
        _set(tree, path, _at(before, path))
    try:
        policy = validated(tree)
    except PolicyError as wrong:
        text = f"{wrong}; until a restart these stay as they are: {', '.join(waiting)}" if waiting else str(wrong)
        raise PolicyError(text) from wrong
    after = policy.model_dump(mode="json")
    changed = tuple(path for path in settings_by_path() if _at(after, path) != _at(before, path))
    return Comparison(policy, changed, waiting)


def digest_of(policy: Policy) -> str:
    """A short hash of what is in force: equal in all processes that act alike."""
    tree = policy.model_dump(mode="json")
    for path in OWN_PLACE:
        _set(tree, path, None)
    return hashlib.sha256(json.dumps(tree, sort_keys=True).encode()).hexdigest()[:DIGEST_CHARS]


def _is_any_port(tree: Any, path: str) -> bool:
    """Whether whatever port was taken is the one that is wanted."""
    return path == "listen.port" and _at(tree, path) == 0


def _at(tree: Any, path: str) -> Any:
    for part in path.split("."):
        tree = tree[part]
    return tree


def _set(tree: Any, path: str, value: Any) -> None:
    *parents, last = path.split(".")
    for part in parents:
        tree = tree[part]
    tree[last] = value
