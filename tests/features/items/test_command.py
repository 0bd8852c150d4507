"""`palimpsest consolidate`, typed as an operator would type it."""

from pathlib import Path

import orjson
import pytest

from tests.commands.test_cli import palimpsest
from tests.databases import database_in
from tests.kept_items import tell
from tests.remembered import Past

pytestmark = pytest.mark.slow

RED, BLUE = (f"My favourite colour is {colour}." for colour in ("red", "blue"))


@pytest.fixture
async def data(tmp_path: Path) -> Path:
    """A data folder with items of two users."""
    database = database_in(tmp_path)
    await database.open()
    await tell(Past(database), RED, BLUE, "Oscar is a guinea pig.", user="ann")
    await tell(Past(database), RED, BLUE, user="bob", conversation="c-2")
    await Past(database).say("The harbour of Leith opens at 9 on Sundays.", conversation="c-3", user="eve")
    await database.close()
    return tmp_path


def consolidate(data: Path, *arguments: str, **settings: str) -> tuple[int, str, str]:
    env = {"PALIMPSEST_MODEL__DOWNLOAD": "never", "PALIMPSEST_MODEL__CACHE": str(data / "no-model"), **settings}
    done = palimpsest("consolidate", *arguments, "--data", str(data), env=env)
    return done.returncode, done.stdout, done.stderr


def test_items_are_consolidated_listed_and_taken_back(data: Path) -> None:
    status, told, _ = consolidate(data, "--user", "ann", "--dry-run")
    assert (status, "item 1 would be superseded for 2: a newer value of: favorite color" in told) == (0, True)
    status, told, _ = consolidate(data, "--user", "ann", "--json")
    done = orjson.loads(told)
    assert (status, done["items"], done["superseded"], done["related"], done["kept"]) == (0, 3, 1, 1, 0)
    (run,) = done["runs"]
    _, told, _ = consolidate(data, "--list")
    assert run in told and "1 superseded, 1 related" in told
    status, told, said = consolidate(data, "--undo", run)
    assert (status, told, "2 changes" in said, "add --yes" in said) == (2, "", True, True)
    status, told, _ = consolidate(data, "--undo", run, "--yes")
    assert (status, orjson.loads(told)["superseded"]) == (0, 1)
    status, _, said = consolidate(data, "--undo", run)
    assert (status, "no run" in said) == (1, True)
    assert "undone" in consolidate(data, "--list")[1]


def test_what_was_said_since_is_kept_first_if_the_policy_says_who_writes(data: Path) -> None:
    status, told, said = consolidate(data, PALIMPSEST_CONSOLIDATION__WRITER="epc")
    assert status == 0
    assert "items were kept of what has been said since" in said
    assert "palimpsest consolidate --undo k-" in told


def test_an_archive_without_items_says_who_would_keep_some(tmp_path: Path) -> None:
    assert consolidate(tmp_path / "nowhere")[0] == 1
    assert consolidate(tmp_path, "--undo", "k-1", "--dry-run")[0] == 2
