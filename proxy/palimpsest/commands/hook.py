"""
`palimpsest hook`: what the plug-ins for Claude Code and Codex run when a session begins and ends.

It reads the event on standard input, tells the proxy what no request shows, and answers with one line for the user. It
never fails, never says anything to the model, and waits for nobody: a session goes on without it.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from http.client import HTTPException
from typing import Any
from urllib.parse import urlsplit

from palimpsest.commands.own_address import is_this_machine
from palimpsest.commands.probe import ask, ask_json
from palimpsest.console.arguments import DONE, Command
from palimpsest.settings.load import KEY_ENV, TOKEN_ENV, URL_ENV, shipped

DEFAULT_URL = "http://127.0.0.1:8484"
BASES = {"claude-code": "ANTHROPIC_BASE_URL"}  # by client, where it says to whom its requests go
WAIT_SECONDS = 3.0  # a proxy answers in milliseconds, on a busy machine in more, and the user waits for the session
EVENTS = {("SessionEnd", "clear"): "cleared", ("SessionStart", "resume"): "resumed"}


def add_commands(command: Command) -> None:
    added = command("hook", run, "Take an event of Claude Code or Codex from standard input: their plug-ins run it.")
    added.add_argument("client", choices=["claude-code", "codex"], help="the client that sends the event")
    added.add_argument("--where", action="store_true", help="print the folder of that client's plug-in instead")


def run(given: argparse.Namespace) -> int:
    """Answer an event of a client's hook; returns 0 always, as what goes wrong here must not stop a session."""
    if given.where:
        sys.stdout.write(f"{shipped(f'plugins/{given.client}')}\n")
        return DONE
    try:
        event: Any = json.loads(sys.stdin.read())
        line = answer(given.client, event if isinstance(event, dict) else {}, os.environ)
    except (OSError, ValueError):
        return DONE
    if line:
        sys.stdout.write(json.dumps({"systemMessage": line}) + "\n")
    return DONE


def answer(client: str, event: Mapping[str, Any], environment: Mapping[str, str]) -> str:
    """The text shown to the user; "": none."""
    base = environment.get(BASES.get(client, ""), "")
    url = environment.get(URL_ENV) or base or DEFAULT_URL
    name, session = event.get("hook_event_name"), event.get("session_id")
    known = EVENTS.get((str(name), str(event.get("source") or event.get("reason"))))
    if known and isinstance(session, str):
        with suppress(OSError, HTTPException, ValueError):  # a proxy that is away is reported when a session begins
            _tell(url, {"client": client, "session": session, "event": known}, environment)
    if name != "SessionStart" or event.get("source") == "compact":
        return ""
    if client in BASES and not base:
        return f"Palimpsest: this session does not go through the proxy, and is not remembered: set {BASES[client]}"
    return _report(url)


def _report(url: str) -> str:
    """The state of the proxy in a line."""
    try:
        alive, ready = (ask_json(url, path, seconds=WAIT_SECONDS) for path in ("/healthz", "/readyz"))
    except (OSError, HTTPException, ValueError):
        return f"Palimpsest: nothing answers at {url}: start it with palimpsest serve"
    if "palimpsest" not in alive:
        return f"Palimpsest: what answers at {url} is another program, so nothing is remembered"
    if ready.get("ready"):
        return f"Palimpsest remembers, at {url}"
    reasons = "; ".join(map(str, ready.get("reasons", ())))
    return f"Palimpsest at {url} forwards, but does not remember: {reasons or 'palimpsest doctor says why'}"


def _tell(url: str, event: Mapping[str, str], environment: Mapping[str, str]) -> None:
    """Post an event to the proxy, with the user's key, or on this machine with the operator's token."""
    token = environment.get(TOKEN_ENV, "") if is_this_machine(urlsplit(url).hostname) else ""
    secret = environment.get(KEY_ENV) or token
    ask(url, "/memory/v1/sessions", body=json.dumps(event), secret=secret, seconds=WAIT_SECONDS)
