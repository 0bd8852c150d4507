"""Notes of a project: what of a user's messages the next conversation in its folder begins with."""

import pytest
from palimpsest.core.work.project_notes import is_note, noted_part, urgency

from tests.growing import exponent, repeated


@pytest.mark.parametrize(
    ("text", "order"),
    [
        ("Good plan. And leave src/legacy.py alone, accounting runs reports off it.", 0),
        ("the range above .50 is ours, never use the one below", 0),
        ("/dev/ttyUSB0, and close the monitor before flashing or it hangs", 1),
        ("npx vitest --pool forks. without that it dies halfway", 1),
        ("The database of this box is on port 5439.", 1),
        ("yes, the other one: APP_ENV=local", 1),
        ("Change of plan on the fee: sales agreed 5.25 from April on.", 2),
        ("actually the new revision moved it to GPIO 10, the old ones stay in the field", 2),
        ("We keep the queue in Redis.", 2),
        ("dont send reminders at night", 0),
        ("the admin page listens on 8090", 1),
        ("the schema first, next time migrate before the deploy", 2),
        ("use the second one then. The database of this box is on port 5439.", 1),
        ("Don't push this one, I want to look first.", 2),
    ],
)
def test_what_forbids_comes_first_then_what_is_set_then_what_was_decided_or_changed(text: str, order: int) -> None:
    assert is_note(text)
    assert urgency(text) == order


@pytest.mark.parametrize(
    "text",
    [
        "use the second one then",
        "ok, every 6th run only then. Write the tests",
        "Write a section about power: what we measured, what changed and why",
        "Look at src/app.py, it seems slow",
        "is it in config/app.yaml?",
        "`foo bar` is undefined",
        "I ran `npm run build` and it failed with an error",
        "see you next time",
        "run the tests",
    ],
)
def test_answers_for_once_orders_and_questions_are_no_notes(text: str) -> None:
    assert not is_note(text)


FIRM = "Never run dbt with --target prod, that goes by the scheduler. Leave the raw tables alone."
TALK = "The rental revenue of March looks too high to me, find out where the sum comes from, please."


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (f"Thanks. {FIRM}", FIRM),
        (f"{TALK} {FIRM} {TALK}", FIRM),
        (f"{TALK} {TALK} {'We keep it, ' * 20}as it is.", f"{'We keep it, ' * 20}as it is."),
        (f"{TALK} {TALK} You need `nix run . test` for all of it.", "You need `nix run . test` for all of it."),
    ],
    ids=["short", "long", "one long sentence", "a command"],
)
def test_of_a_long_message_the_sentences_are_told_that_are_worth_a_note(text: str, part: str) -> None:
    start, stop = noted_part(text)
    assert text[start:stop] == part


@pytest.mark.parametrize("fragment", ["leave ", "keep a ", "--a ", "x/", "then ", "A", ". ", "`a ", "use `a "])
def test_how_long_a_message_is_read_grows_with_its_length(fragment: str) -> None:
    assert (
        exponent(
            lambda text: (is_note(text), noted_part(text[:1000]), urgency(text)), repeated(fragment), 4_000, 16_000
        )
        < 1.6
    )
