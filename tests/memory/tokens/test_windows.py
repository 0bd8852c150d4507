"""The operator's word first, then what the upstream has shown, then the table, then the default."""

from __future__ import annotations

from pathlib import Path

import pytest
from palimpsest.memory.tokens.counter import litellm_folder
from palimpsest.memory.tokens.windows import LEARNT_SECONDS, MAX_LEARNT, TABLE_FILE, Windows, table
from palimpsest.settings.policy import PressurePolicy

from tests.clock import Clock

POLICY = PressurePolicy(window_tokens={"mine-*": 9000})
DEFAULT = POLICY.default_window_tokens


@pytest.fixture
def clock() -> Clock:
    return Clock(0.0)


@pytest.fixture
def windows(clock: Clock) -> Windows:
    return Windows(POLICY, clock)


def test_table_knows_models_with_and_without_their_provider(windows: Windows) -> None:
    assert len(table(litellm_folder() / TABLE_FILE)) > 500 and windows.trouble == ""
    assert windows.of("up", "gpt-4o") == windows.of("up", "elsewhere/gpt-4o") == 128_000


@pytest.mark.parametrize("written", [None, b"no JSON"])
def test_missing_table_is_said_and_every_model_has_the_default(tmp_path: Path, written: bytes | None) -> None:
    file = tmp_path / TABLE_FILE
    if written is not None:
        file.write_bytes(written)
    windows = Windows(POLICY, Clock(0.0), file)
    assert str(file) in windows.trouble and "128,000" in windows.trouble
    assert windows.of("up", "gpt-4") == DEFAULT


def test_unknown_model_has_the_default(windows: Windows) -> None:
    assert windows.of("up", "nobody-knows") == DEFAULT


def test_refusal_overrules_table_default_and_list_but_not_the_operator(windows: Windows) -> None:
    for model in ("gpt-4o", "nobody-knows", "mine-1"):
        windows.note_listed("up", model, 4096)
        windows.note_refused("up", model, 2048)
        windows.note_listed("up", model, 8192)
    assert windows.of("up", "gpt-4o") == windows.of("up", "nobody-knows") == 2048
    assert windows.of("up", "mine-1") == 9000


def test_list_overrules_the_table(windows: Windows) -> None:
    windows.note_listed("up", "gpt-4o", 4096)
    assert windows.of("up", "gpt-4o") == 4096


def test_what_one_upstream_shows_says_nothing_of_another(windows: Windows) -> None:
    windows.note_refused("up", "nobody-knows", 2048)
    assert windows.of("elsewhere", "nobody-knows") == DEFAULT


def test_longer_prompt_that_is_answered_corrects_what_was_learnt(windows: Windows) -> None:
    windows.note_answered("up", "nobody-knows", 10**6)
    assert windows.of("up", "nobody-knows") == DEFAULT
    windows.note_refused("up", "nobody-knows", 2048)
    windows.note_answered("up", "nobody-knows", 2000)
    assert windows.of("up", "nobody-knows") == 2048
    windows.note_answered("up", "nobody-knows", 3000)
    assert windows.of("up", "nobody-knows") == 3000


def test_what_was_learnt_is_forgotten_after_a_day(windows: Windows, clock: Clock) -> None:
    windows.note_refused("up", "nobody-knows", 2048)
    clock.now = LEARNT_SECONDS
    assert windows.of("up", "nobody-knows") == DEFAULT


def test_so_many_models_are_learnt_and_no_more(windows: Windows) -> None:
    for number in range(MAX_LEARNT + 1):
        windows.note_refused("up", f"m-{number}", 2048)
    assert windows.of("up", "m-0") == DEFAULT and windows.of("up", "m-1") == 2048
    assert f"{MAX_LEARNT} learnt" in repr(windows)
