"""
The record of the work in a conversation: every file that was touched, every command with how it ended, the newest plan,
and the rules that hold.

It is read from the same calls as an account (`core.work.account`), which tells the few lines that a block has room for.
"""

from __future__ import annotations

from collections.abc import Sequence

from palimpsest.core.work import account
from palimpsest.core.work.calls import Act
from palimpsest.core.work.removals import with_removals
from palimpsest.core.work.rules import rules
from palimpsest.domain import AccountLine, frozen


@frozen
class WorkedFile:
    """A file that a tool touched: what was done last (but for reading, where it was also changed), and how often."""

    path: str
    act: Act
    times: int
    occurrence: int


@frozen
class WorkedCommand:
    """A command, how its newest run ended, and whether that failure is still open, or it left something behind."""

    command: str
    outcome: str
    is_failure: bool
    is_open: bool
    is_lasting: bool
    occurrence: int


@frozen
class WorkRecord:
    """The work; files and commands the newest first. `plan` is None where none was made."""

    files: Sequence[WorkedFile]
    commands: Sequence[WorkedCommand]
    plan: AccountLine | None
    rules: Sequence[AccountLine]


def work_record(messages: Sequence[account.LostMessage]) -> WorkRecord:
    """The record of these messages, which are in the order in which they were said."""
    texts, done = account.sorted_calls(messages)
    files: dict[str, WorkedFile] = {}
    plan = None
    for one in with_removals(done):
        call, occurrence = one.call, texts[one.at].occurrence
        if call.act in (*account.FILE_ACTS, Act.DELETED) and call.what:
            before = files.pop(call.what, None)
            act = before.act if before and call.act is Act.READ else call.act
            files[call.what] = WorkedFile(call.what, act, before.times + 1 if before else 1, occurrence)
        elif call.act is Act.PLANNED and call.what:
            plan = AccountLine("plan", call.what, (occurrence,))
    runs = account.runs_of(done)
    still_open = {command for command, _ in account.open_failures(runs, texts, done)}
    commands = [
        WorkedCommand(
            *(command, one.outcome, one.is_failure, command in still_open),
            *(account.is_lasting(command) and not one.is_failure, texts[one.at].occurrence),
        )
        for command, one in runs.items()
    ]
    holding = rules(account.texts_of_user(messages, texts), "")
    return WorkRecord([*files.values()][::-1], commands[::-1], plan, holding)
