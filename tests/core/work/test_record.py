"""The record of the work: files, commands with how they ended, the plan and the rules."""

from __future__ import annotations

from palimpsest.core.work.record import work_record

from tests.core.work.test_account import WORK, call, work


def test_files_and_commands_are_told_with_what_became_of_them_the_newest_first() -> None:
    made = work_record(WORK)
    assert [(one.path, one.act.value, one.times, one.occurrence) for one in made.files] == [
        ("src/parser.py", "edited", 2, 6),
        ("src/lexer.py", "read", 1, 2),
    ]
    assert [(one.command, one.is_failure, one.is_open, one.is_lasting) for one in made.commands] == [
        ("pytest tests/parser", True, True, False),
        ("pip install lark-parser", False, False, True),
    ]
    assert made.commands[0].outcome.startswith("2 failed")


def test_a_file_that_was_changed_and_read_again_counts_as_changed() -> None:
    (file,) = work_record(work(*touched("Edit"), *touched("Read"))).files
    assert (file.act.value, file.times) == ("edited", 2)


def test_a_command_that_passed_later_is_no_open_failure() -> None:
    again = [("assistant", call("Bash", command="pytest tests/parser")), ("tool", "5 passed in 0.12s")]
    commands = work_record(work(*((one.role, one.text) for one in WORK), *again)).commands
    newest = commands[0]
    assert (newest.command, newest.is_failure, newest.is_open) == ("pytest tests/parser", False, False)


def test_the_newest_plan_and_the_rules_are_told_with_their_messages() -> None:
    plans = [call("TodoWrite", todos=[{"content": what, "status": "in_progress"}]) for what in ("dig", "build")]
    made = work_record(work(("user", "Always keep the changelog up to date."), *(("assistant", one) for one in plans)))
    assert made.plan is not None
    assert ("build" in made.plan.text, made.plan.occurrences) == (True, (3,))
    assert [(line.text, line.occurrences) for line in made.rules] == [("Always keep the changelog up to date.", (1,))]


def test_a_talk_without_work_has_an_empty_record() -> None:
    made = work_record(work(("user", "Good morning."), ("assistant", "Good morning to you.")))
    assert (made.files, made.commands, made.plan, made.rules) == ([], [], None, ())


def touched(tool: str) -> list[tuple[str, str]]:
    return [
        ("assistant", call(tool, file_path="src/parser.py", old_string="a", new_string="b")),
        ("tool", "The file src/parser.py has been updated."),
    ]
