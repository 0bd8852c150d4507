"""
kill -9 in the middle of a migration, of databases that earlier versions wrote; then it is begun again, and finished.

Whenever it is cut off, the file is of its old version or of the new one, and holds every message.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import signal
import statistics
import tempfile
import time
from collections import Counter
from itertools import count
from pathlib import Path

from palimpsest.store.database import Database
from palimpsest.store.schema import MIGRATIONS
from palimpsest.transfer.files import zstd

from scripts.endure.load import seconds_since
from scripts.endure.table import Table, note
from tests.ledger import damage, version_of
from tests.running import ROOT, stored_texts

KILLS = 500
STORED = ROOT / "tests" / "store" / "versions"
FILE = "palimpsest.db"
LATEST_SHARE = 0.5  # of the time that opening took when it was tried: later, most are over
TRIED = 5  # migrations that are timed first


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--kills", type=int, default=KILLS, metavar="N", help=f"({KILLS})")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of the moments (1)")


def run(arguments: argparse.Namespace) -> bool:
    chance, started, found, failures = random.Random(arguments.seed), time.monotonic(), Counter[str](), list[str]()
    files = (STORED / f"version_{version}.db.zst" for version in range(1, len(MIGRATIONS)))
    stored = [zstd.decompress(file.read_bytes()) for file in files]
    with tempfile.TemporaryDirectory(prefix="palimpsest-migrate-") as folder:
        usual = statistics.median(_timed(Path(folder) / f"timed-{number}", stored[0]) for number in range(TRIED))
        for number in count():
            if found["before"] + found["after"] == arguments.kills:
                break
            data = Path(folder) / str(number)
            version = chance.randrange(len(stored)) + 1
            _put(data, stored[version - 1])
            before = stored_texts(data)
            cut = _migrated(data, chance.uniform(0, usual * LATEST_SHARE))
            between = version_of(data)
            _migrated(data)
            is_well = between in (version, len(MIGRATIONS)) and version_of(data) == len(MIGRATIONS)
            if not is_well or stored_texts(data) != before or damage(data):
                failures.append(f"kill {number}, version {version}: {between}, then {version_of(data)}")
            found["before" if between == version else "after"] += cut
            found["over"] += not cut
    table = Table(("kills", "before", "after", "over", "failed", "seconds"))
    table.line((arguments.kills, found["before"], found["after"], found["over"], len(failures), seconds_since(started)))
    for failure in failures[:5]:
        note(failure)
    return not failures


def _put(data: Path, content: bytes) -> None:
    data.mkdir()
    (data / FILE).touch(mode=0o600)
    (data / FILE).write_bytes(content)


def _timed(data: Path, content: bytes) -> float:
    _put(data, content)
    started = time.monotonic()
    _migrated(data)
    return time.monotonic() - started


def _migrated(data: Path, kill_after_seconds: float | None = None) -> bool:
    """Open a database in a process of its own; whether that was killed before it had ended."""
    process = os.fork()
    if not process:
        asyncio.run(_open(data))
        os._exit(0)
    if kill_after_seconds is not None:
        time.sleep(kill_after_seconds)
        os.kill(process, signal.SIGKILL)
    _, status = os.waitpid(process, 0)
    return os.WIFSIGNALED(status)


async def _open(data: Path) -> None:
    database = Database(data / FILE)
    await database.open()
    await database.close()
