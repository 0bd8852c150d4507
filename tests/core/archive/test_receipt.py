"""A receipt is genuine only as it was signed, and only where it was."""

from __future__ import annotations

from typing import Any

import pytest
from palimpsest.core.archive.receipt import BACKUPS, is_genuine, not_covered, signed

BODY = {"id": "e-1", "erased": {"messages": 2}, "check": {"left": 0}}


def test_a_signed_receipt_is_genuine_whatever_the_order_of_its_keys() -> None:
    receipt = signed(BODY, b"secret")
    assert receipt.items() > BODY.items()
    assert is_genuine(dict(reversed(receipt.items())), b"secret")


@pytest.mark.parametrize("change", [{"id": "e-2"}, {"more": 1}, {"signature": "hmac-sha256:00"}, {"signature": "é"}])
def test_a_receipt_that_was_changed_is_not(change: dict[str, Any]) -> None:
    assert not is_genuine(signed(BODY, b"secret") | change, b"secret")


def test_a_receipt_of_another_installation_is_not() -> None:
    assert not is_genuine(signed(BODY, b"secret"), b"another")
    assert not is_genuine(BODY, b"secret")


def test_a_receipt_says_until_when_backups_hold_it_where_that_is_known() -> None:
    assert not_covered("2026-12-01")[0] == f"{BACKUPS} 2026-12-01"
    assert not_covered()[0] == f"{BACKUPS} they are deleted"
