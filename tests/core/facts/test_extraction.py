"""Facts are taken from what users say and from what tools return, and from nothing else."""

from __future__ import annotations

from itertools import pairwise

from palimpsest.core.facts.extraction import proposals

TEXT = "My name is Ada Young, and I live in Graz.\n\nDATABASE_PORT=5433\n"


def taken(text: str, role: str) -> list[tuple[str, str, str]]:
    return [(one.subject, one.slot, one.value) for one in proposals(text, role)]


def test_a_user_states_and_pastes_facts() -> None:
    own = [("user", "name", "Ada Young"), ("user", "home", "Graz")]
    assert taken(TEXT, "user") == [*own, ("project", "DATABASE_PORT", "5433")]


def test_a_tool_states_settings_only() -> None:
    assert taken(TEXT, "tool") == taken(TEXT, "function") == [("project", "DATABASE_PORT", "5433")]


def test_what_anybody_else_says_is_no_fact() -> None:
    assert [*map(lambda role: taken(TEXT, role), ("assistant", "system", "developer", ""))] == [[], [], [], []]


def test_facts_of_one_statement_share_its_place_and_others_do_not_overlap() -> None:
    found = proposals("I'm 52 and living in Aarhus. Remember that my cat Juno sleeps until nine.", "user")
    places = sorted({(one.start, one.stop) for one in found})
    assert len(found) > len(places) > 1
    assert all(stop <= start for (_, stop), (start, _) in pairwise(places))


def test_what_redaction_takes_out_is_no_value() -> None:
    token = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
    assert proposals(f"Remember that the deploy bot uses {token} here. I live in Ghent.", "user")[0].value == "Ghent"
    assert taken(f"DEPLOY_BOT={token}\nAPP_PORT=80", "tool") == [("project", "APP_PORT", "80")]


def test_a_relative_is_named_by_a_question_too() -> None:
    found = [(one.subject, one.slot, one.value) for one in proposals("How is my sister, Ada?", "user")]
    assert found == [("sister", "name", "Ada")]
