"""A sealed reference is read by whom it was made for, unchanged and in time; nobody else gets anything out of it."""

from __future__ import annotations

import hashlib
import struct
from base64 import urlsafe_b64encode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from palimpsest.core.caller.identity import tenant_key
from palimpsest.core.history.compaction_seal import VERSION, CompactionSeal, seal, unseal
from palimpsest.domain.errors import CompactionRefused
from palimpsest.wire.own_compaction import PREFIX

from tests.examples import examples

TURN = "t-00112233445566aa"
MADE_AT, GOOD_SECONDS = 1_800_000_000.0, 60.0
KEY, OTHER = (tenant_key(b"secret" * 8, name) for name in ("ann", "bob"))
SEALED = seal(TURN, MADE_AT, GOOD_SECONDS, KEY)


def code(text: str, now: float = MADE_AT, key: bytes = KEY) -> str:
    with pytest.raises(CompactionRefused) as refused:
        unseal(text, now, key)
    return refused.value.code


def test_it_names_its_turn_as_long_as_it_is_good() -> None:
    read = CompactionSeal(TURN, int(MADE_AT))
    assert SEALED.startswith(PREFIX)
    assert unseal(SEALED, MADE_AT, KEY) == unseal(SEALED, MADE_AT + GOOD_SECONDS, KEY) == read
    assert code(SEALED, MADE_AT + GOOD_SECONDS + 1) == "compaction_item_expired"


def test_another_tenant_cannot_read_it_and_is_not_told_that_it_exists() -> None:
    assert code(SEALED, key=OTHER) == code(PREFIX + "bm90aGluZw", key=OTHER) == "compaction_item_invalid"
    assert code(SEALED, MADE_AT + GOOD_SECONDS + 1, OTHER) == "compaction_item_invalid"


@settings(max_examples=examples(200))
@given(st.text())
def test_what_somebody_made_up_is_refused(text: str) -> None:
    assert code(PREFIX + text) == "compaction_item_invalid"


@pytest.mark.parametrize("at", range(len(PREFIX), len(SEALED)))
def test_what_was_changed_anywhere_is_refused(at: int) -> None:
    other = "A" if SEALED[at] != "A" else "Q"
    changed = SEALED[:at] + other + SEALED[at + 1 :]
    assert code(changed) == "compaction_item_invalid"


def test_a_version_that_this_build_does_not_know_is_refused_though_its_tag_is_right() -> None:
    assert unseal(sealed_as(VERSION), MADE_AT, KEY).turn == TURN
    assert code(sealed_as(VERSION + 1)) == "compaction_item_invalid"


def sealed_as(version: int) -> str:
    """What a build of that version would have sealed, if it kept the fields."""
    fields = bytes([version]) + struct.pack("!II", int(MADE_AT), int(MADE_AT + GOOD_SECONDS)) + bytes.fromhex(TURN[2:])
    tag = hashlib.blake2b(fields, key=KEY, person=b"compaction", digest_size=16).digest()
    return PREFIX + urlsafe_b64encode(fields + tag).decode().rstrip("=")


def test_the_latest_day_that_can_be_written_is_no_error() -> None:
    assert unseal(seal(TURN, MADE_AT, 1e12, KEY), 2**32 - 1, KEY).turn == TURN
