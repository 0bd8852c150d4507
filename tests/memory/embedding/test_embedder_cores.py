"""No more cores are used than the machine has, nor than its container may use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from palimpsest.memory.embedding.embedder import usable_cores


def test_without_a_quota_all_cores_of_the_process_are_usable(tmp_path: Path) -> None:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    assert usable_cores(tmp_path / "none") == cores


@pytest.mark.parametrize("quota", ["50000 100000", "100000 100000", "199999 100000"])
def test_container_of_less_than_two_cores_has_one(tmp_path: Path, quota: str) -> None:
    (tmp_path / "cpu.max").write_text(quota + "\n")
    assert usable_cores(tmp_path / "cpu.max") == 1


@pytest.mark.parametrize("quota", ["max 100000", "", "strange"])
def test_what_is_no_quota_limits_nothing(tmp_path: Path, quota: str) -> None:
    (tmp_path / "cpu.max").write_text(quota)
    assert usable_cores(tmp_path / "cpu.max") == usable_cores(tmp_path / "none")
