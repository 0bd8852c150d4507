"""What waits is bounded in number and in size, and what is given back can be taken again."""

from __future__ import annotations

from palimpsest.memory.recording.queue_room import ArchiveLimits, QueueRoom
from palimpsest.telemetry.metrics import Metrics


def room(metrics: Metrics | None = None) -> QueueRoom:
    return QueueRoom(ArchiveLimits(queue_turns=2, queue_bytes=100, open_bytes=50), metrics or Metrics())


def test_no_more_turns_wait_than_may() -> None:
    waiting = room()
    assert [waiting.reserve_turn(1) for _ in range(3)] == [True, True, False]
    waiting.release(1, 1)
    assert waiting.reserve_turn(1) and waiting.turns == 2


def test_turns_and_answers_share_their_bytes_and_answers_that_go_on_have_others() -> None:
    metrics = Metrics()
    waiting = room(metrics)
    assert (
        waiting.reserve_turn(60)
        and not waiting.reserve_turn(60)
        and not waiting.reserve_answer(60)
        and waiting.reserve_answer(40)
    )
    assert waiting.open_answer(50) and not waiting.open_answer(1)
    waiting.close_answer(50)
    waiting.release(1, 100)
    assert waiting.open_answer(50) and waiting.reserve_turn(100)
    text = metrics.render().decode()
    assert 'palimpsest_faults_total{where="queue"} 1.0' in text and "palimpsest_queued 1.0" in text
