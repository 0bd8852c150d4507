"""`palimpsest gaps`: memory asks itself, with a real embedding model, on a real data folder."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest
from palimpsest.store.journal import Journal
from palimpsest.store.operation.probes import save

from tests.commands.test_cli import palimpsest
from tests.databases import database_in
from tests.features.gaps.test_probing import facts
from tests.talking import NOW, Talk

pytestmark = pytest.mark.slow


@pytest.fixture
async def data(tmp_path: Path) -> Path:
    """A data folder with one conversation of forty statements."""
    database = database_in(tmp_path)
    await database.open()
    talk = Talk(Journal(database))
    for text in facts(40):
        await talk.say(text, "Noted.")
    await database.close()
    return tmp_path


@pytest.mark.usefixtures("model_folder")
def test_memory_asks_itself_now(data: Path) -> None:
    assert palimpsest("index", "--data", str(data)).returncode == 0
    told = orjson.loads(palimpsest("gaps", "--probes", "30", "--seed", "7", "--json", "--data", str(data)).stdout)
    assert (told["probes"], told["write_gap"]) == (30, 0)
    assert told["stages"]["found"] >= 10
    shown = palimpsest("gaps", "--probes", "5", "--data", str(data))
    assert "of 5 answers" in shown.stdout and shown.returncode == 0


async def test_what_a_proxy_found_out_stands_in_stats_and_beside_a_trail(data: Path) -> None:
    database = database_in(data)
    await database.open()
    for stage in ("found", "packed"):
        await database.transact(lambda transaction, stage=stage: save(transaction, NOW, stage))  # type: ignore[misc]
    await database.close()
    without = {"PALIMPSEST_MODEL__DOWNLOAD": "never", "PALIMPSEST_MODEL__CACHE": str(data / "no-model")}
    stats = palimpsest("stats", "--data", str(data), env=without).stdout
    assert "of 2 answers" in stats and "more in recall" in stats
    assert "by words alone" in palimpsest("gaps", "--probes", "3", "--data", str(data), env=without).stdout
    asked = ("why-not", "c-1", "inventory label 7014", "--data", str(data))
    assert "in general: of 2 answers" in palimpsest(*asked, env=without).stdout
    assert orjson.loads(palimpsest(*asked, "--json", env=without).stdout)["gaps"]["probes"] == 2


def test_an_empty_folder_has_nothing_to_ask_for(tmp_path: Path) -> None:
    done = palimpsest("gaps", "--probes", "0", "--data", str(tmp_path))
    assert done.returncode == 2 and "expected a number from 1" in done.stderr
