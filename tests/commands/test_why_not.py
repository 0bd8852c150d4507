from pathlib import Path

import orjson
import pytest
from palimpsest.store.journal import Journal

from tests.commands.test_cli import palimpsest
from tests.databases import database_in
from tests.talking import Talk

pytestmark = pytest.mark.slow

WITHOUT_MODEL = {"PALIMPSEST_MODEL__DOWNLOAD": "never"}


@pytest.fixture
async def data(tmp_path: Path) -> Path:
    """A data folder with one conversation."""
    database = database_in(tmp_path)
    await database.open()
    talk = Talk(Journal(database))
    await talk.say("The zebrafish broker listens on port 7431.", "Noted.")
    await talk.say("And what is the capital of Peru?", "Lima.")
    await database.close()
    return tmp_path


def why_not(data: Path, *arguments: str, tmp: Path) -> tuple[int, str, str]:
    env = WITHOUT_MODEL | {"PALIMPSEST_MODEL__CACHE": str(tmp / "no-model")}
    done = palimpsest("why-not", *arguments, "--data", str(data), env=env)
    return done.returncode, done.stdout, done.stderr


def test_the_stage_is_named_at_which_a_statement_got_lost(data: Path, tmp_path: Path) -> None:
    status, told, _ = why_not(data, "c-1", "broker listens on port 7431", tmp=tmp_path)
    assert status == 1
    assert "turn 2 of 2 of c-1" in told
    assert "said by the user in turn 1" in told
    assert "lost at: lost" in told
    assert "to change it: " in told


def test_json_is_for_programs(data: Path, tmp_path: Path) -> None:
    status, told, _ = why_not(data, "c-1", "the narwhal was retired", "--json", tmp=tmp_path)
    said = orjson.loads(told)
    assert (status, said["lost_at"], said["gap"]) == (1, "archived", "write")


def test_a_turn_may_be_named_by_its_number(data: Path, tmp_path: Path) -> None:
    _, told, _ = why_not(data, "c-1", "anything", "--turn", "1", tmp=tmp_path)
    assert "turn 1 of 2 of c-1" in told


def test_a_statement_alone_is_followed_through_the_newest_conversation(data: Path, tmp_path: Path) -> None:
    _, told, _ = why_not(data, "broker listens on port 7431", tmp=tmp_path)
    assert "turn 2 of 2 of c-1" in told and "said by the user in turn 1" in told


@pytest.mark.parametrize("arguments", [("c-9",), ("c-1", "--turn", "t-9"), ("c-1", "--turn", "9")])
def test_a_conversation_or_turn_that_is_not_stored_is_an_error(
    data: Path, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    status, _, said = why_not(data, arguments[0], "anything", *arguments[1:], tmp=tmp_path)
    assert status == 1
    assert "not found" in said


@pytest.mark.parametrize("command", [("why-not", "c-1"), ("search",)])
def test_a_blank_question_is_refused(data: Path, command: tuple[str, ...]) -> None:
    done = palimpsest(*command, "", "--data", str(data))
    assert done.returncode == 2
    assert "must not be blank" in done.stderr
