"""A clock that a test sets."""

NOON = 1_774_958_400.0  # 2026-03-31, UTC


class Clock:
    """Returns `now`, in Unix seconds."""

    def __init__(self, now: float = NOON) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now
