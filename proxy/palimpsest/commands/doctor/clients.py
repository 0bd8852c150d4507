"""Checks of clients: whether base URLs lead to something that listens, and settings fit the upstreams of this proxy."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import orjson

from palimpsest.commands.base_urls import BaseUrl, Listener, listener, search
from palimpsest.commands.doctor.finding import Finding, failed, ok, warning
from palimpsest.commands.own_address import leads_here
from palimpsest.commands.wrap import first_party_variables, has_subscription_login
from palimpsest.domain import Api
from palimpsest.settings import load
from palimpsest.settings.policy import Policy
from palimpsest.upstream.routing import serving

CODEX = "codex"
COMPACTS_THERE = "OpenAI"  # the name by which Codex takes a provider for one that compacts

URLS = "base URLs"
OF_OPENAI = ("OPENAI_BASE_URL", "OPENAI_API_BASE")
VERSION = "/v1"  # that a base URL of OpenAI's clients ends in

CLAUDE = "Claude Code"
ADDRESS, FLAG, SEARCH = "ANTHROPIC_BASE_URL", "_CLAUDE_CODE_ASSUME_FIRST_PARTY_BASE_URL", "ENABLE_TOOL_SEARCH"
SMALL_WINDOW = "CLAUDE_CODE_DISABLE_1M_CONTEXT"
OFF = ("", "0", "false", "no", "off")  # as Claude Code reads a switch


def codex(policy: Policy, environment: Mapping[str, str]) -> list[Finding]:
    """A finding on Codex; none where it is not set up for this proxy, or where its settings cannot be read."""
    home = Path(environment.get("CODEX_HOME") or Path(environment.get("HOME", ""), ".codex"))
    try:
        settings: Any = tomllib.loads((home / "config.toml").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    table = settings.get("model_providers")
    providers = table.values() if isinstance(table, dict) else ()
    here = [one for one in providers if isinstance(one, dict) and leads_here(str(one.get("base_url")), policy.listen)]
    if not here:
        return []
    others = [upstream.name for upstream in serving(policy.upstreams, Api.OPENAI) if not upstream.is_openai]
    answers, is_asked = policy.memory.answers_compactions, any(one.get("name") == COMPACTS_THERE for one in here)
    if others and is_asked and not answers:
        found = f"its provider is named OpenAI, so it has upstream {others[0]} compact, which may not know how"
        other = f'in {home / "config.toml"} give it another name, such as name = "Palimpsest"'
        return [warning(CODEX, found, f"{other}, or have the proxy compact: memory.compaction: answer")]
    wrapping = load.read_yaml(load.shipped("wrap.yaml"))
    is_login = any(one.get("requires_openai_auth") for one in here) and has_subscription_login(
        wrapping, CODEX, environment
    )
    if is_login and not policy.tenants.static:
        found = "it is logged in with an account, whose token changes within hours and names no tenant"
        return [warning(CODEX, found, "on a machine of your own start the proxy with --config personal")]
    if answers and not is_asked:
        return [
            ok(CODEX, 'compacts by itself, with a model; by name = "OpenAI" this proxy would do it from the archive')
        ]
    return [ok(CODEX, "its settings fit this proxy")]


def unreachable_urls(environment: Mapping[str, str], folder: Path) -> list[Finding]:
    """A finding for each base URL that leads to nothing or past memory, each unreadable file, or that all is well."""
    found = search(environment, folder)
    by_port = {one.port: listener(one) for one in found.base_urls}
    leading = [_warn_of_dead_url(one) for one in found.base_urls if by_port[one.port] is Listener.NOBODY]
    leading += [_warn_of_path(one) for one in found.base_urls if by_port[one.port] is Listener.PROXY and _misses(one)]
    unread = [warning(URLS, f"{file} cannot be read, so it was not searched", f"see {file}") for file in found.unread]
    if leading or unread:
        return [*leading, *unread]
    if not found.base_urls:
        return [ok(URLS, "no base URL of this machine in the environment, shell files or clients' settings")]
    return [ok(URLS, f"{len(found.base_urls)} of this machine, and somebody answers at each")]


def _warn_of_dead_url(one: BaseUrl) -> Finding:
    start = f"start the proxy (palimpsest serve --port {one.port}; palimpsest service install --port {one.port})"
    remove = f"palimpsest unwrap --port {one.port} --yes" if one.file else f"unset {one.name}"
    return warning(URLS, f"{one.place}: {one.name} is {one.url}, and nothing listens there", f"{start}, or {remove}")


def _misses(one: BaseUrl) -> bool:
    """Whether the path of this address is not the one that its clients add theirs to; unknown names are left alone."""
    ends_in_version = one.url.rstrip("/").endswith(VERSION)
    return ends_in_version if one.name == ADDRESS else one.name in OF_OPENAI and not ends_in_version


def _warn_of_path(one: BaseUrl) -> Finding:
    end = f"must end in {VERSION}" if one.name in OF_OPENAI else f"must not end in {VERSION}, which its clients add"
    found = f"{one.place}: {one.name} is {one.url}: on this path requests pass without memory"
    return warning(URLS, found, f"correct it: it {end}")


def claude_code(policy: Policy, environment: Mapping[str, str]) -> Finding:
    """A finding on Claude Code: whether it asks through this proxy as it asks Anthropic."""
    folder = Path(environment.get("CLAUDE_CONFIG_DIR") or Path(environment.get("HOME", ""), ".claude"))
    file = folder / "settings.json"
    try:
        variables = {**environment, **_settings_environment(file)}
    except (OSError, ValueError) as cause:
        reason = getattr(cause, "strerror", None) or "it is not what Claude Code writes"
        return failed(CLAUDE, f"cannot read {file}: {reason}", "correct it: Claude Code does not use it either")
    url = variables.get(ADDRESS, "")
    if not url:
        return ok(
            CLAUDE, f"{ADDRESS} is not set: it asks Anthropic directly, and has memory only under `palimpsest wrap`"
        )
    if not leads_here(url, policy.listen):
        return ok(CLAUDE, f"asks {urlsplit(url).hostname}, not this proxy; {_extent(variables)}")
    own = first_party_variables(load.read_yaml(load.shipped("wrap.yaml"))["first_party"], policy.upstreams, {})
    if _is_on(variables, FLAG) and FLAG not in own:
        advice = f"unset {FLAG}" + "".join(f", and set {name}={value}" for name, value in own.items())
        return warning(
            CLAUDE, f"treats this proxy as Anthropic, but its upstream is another; {_extent(variables)}", advice
        )
    lacking = [f"{name}={value}" for name, value in own.items() if name not in variables]
    if lacking:
        return warning(
            CLAUDE, f"does not treat this proxy as Anthropic; {_extent(variables)}", f"set {' and '.join(lacking)}"
        )
    return ok(CLAUDE, f"treats this proxy as its upstream; {_extent(variables)}")


def _extent(variables: Mapping[str, str]) -> str:
    """The context window and the tool search that Claude Code then uses, in words."""
    is_known = _is_on(variables, FLAG)
    window = "200k" if _is_on(variables, SMALL_WINDOW) else "1M" if is_known else "1M, in older versions 200k"
    search = "on" if is_known else "on in newer versions"
    if SEARCH in variables:
        search = "on" if _is_on(variables, SEARCH) else "off"
    return f"window {window} where the model has it, tool search {search}"


def _settings_environment(file: Path) -> Mapping[str, str]:
    """The environment variables in Claude Code's settings, which override the shell's; none without a file."""
    if not file.exists():
        return {}
    settings = orjson.loads(file.read_bytes())
    named = settings.get("env", {}) if isinstance(settings, dict) else None
    if not isinstance(named, dict):
        raise ValueError(file)
    return {name: str(value) for name, value in named.items()}


def _is_on(variables: Mapping[str, str], name: str) -> bool:
    return variables.get(name, "").lower() not in OFF
