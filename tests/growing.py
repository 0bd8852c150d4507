"""How the cost of a function grows with its text: processor time of this thread, which other work hardly disturbs."""

from __future__ import annotations

import math
from collections.abc import Callable
from time import thread_time

FLOOR_SECONDS = 0.002  # less is noise
REPEATS = 3

Work = Callable[[str], object]
TextOf = Callable[[int], str]


def seconds(work: Work, text: str, repeats: int = REPEATS) -> float:
    """The least processor time that the work took; the floor where it took less."""
    least = math.inf
    for _ in range(repeats):
        started = thread_time()
        work(text)
        least = min(least, thread_time() - started)
    return max(least, FLOOR_SECONDS)


def exponent(work: Work, text_of: TextOf, small: int, large: int) -> float:
    """The power of the size with which the time grows: 1 is linear, 2 quadratic."""
    return exponent_of(work, text_of, small, large)[0]


def exponent_of(work: Work, text_of: TextOf, small: int, large: int, repeats: int = REPEATS) -> tuple[float, float]:
    """The same, and the seconds for the large text."""
    times = [seconds(work, text_of(size), repeats) for size in (small, large)]
    return math.log(times[1] / times[0]) / math.log(large / small), times[1]


def exceeds(work: Work, text_of: TextOf, small: int, large: int, limit: float, quick_seconds: float) -> bool:
    """
    Whether the exponent is above a limit; False where the large text is quick.

    One run of the large text, the longest of all that is measured, takes no less than the least of several: where the
    exponent by that is within the limit, it is.
    """
    longest = seconds(work, text_of(large), 1)
    if longest <= quick_seconds:
        return False
    shortest = seconds(work, text_of(small))
    if math.log(longest / shortest) / math.log(large / small) <= limit:
        return False
    return exponent(work, text_of, small, large) > limit


def repeated(fragment: str, before: str = "", behind: str = "") -> TextOf:
    """Texts of so many characters: a fragment again and again, between two others."""

    def text_of(size: int) -> str:
        room = max(0, size - len(before) - len(behind))
        return before + (fragment * (room // len(fragment) + 1))[:room] + behind

    return text_of
