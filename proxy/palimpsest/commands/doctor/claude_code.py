"""
The check of Claude Code: what it makes of the address that it is told.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

import orjson

from palimpsest.commands.detect import leads_here
from palimpsest.commands.doctor.finding import Finding, failed, ok, warning
from palimpsest.commands.first_party import first_party_variables
from palimpsest.settings import load
from palimpsest.settings.policy import Policy

CHECK = "Claude Code"
ADDRESS, FLAG, SEARCH = "ANTHROPIC_BASE_URL", "_CLAUDE_CODE_ASSUME_FIRST_PARTY_BASE_URL", "ENABLE_TOOL_SEARCH"
SMALL_WINDOW = "CLAUDE_CODE_DISABLE_1M_CONTEXT"
OFF = ("", "0", "false", "no", "off")  # as Claude Code reads a switch


def claude_code(policy: Policy, environment: Mapping[str, str]) -> Finding:
    """Whether Claude Code, as the shell and its settings tell it, asks through this proxy as it asks Anthropic."""
    folder = Path(environment.get("CLAUDE_CONFIG_DIR") or Path(environment.get("HOME", ""), ".claude"))
    file = folder / "settings.json"
    try:
        variables = {**environment, **_variables(file)}
    except (OSError, ValueError) as cause:
        reason = getattr(cause, "strerror", None) or "it is not what Claude Code writes"
        return failed(CHECK, f"cannot read {file}: {reason}", "correct it: Claude Code does not use it either")
    url = variables.get(ADDRESS, "")
    if not url:
        return ok(CHECK, f"{ADDRESS} is not set: it asks Anthropic itself, and has memory in `palimpsest wrap` alone")
    if not leads_here(url, policy.listen):
        return ok(CHECK, f"asks {urlsplit(url).hostname}, not this proxy; {_extent(variables)}")
    own = first_party_variables(load.read_yaml(load.shipped("wrap.yaml"))["first_party"], policy.upstreams, {})
    if _is_on(variables, FLAG) and FLAG not in own:
        advice = f"unset {FLAG}" + "".join(f", and set {name}={value}" for name, value in own.items())
        return warning(
            CHECK, f"takes this proxy for Anthropic, which its upstream is not; {_extent(variables)}", advice
        )
    lacking = [f"{name}={value}" for name, value in own.items() if name not in variables]
    if lacking:
        return warning(CHECK, f"takes this proxy for a stranger; {_extent(variables)}", f"set {' and '.join(lacking)}")
    return ok(CHECK, f"asks this proxy as it asks its upstream; {_extent(variables)}")


def _extent(variables: Mapping[str, str]) -> str:
    """What Claude Code then uses; the newest versions use as much in front of any address."""
    is_known = _is_on(variables, FLAG)
    window = "200k" if _is_on(variables, SMALL_WINDOW) else "1M" if is_known else "1M, in older versions 200k"
    search = "on" if is_known else "on in newer versions"
    if SEARCH in variables:
        search = "on" if _is_on(variables, SEARCH) else "off"
    return f"window {window} where the model has it, tool search {search}"


def _variables(file: Path) -> Mapping[str, str]:
    """The variables in its settings, which go before those of the shell; none without a file."""
    if not file.exists():
        return {}
    settings = orjson.loads(file.read_bytes())
    named = settings.get("env", {}) if isinstance(settings, dict) else None
    if not isinstance(named, dict):
        raise ValueError(file)
    return {name: str(value) for name, value in named.items()}


def _is_on(variables: Mapping[str, str], name: str) -> bool:
    return variables.get(name, "").lower() not in OFF
