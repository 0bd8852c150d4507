"""`palimpsest doctor`, `healthcheck`, `check-config`, `settings`, `openapi`: whether the proxy is well."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import time
from pathlib import Path

from palimpsest.console import terminal
from palimpsest.console.arguments import (
    DONE,
    FAILED,
    Command,
    listen_flags,
    model_flag,
    policy_flags,
    policy_of,
    quiet_policy,
)
from palimpsest.domain.errors import PolicyError
from palimpsest.settings import load


def add_commands(command: Command) -> None:
    doctor = command("doctor", _doctor, "Check everything the proxy needs, and explain how to fix what is missing.")
    doctor.add_argument("--json", action="store_true", help="as JSON, for programs")
    policy_flags(doctor)
    listen_flags(doctor)
    model_flag(doctor)

    healthcheck = command("healthcheck", _healthcheck, "Check that the proxy at the configured address is alive.")
    healthcheck.add_argument("--ready", action="store_true", help="check that it is ready, including its store")
    policy_flags(healthcheck)
    listen_flags(healthcheck)

    check_config = command(
        "check-config",
        _check_config,
        "Check a configuration and its data folder, and list the settings that differ from the defaults.",
    )
    check_config.add_argument(
        "config", nargs="*", type=Path, metavar="FILE", help="YAML file, or the name of a preset; later ones win"
    )

    settings = command("settings", _settings, "Print every setting with its default, as a file to start from.")
    settings.add_argument("--markdown", action="store_true", help="as tables, with the allowed values")

    command("openapi", _openapi, "Print the OpenAPI document of the API under /memory/v1.")


def _doctor(given: argparse.Namespace) -> int:
    from palimpsest.commands.doctor.examination import examine
    from palimpsest.commands.doctor.finding import document, is_fine, refusal, table

    try:
        policy = quiet_policy(given)
    except PolicyError as error:
        findings = [refusal("settings", mistake) for mistake in str(error).splitlines()]
    else:
        findings = asyncio.run(examine(policy, os.environ, time.time))
    out = terminal.console()
    out.print(document(findings) if given.json else table(findings), soft_wrap=given.json)
    return DONE if is_fine(findings) else FAILED


def _healthcheck(given: argparse.Namespace) -> int:
    from palimpsest.commands.probe import why_not_alive

    if why := why_not_alive(policy_of(given).listen, "/readyz" if given.ready else "/livez"):
        sys.stderr.write(f"palimpsest: {why}\n")
        return FAILED
    return DONE


def _check_config(given: argparse.Namespace) -> int:
    from palimpsest.commands.doctor import disk
    from palimpsest.commands.doctor.finding import State
    from palimpsest.settings.describe import changes

    policy = policy_of(given)
    folder = disk.check_folder(policy.data)
    if folder.state is State.FAILED:
        raise PolicyError(f"data: {folder.found.removeprefix('data: ')}; {folder.advice}".removesuffix("; "))
    out = terminal.console()
    if folder.state is State.WARNING:
        out.print(terminal.safe(f"{folder.found}: {folder.advice}"))
    named = ", ".join(map(str, load.files_named(given.config, os.environ)))
    out.print(f"{named or 'defaults'}: fine")
    if changed := changes(policy):
        out.print(terminal.fields(changed))
    return DONE


def _settings(given: argparse.Namespace) -> int:
    from palimpsest.settings import reference

    sys.stdout.write(reference.as_markdown() if given.markdown else reference.as_yaml())
    return DONE


def _openapi(_given: argparse.Namespace) -> int:
    from palimpsest.edge.admin.openapi import document  # late: `--help` must not wait for it
    from palimpsest.edge.admin.routes import all_operations
    from palimpsest.features.registry import OPERATIONS

    sys.stdout.write(json.dumps(document(all_operations(OPERATIONS)), indent=2, ensure_ascii=False) + "\n")
    return DONE
