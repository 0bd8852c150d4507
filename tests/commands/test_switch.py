"""Switches that an operator turns by hand, and what he is told of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.commands.test_cli import palimpsest

pytestmark = pytest.mark.slow


def test_a_tenant_that_is_not_stored_is_switched_off_and_said_to_be_unknown(tmp_path: Path) -> None:
    of = ("--tenant", "key:acme", "--data", str(tmp_path / "data"))
    assert palimpsest("disable", *of).stdout.splitlines() == [
        "memory is off for key:acme; on again: palimpsest enable --tenant key:acme",
        "no tenant key:acme is stored: this has an effect only once one of this name sends a request",
    ]
    assert palimpsest("enable", *of).stdout == "memory is on for key:acme\n"
