"""Facts are taken from what users state, and from nothing else."""

from __future__ import annotations

from proxy.core.facts.extraction import proposals


def taken(text: str, role: str = "user") -> list[tuple[str, str, str]]:
    return [(one.subject, one.slot, one.value) for one in proposals(text, role)]


def test_what_users_say_of_themselves_is_a_fact() -> None:
    assert taken("My name is Ada Young, and I live in Graz.") == [
        ("user", "name", "Ada Young"),
        ("user", "home", "Graz"),
    ]


def test_what_an_assistant_says_is_no_fact() -> None:
    assert taken("My name is Ada Young.", "assistant") == []


def test_a_tool_states_settings_only() -> None:
    text = "DATABASE_PORT=5433\nMy name is Ada Young."
    assert taken(text, "tool") == [("project", "DATABASE_PORT", "5433")]
