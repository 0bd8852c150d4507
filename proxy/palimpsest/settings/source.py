"""
The source of a running proxy's policy: its configuration file, and the flags of its start, so that it can be read anew.

A start hands it over to its worker processes in the environment, as it does the policy itself.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path

from palimpsest.domain.frozen import frozen
from palimpsest.errors import PolicyError
from palimpsest.settings.load import CONFIG_ENV, SOURCE_ENV, TOKEN_FILE_ENV, load, preset_or_file
from palimpsest.settings.policy import Policy

MISSING = b"missing"  # in place of the content of a file that cannot be read


@frozen
class Source:
    """Where a policy comes from, beside the environment. `file` is None where there is none: nothing can change."""

    file: Path | None = None
    flags: Mapping[str, str | int] = field(default_factory=dict)

    def load(self, environment: Mapping[str, str]) -> Policy:
        """
        The policy as file, environment and flags say now.

        Raises:
            PolicyError: see `load.load`; or the file has become something else, such as a pipe that nobody writes to.
        """
        if self.file is not None and self.file.exists() and not self.file.is_file():
            raise PolicyError(f"{self.file}: is not a regular file any more, and cannot be read again")
        return load(self.file, environment, self.flags)

    def content(self, environment: Mapping[str, str]) -> bytes:
        """
        A hash of what the files hold: the configuration's, and the admin token's. Names and times say nothing, as
        Kubernetes swaps a symlink and editors rename.
        """
        files = [self.file] if self.file is not None else []
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
        told = {"file": str(self.file) if self.file is not None else None, "flags": dict(self.flags)}
        return {SOURCE_ENV: json.dumps(told)}


NO_SOURCE = Source()


def source_of(file: Path | None, environment: Mapping[str, str], flags: Mapping[str, str | int | None]) -> Source:
    """The source for the arguments of `load.load`. Paths are absolute, and links in them stay links."""
    named = file or (Path(environment[CONFIG_ENV]) if environment.get(CONFIG_ENV) else None)
    given = {name: value for name, value in flags.items() if value is not None}
    return Source(preset_or_file(named).absolute() if named is not None else None, given)


def handed_over(environment: Mapping[str, str]) -> Source:
    """The source that a start passed to this process; where it passed none, nothing is read anew."""
    told = json.loads(environment.get(SOURCE_ENV) or "{}")
    return Source(Path(told["file"]) if told.get("file") else None, told.get("flags", {}))
