"""Memory is switched off and on for everybody or for one tenant, and every process says so."""

from __future__ import annotations

import pytest
from palimpsest.domain.errors import PolicyError
from palimpsest.memory.operation.switch_service import SwitchService
from palimpsest.memory.operation.switches import KnownSwitches
from palimpsest.store.engine.sqlite.database import Database
from palimpsest.store.operation.switches import SwitchedOff


async def test_what_is_off_is_known_elsewhere_until_it_is_on_again(database: Database) -> None:
    board, known = SwitchService(database, lambda: 7.0), KnownSwitches(database)
    await known.learn()
    assert (known.off_for, known.trouble) == (frozenset(), "")
    await board.disable("acme", "they asked")
    await board.disable(reason="incident")
    await known.learn()
    assert known.off_for == {"", "key:acme"} and "for all tenants" in known.trouble
    assert await board.off() == [SwitchedOff("", "incident", 7.0), SwitchedOff("key:acme", "they asked", 7.0)]
    assert await board.enable() and not await board.enable()
    await known.learn()
    assert known.off_for == {"key:acme"} and "acme" not in known.trouble
    assert await board.enable("key:acme")
    await known.learn()
    assert known.trouble == ""


async def test_a_second_time_replaces_the_reason_and_not_the_moment(database: Database) -> None:
    await SwitchService(database, lambda: 1.0).disable(reason="first")
    board = SwitchService(database, lambda: 2.0)
    await board.disable(reason="second")
    assert await board.off() == [SwitchedOff("", "second", 1.0)]
    with pytest.raises(PolicyError, match="at most 500 characters"):
        await board.disable(reason="x" * 501)
