"""`palimpsest retention` and `palimpsest vacuum`, typed as an operator would type them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.commands.test_cli import palimpsest
from tests.console.test_arguments import at_a_terminal
from tests.databases import database_in
from tests.remembered import Past
from tests.running import rows

pytestmark = pytest.mark.slow

STORED = [(3,)]
COUNT = "SELECT count(*) FROM occurrence"
SHORT = {"PALIMPSEST_RETENTION__TURNS": "90d"}


@pytest.fixture
async def data(tmp_path: Path) -> Path:
    """A data folder with three messages that are years old."""
    database = database_in(tmp_path)
    await database.open()
    await Past(database).say("The ferry leaves at 7.", "Noted.", "And the train at 9.")
    await database.close()
    return tmp_path


@pytest.mark.parametrize("arguments", [[], ["--dry-run"], ["--run", "--dry-run"], ["--yes"]])
def test_what_is_due_is_only_shown_unless_it_shall_be_erased(data: Path, arguments: list[str]) -> None:
    shown = palimpsest("retention", *arguments, "--data", str(data), env=SHORT)
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.splitlines()[0].split() == ["turns", "90d", "3", "due"]
    assert rows(data, COUNT) == STORED


def test_without_a_terminal_nothing_is_erased_until_that_is_confirmed(data: Path) -> None:
    unasked = palimpsest("retention", "--run", "--data", str(data), env=SHORT)
    assert unasked.returncode == 2
    assert "retention: cannot ask for confirmation without a terminal; add --yes" in unasked.stderr
    assert rows(data, COUNT) == STORED
    done = palimpsest("retention", "--run", "--yes", "--data", str(data), env=SHORT)
    assert done.returncode == 0, done.stderr
    assert "3 rows erased" in done.stdout
    assert rows(data, COUNT) == [(0,)]


@pytest.mark.parametrize(("answer", "status", "left"), [("no", 1, 3), ("yes", 0, 0)])
def test_at_a_terminal_the_word_yes_erases(data: Path, answer: str, status: int, left: int) -> None:
    done, shown = at_a_terminal(answer, "retention", "--run", "--data", str(data), env=SHORT)
    assert (done, "3 due" in shown, "cannot be undone" in shown) == (status, True, True), shown
    assert rows(data, COUNT) == [(left,)]


@pytest.mark.sqlite
def test_vacuum_keeps_all_that_is_stored(data: Path) -> None:
    done = palimpsest("vacuum", "--data", str(data))
    assert (done.returncode, "MB before" in done.stdout) == (0, True), done.stderr
    assert rows(data, COUNT) == STORED
