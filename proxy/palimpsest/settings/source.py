"""
The source of a running proxy's policy: its files, and the flags of its start, so that it can be read anew; and what of
another policy can take effect without a restart.

A start hands it over to its worker processes in the environment, as it does the policy itself.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from palimpsest.domain.errors import PolicyError
from palimpsest.domain.frozen import frozen
from palimpsest.settings.load import SOURCE_ENV, TOKEN_FILE_ENV, files_named, load, preset_or_file, validated, value_at
from palimpsest.settings.policy import Policy, settings_by_path

MISSING = b"missing"  # in place of the content of a file that cannot be read

AT_RESTART = (
    *("data", "listen.host", "listen.port", "listen.workers", "listen.shutdown_seconds", "listen.drain_seconds"),
    *("archive.synchronous", "model.name", "model.folder", "model.cache", "model.download"),
    *("server.url", "server.key_file", "server.insecure"),
)
"""What sockets, processes, the open database and the loaded model are made of."""

OWN_PLACE = ("listen.host", "listen.port")  # of one process among several that share a policy
DIGEST_CHARS = 12  # 48 bits: tells the policies of one installation apart, and can be read out


@frozen
class Source:
    """Where a policy comes from, beside the environment. Without `files` nothing can change."""

    files: tuple[Path, ...] = ()
    flags: Mapping[str, str | int] = field(default_factory=dict)

    def load(self, environment: Mapping[str, str]) -> Policy:
        """
        Read the policy from files, environment and flags as they are now.

        Raises `PolicyError`: see `load.load`; or a file has become something else, such as a pipe that nobody writes
        to.
        """
        for file in self.files:
            if file.exists() and not file.is_file():
                raise PolicyError(f"{file}: is no longer a regular file, and cannot be read again")
        return load(self.files, environment, self.flags)

    def content(self, environment: Mapping[str, str]) -> bytes:
        """
        A hash of what the files hold: the configuration's files, and the admin token's. Names and times say nothing, as
        Kubernetes swaps a symlink and editors rename.
        """
        files = list(self.files)
        files += [Path(environment[TOKEN_FILE_ENV])] if environment.get(TOKEN_FILE_ENV) else []
        digest = hashlib.sha256()
        for file in files:
            try:
                digest.update(hashlib.sha256(file.read_bytes()).digest() if file.is_file() else MISSING)
            except OSError:
                digest.update(MISSING)
        return digest.digest()

    def hand_over(self) -> dict[str, str]:
        """Environment variables that make `handed_over` return this in another process."""
        stated = {"files": [str(file) for file in self.files], "flags": dict(self.flags)}
        return {SOURCE_ENV: json.dumps(stated)}


NO_SOURCE = Source()


def source_of(
    files: Sequence[Path] | None, environment: Mapping[str, str], flags: Mapping[str, str | int | None]
) -> Source:
    """The source for the arguments of `load.load`. Paths are absolute, and links in them stay links."""
    named = files_named(files, environment)
    given = {name: value for name, value in flags.items() if value is not None}
    return Source(tuple(preset_or_file(file).absolute() for file in named), given)


def handed_over(environment: Mapping[str, str]) -> Source:
    """The source that a start passed to this process; without one nothing is read anew."""
    stated = json.loads(environment.get(SOURCE_ENV) or "{}")
    return Source(tuple(map(Path, stated.get("files", ()))), stated.get("flags", {}))


@frozen
class Comparison:
    """A policy that may take the place of the one in force; dotted paths of what differs in it, and of what waits."""

    policy: Policy
    changed: tuple[str, ...]
    waiting: tuple[str, ...]


def compare(running: Policy, loaded: Policy) -> Comparison:
    """
    What a new policy changes in the one that runs. Raises `PolicyError`: with what waits for a restart it is refused.
    """
    tree, before = (policy.model_dump(mode="json") for policy in (loaded, running))
    waiting = tuple(
        path for path in AT_RESTART if value_at(tree, path) != value_at(before, path) and not _is_any_port(tree, path)
    )
    for path in AT_RESTART:
        _set(tree, path, value_at(before, path))
    try:
        policy = validated(tree)
    except PolicyError as wrong:
        text = f"{wrong}; until a restart these stay as they are: {', '.join(waiting)}" if waiting else str(wrong)
        raise PolicyError(text) from wrong
    after = policy.model_dump(mode="json")
    changed = tuple(path for path in settings_by_path() if value_at(after, path) != value_at(before, path))
    return Comparison(policy, changed, waiting)


def digest_of(policy: Policy) -> str:
    """A short hash of a policy, equal in all processes that act alike."""
    tree = policy.model_dump(mode="json")
    for path in OWN_PLACE:
        _set(tree, path, None)
    return hashlib.sha256(json.dumps(tree, sort_keys=True).encode()).hexdigest()[:DIGEST_CHARS]


def _is_any_port(tree: Any, path: str) -> bool:
    """Whether the running port may be any, so that a change to 0 is none."""
    return path == "listen.port" and value_at(tree, path) == 0


def _set(tree: Any, path: str, value: Any) -> None:
    """Set the value at a dotted path of a tree."""
    *parents, last = path.split(".")
    for part in parents:
        tree = tree[part]
    tree[last] = value
