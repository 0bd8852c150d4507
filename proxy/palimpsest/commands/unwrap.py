"""
`palimpsest unwrap`: takes base URLs that lead to the proxy out of shell files and clients' settings.

Each file that it changes is copied beforehand. Where a setting cannot go by itself, it is left and named.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import sys
import tomllib
from collections.abc import Iterable, Mapping
from itertools import groupby
from pathlib import Path

import yaml

from palimpsest.commands.base_urls import SETTING, BaseUrl, Listener, listener, search
from palimpsest.console import terminal
from palimpsest.console.arguments import DONE, FAILED, Command, listen_flags, policy_flags, quiet_policy
from palimpsest.domain.errors import faults
from palimpsest.settings.policy import Policy

BACKUP = ".before-unwrap"  # is added to a file's name
MARK = "# palimpsest unwrap: "  # stands before a line that was taken out
NO_COMMAND = ": "  # and before that in a shell file, where the line may have been all that a block held
NOT_SHELL = (".toml", ".yml", ".yaml", ".conf", ".env")
SEVERAL_COMMANDS = re.compile(r"&&|\|\||;.*=|\\$")  # not each of which is about the address
CODEX_TABLE = re.compile(r"\[\s*model_providers\.(?P<name>[^\]]+?)\s*\]")


def add_commands(command: Command) -> None:
    about = "List base URLs in shell files and client settings that point to the proxy; with --yes, remove them."
    parser = command("unwrap", _unwrap, about)
    parser.add_argument("--yes", action="store_true", help="remove them, keeping a copy of each file beside it")
    policy_flags(parser)
    listen_flags(parser)


def _unwrap(given: argparse.Namespace) -> int:
    out, found = terminal.console(), search(os.environ, Path.cwd())
    leading = [one for one in found.base_urls if leads_to(one, quiet_policy(given))]
    for one in leading:
        hint = "" if one.file else f"; in this shell: unset {one.name}"
        out.print(terminal.safe(f"{one.place}: {one.name} is {one.url}{hint}"))
    for file in found.unread:
        sys.stderr.write(f"palimpsest: {file}: cannot be read, so it was not searched\n")
    if not leading:
        out.print("no shell file and no client's settings lead to the proxy")
    in_files = [one for one in leading if one.file]
    if not in_files:
        return FAILED if found.unread else DONE
    if not given.yes:
        out.print("palimpsest unwrap --yes takes out those in files")
        return DONE
    left = remove_settings(in_files)
    for changed in {one.file: None for one in in_files if one not in left}:
        out.print(terminal.safe(f"changed {changed}; as it was: {changed}{BACKUP}"))
    for one in left:
        out.print(
            terminal.safe(f"left as it is, because the rest of the file depends on it: edit {one.place} yourself")
        )
    return FAILED if left or found.unread else DONE


def leads_to(base_url: BaseUrl, policy: Policy) -> bool:
    """Whether a base URL leads to this policy's port, or to any running proxy."""
    return base_url.port == policy.listen.port or listener(base_url) is Listener.PROXY


def remove_settings(base_urls: Iterable[BaseUrl]) -> list[BaseUrl]:
    """
    Remove settings from their files, after copying each file.

    Returns:
        Those that were left, as without them the file would say nothing that its client understands.

    Raises:
        MemoryFault: a file cannot be written.
    """
    left = []
    for file, those in groupby(base_urls, key=lambda one: one.file):
        assert file is not None
        listed = list(those)
        before = file.read_text(encoding="utf-8")
        after = without(file.name, before, listed)
        if after is None:
            left += listed
            continue
        with faults(OSError, f"changing {file}"):
            shutil.copy2(file, f"{file}{BACKUP}")
            file.write_text(after, encoding="utf-8")  # in place: a link to a file elsewhere stays one
    return left


def without(name: str, text: str, base_urls: Iterable[BaseUrl]) -> str | None:
    """The text of a file without these settings; None where a person must remove them."""
    lines, numbers = text.splitlines(keepends=True), {one.line for one in base_urls}
    if name.endswith((".json", ".jsonc")):
        return _without_members(text, {one.url for one in base_urls})
    is_shell = not name.endswith(NOT_SHELL)
    if name.endswith(".toml"):
        numbers = _with_tables(lines, numbers)
    going = [lines[at - 1].strip() for at in numbers]
    if any(SEVERAL_COMMANDS.search(line) if is_shell else line.startswith("- ") for line in going):
        return None
    mark = NO_COMMAND + MARK if is_shell else MARK
    after = "".join(mark + line if at in numbers else line for at, line in enumerate(lines, 1))
    return after if _is_parsable(name, after) else None


def _with_tables(lines: list[str], numbers: set[int]) -> set[int]:
    """These lines of Codex's settings, the rest of their providers, and the lines that choose those."""
    chosen, tables, begun = set(numbers), set(), list[int]()
    name = ""
    for at, line in enumerate([*lines, "[end]"], 1):
        if line.lstrip().startswith("["):
            if name and numbers & set(begun):
                chosen |= set(begun)
                tables.add(name)
            match = CODEX_TABLE.match(line.strip())
            name, begun = (match["name"].strip("\"'") if match else ""), []
        if line.strip():
            begun.append(at)
    for at, line in enumerate(lines, 1):
        setting, _, value = line.partition("=")
        if setting.strip() == "model_provider" and value.partition("#")[0].strip().strip("\"'") in tables:
            chosen.add(at)
    return chosen


def _without_members(text: str, urls: set[str]) -> str | None:
    """A JSON object without the members that hold these URLs; formatting and order of the rest stay."""
    try:
        before = json.loads(text)
    except ValueError:
        return None  # with comments: what a change would do to them is not ours to guess
    if _is_custom(before, urls):
        return None
    after = text
    for match in reversed(list(SETTING.finditer(text))):
        if match["url"] in urls:
            start, end = text.rindex('"', 0, match.start() + 1), match.end() + 1
            ahead, behind = after[:start].rstrip(), after[end:]
            if behind.lstrip().startswith(","):
                after = after[:start] + behind.lstrip()[1:].lstrip()
            else:
                after = ahead.removesuffix(",") + behind
    return after if _is_parsable(".json", after) else None


def _is_custom(tree: object, urls: set[str]) -> bool:
    """Whether a provider of opencode's needs its address, so that it is useless without."""
    if not isinstance(tree, Mapping):
        return False
    options = tree.get("options")
    if "npm" in tree and isinstance(options, Mapping) and options.get("baseURL") in urls:
        return True
    return any(_is_custom(value, urls) for value in tree.values())


def _is_parsable(name: str, text: str) -> bool:
    """Whether a file of that name can still be parsed; shell files always count as such."""
    try:
        if name.endswith(".json"):
            json.loads(text)
        elif name.endswith(".toml"):
            tomllib.loads(text)
        elif name.endswith((".yml", ".yaml")):
            yaml.safe_load(text)
    except (ValueError, yaml.YAMLError):
        return False
    return True
