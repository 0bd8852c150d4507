"""A reading that takes over from another says the same as one that was made of all messages."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from palimpsest.core.reading import Reading
from palimpsest.domain import Chat, Fingerprint, Message

ROLES = st.lists(st.sampled_from(("system", "developer", "user", "assistant", "tool")), max_size=8)


def reading(roles: list[str]) -> Reading:
    messages = tuple(Message(role, f"{role} {at}", {}) for at, role in enumerate(roles))
    return Reading(Chat(messages, "m", b"", {}), tuple(Fingerprint(at, -at) for at in range(len(roles))), tokens=9)


def made_of(reading: Reading) -> tuple[object, ...]:
    return reading.places, reading.history, reading.history_prints, reading.instruction_prints


@given(ROLES, ROLES, ROLES)
def test_what_is_taken_over_is_what_would_have_been_made_of_the_messages(
    same: list[str], before: list[str], now: list[str]
) -> None:
    old = reading(same + before)
    further = reading(same + now)
    further.fill_caches(old, len(same))
    assert made_of(further) == made_of(reading(same + now))
    assert made_of(old) == made_of(reading(same + before)), "and nothing of the other is changed"


def test_instructions_stand_outside_of_the_history() -> None:
    read = reading(["system", "user", "developer", "assistant"])
    assert read.places == (1, 3) and [message.role for message in read.history] == ["user", "assistant"]
    assert [fingerprint.full for fingerprint in read.history_prints] == [1, 3]
    assert [fingerprint.full for fingerprint in read.instruction_prints] == [0, 2]
