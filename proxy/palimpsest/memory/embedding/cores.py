"""The processor cores that this process may use, as the machine and its container allow."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

QUOTA = Path("/sys/fs/cgroup/cpu.max")  # of a container (cgroup v2): microseconds of processor time, and of the period


def usable_cores(quota: Path = QUOTA) -> int:
    """
    Whole cores, at least 1.

    Whoever takes more threads than a container's quota has cores is stopped for the rest of each period, and everything
    else in the container with it, however low its priority.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with suppress(OSError, ValueError):
        allowed, period = quota.read_text().split()
        if allowed != "max":
            cores = min(cores, int(allowed) // int(period))
    return max(cores, 1)
