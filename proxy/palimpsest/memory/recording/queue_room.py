"""The room of the archive's queue: how many turns may wait to be written, and how much they may hold."""

from __future__ import annotations

from palimpsest.domain.frozen import frozen
from palimpsest.domain.ports import Counts


@frozen
class ArchiveLimits:
    """How much may wait to be written, and for how long an answer waits for it."""

    queue_turns: int = 1000  # so that a stuck disk fills no memory; more go to the spool
    queue_bytes: int = 128 * 1024 * 1024  # of memory for them and their answers: a few of the largest
    late_bytes: int = 128 * 1024 * 1024  # of requests that were forwarded and are still being read
    open_bytes: int = 128 * 1024 * 1024  # of all answers that go on: what is longer is not read whole
    answer_bytes: int = 8 * 1024 * 1024  # longest answer that is read whole; of longer ones the beginning is kept
    commit_wait_seconds: float = 0.25  # that the end of an answer waits for its commit: a slow disk is not felt


LIMITS = ArchiveLimits()


class QueueRoom:
    """Room is taken before something waits, and given back when it is written or given up."""

    def __init__(self, limits: ArchiveLimits, counts: Counts) -> None:
        self.turns = 0  # that wait or are being written
        self._limits = limits
        self._counts = counts
        self.bytes = 0  # of memory that is taken by what waits or is being written
        self._open_bytes = 0  # of answers that go on
        self.late_turns = self._late_bytes = 0  # of requests that were forwarded and are still being read
        self._spooled_turns = self._kept_turns = 0

    def has_turn(self, size_bytes: int) -> bool:
        """Whether there is room for one more turn."""
        return self.turns < self._limits.queue_turns and self._fits(size_bytes)

    def reserve_turn(self, size_bytes: int) -> bool:
        """Reserve room for one more turn. False: there is none."""
        if not self.has_turn(size_bytes):
            return False
        self.reserve_unchecked(1, size_bytes)
        return True

    def reserve_late_request(self, size_bytes: int) -> bool:
        """Reserve room for a request that was forwarded and is still being read. False: there is none."""
        if self._late_bytes + size_bytes > self._limits.late_bytes:
            return False
        self._change_late(1, size_bytes)
        return True

    @property
    def is_late_half_empty(self) -> bool:
        """Whether at most half of the room for requests that are still being read is taken."""
        return 2 * self._late_bytes <= self._limits.late_bytes

    def release_late_request(self, size_bytes: int) -> None:
        """Give back the room of a request that has been read."""
        self._change_late(-1, -size_bytes)

    def set_spooled(self, turns: int) -> None:
        """Set how many turns wait in the spool; they count as queued in the metrics."""
        self._spooled_turns = turns
        self._set_gauge()

    def set_kept(self, turns: int) -> None:
        """Set how many turns wait on the disk until memory is back; they count as queued in the metrics."""
        self._kept_turns = turns
        self._set_gauge()

    def reserve_answer(self, size_bytes: int) -> bool:
        """Reserve room for the answer to a turn. False: there is none."""
        if not self._fits(size_bytes):
            return False
        self.reserve_unchecked(0, size_bytes)
        return True

    @property
    def is_half_empty(self) -> bool:
        """Whether at most half of the room is taken."""
        return 2 * self.turns <= self._limits.queue_turns and 2 * self.bytes <= self._limits.queue_bytes

    def reserve_unchecked(self, turns: int, size_bytes: int) -> None:
        """Reserve room whether there is so much or not, as for what comes back from the spool."""
        self.turns += turns
        self.bytes += size_bytes
        self._set_gauge()

    def release(self, turns: int, size_bytes: int) -> None:
        """Give back the room of turns and answers."""
        self.reserve_unchecked(-turns, -size_bytes)

    def open_answer(self, count: int) -> bool:
        """
        Reserve room for so many more bytes of an answer that goes on. False: there is none.

        It is apart from the queue's: answers that go on take no room from requests.
        """
        if self._open_bytes + count > self._limits.open_bytes:
            self._counts.fault("queue")
            return False
        self._open_bytes += count
        return True

    def close_answer(self, count: int) -> None:
        """Give back what an answer took that has ended."""
        self._open_bytes -= count

    def _fits(self, size_bytes: int) -> bool:
        return self.bytes + size_bytes <= self._limits.queue_bytes

    def _change_late(self, turns: int, size_bytes: int) -> None:
        self.late_turns += turns
        self._late_bytes += size_bytes
        self._set_gauge()

    def _set_gauge(self) -> None:
        self._counts.gauge("queued", self.turns + self.late_turns + self._spooled_turns + self._kept_turns)
