"""Standing rules: what a user asked to hold from now on."""

from palimpsest.core.work.rules import RULES_CHARS, rules


def told(*said: str, visible: str = "") -> list[str]:
    return [line.text for line in rules(enumerate(said, start=1), visible)]


def test_rules_come_in_the_order_in_which_they_were_set() -> None:
    assert told("Fix it. Always run the linter first.", "Never push to main!") == [
        "Always run the linter first.",
        "Never push to main!",
    ]


def test_a_later_rule_about_the_same_thing_takes_the_place_of_an_earlier_one() -> None:
    assert told("Always answer in German.", "From now on always answer in English.") == [
        "From now on always answer in English."
    ]


def test_a_rule_that_the_model_sees_is_not_told_and_ends_an_earlier_one() -> None:
    assert told("Always answer in German.", visible="Always answer in English.") == []
    assert told("Never push to main.", visible="We said: Never push to main.") == []


def test_questions_and_tales_are_no_rules() -> None:
    assert told("Does it always fail?", "The build always took ten minutes on that machine.") == []


def test_rules_take_little_room_and_the_newest_stand() -> None:
    lines = rules(
        [(at, f"Always check the file named module_{at} with care before the release.") for at in range(40)], ""
    )
    assert sum(line.chars for line in lines) <= RULES_CHARS


def test_the_newest_of_many_rules_stand() -> None:
    subjects = ("apples", "bridges", "castles", "dragons", "engines", "forests", "gardens", "hammers", "ladders")
    said = [f"Never mention {subject} in any commit or in a branch." for subject in subjects]
    assert "ladders" in "".join(told(*said)) and "apples" not in "".join(told(*said))
