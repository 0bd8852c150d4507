"""
Supervision of background tasks: one that fails is logged, counted and run again, and stops nothing but itself.

What forwards requests must never be in one task group with these.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import structlog

from palimpsest.domain.ports import ArchiveCounts

FIRST_PAUSE_SECONDS = 1.0  # long enough that a task that fails at once does not fill the log
LAST_PAUSE_SECONDS = 60.0  # short enough that what was mended works again before anybody wonders
STEADY_SECONDS = 60.0  # a task that has run for so long without failing has recovered

log = structlog.get_logger()


@dataclass(slots=True)
class _State:
    """One task: why it failed last, and since when it has run."""

    error: str = ""
    running_since: float = 0.0


class Supervisor:
    """
    Tasks that run until `stop`. One that returns has done its work; one that fails is run again, later each time.

    Call `start` and `stop` on the event loop that the tasks run on.
    """

    def __init__(self, counts: ArchiveCounts, first_pause_seconds: float = FIRST_PAUSE_SECONDS) -> None:
        self._counts = counts
        self._first_pause_seconds = first_pause_seconds
        self._tasks: list[asyncio.Task[None]] = []
        self._states: dict[str, _State] = {}
        self._stopping = False

    def __repr__(self) -> str:
        return f"<Supervisor [{', '.join(self._states)}; {'; '.join(self.troubles) or 'all well'}]>"

    @property
    def troubles(self) -> tuple[str, ...]:
        """One sentence for each task that failed and has not recovered."""
        steady_since = asyncio.get_running_loop().time() - STEADY_SECONDS
        return tuple(
            f"{name} failed ({state.error}) and is retried; the log says where"
            for name, state in self._states.items()
            if state.error and state.running_since > steady_since
        )

    def start(self, name: str, work: Callable[[], Awaitable[None]]) -> asyncio.Task[None]:
        """
        Run `work` in a task of its own; the task ends when the work is done, or at `stop`.

        Args:
            name: what the task does, for log lines, `/readyz` and the metric of faults.
            work: called anew for each attempt.
        """
        self._states[name] = _State()
        task = asyncio.create_task(self._run(name, work), name=name)
        self._tasks.append(task)
        return task

    async def stop(self) -> None:
        """Cancel all tasks, and wait until they have ended."""
        self._stopping = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _run(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        """Run a task until it ends by itself; after a failure again, with growing pauses."""
        state, now = self._states[name], asyncio.get_running_loop().time
        pause_seconds = self._first_pause_seconds
        while True:
            state.running_since = now()
            try:
                await work()
            except asyncio.CancelledError as cancelled:
                if self._stopping:
                    raise
                failure: BaseException = cancelled  # of something that the task waited for: no reason to end
            except Exception as raised:  # a guard: whatever breaks here must not reach what forwards requests
                failure = raised
            else:
                state.error = ""
                return
            if now() - state.running_since > STEADY_SECONDS:
                pause_seconds = self._first_pause_seconds
            state.error = type(failure).__name__
            self._counts.fault(name)
            log.error("a background task failed; restarting it", name=name, seconds=pause_seconds, exc_info=failure)
            state.running_since = now() + pause_seconds
            await asyncio.sleep(pause_seconds)
            pause_seconds = min(2 * pause_seconds, LAST_PAUSE_SECONDS)
