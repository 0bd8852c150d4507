"""
Databases of earlier schema versions, for the tests of migrations: made by the programs that had them.

    scripts/old_databases.py [VERSION ...]

For each version the newest commit that wrote it is checked out beside this one, its proxy is started in front of a
scripted provider, and a client talks to it. What the database is then goes, compressed, to tests/store/versions. Add a
line to `COMMITS` with each migration: the commit in front of it.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import orjson

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from palimpsest.domain import Json  # noqa: E402
from palimpsest.scripted import ScriptedUpstream  # noqa: E402
from palimpsest.transfer.files import zstd  # noqa: E402

from tests.running import free_port, request, until, upstream_on_a_thread  # noqa: E402
from tests.store.versions.dialogue import DIALOGUE, KEY, SECRET, answer  # noqa: E402

FOLDER = ROOT / "tests" / "store" / "versions"
COMMITS = {
    1: "deddd6d^",
    2: "3b36182^",
    3: "15b904f^",
    4: "7f0de74^",
    5: "0bfbecf^",
    6: "103a25b^",
    7: "845229b",
    8: "ba4413f",
    9: "2c57874",
    10: "17a4fc6",
    11: "d97cd09",
    12: "3ae7a5d",
    13: "e27c44b",
    14: "35c6e64",
}
LEVEL = 19  # of the compression: they are made once and kept for good


def main(versions: list[int]) -> None:
    for version in versions:
        with tempfile.TemporaryDirectory() as folder:
            tree = Path(folder) / "tree"
            git("worktree", "add", "--detach", str(tree), COMMITS[version])
            try:
                database = talk(tree, Path(folder) / "data")
            finally:
                git("worktree", "remove", "--force", str(tree))
            keep(database, version)


def git(*words: str) -> None:
    subprocess.run(["git", "-C", str(ROOT), *words], check=True, capture_output=True)


def talk(tree: Path, data: Path) -> Path:
    """Run the dialogue through that tree's proxy; its database."""
    port = free_port()
    folders = os.pathsep.join(map(str, (tree, tree / "proxy")))
    environment = os.environ | {"PYTHONPATH": folders, "PALIMPSEST_SECRET": SECRET}
    environment |= {"PALIMPSEST_MODEL__DOWNLOAD": "never", "HF_HUB_OFFLINE": "1"}
    upstream = ScriptedUpstream()
    upstream.script = answer
    with upstream_on_a_thread(upstream):
        module = "palimpsest" if (tree / "proxy" / "palimpsest").exists() else "proxy"
        command = [sys.executable, "-m", module, "serve", "--port", str(port), "--upstream", upstream.url]
        process = subprocess.Popen([*command, "--data", str(data)], cwd=tree, env=environment)
        try:
            until(lambda: is_alive(port), "the proxy to start")
            for messages in DIALOGUE:
                body: Json = {"model": "gpt-4o", "messages": messages}
                headers = {"authorization": f"Bearer {KEY}", "content-type": "application/json"}
                got = request(port, "POST", "/v1/chat/completions", orjson.dumps(body), headers)
                assert got.status == 200, got.body
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()
    (database,) = (file for file in data.iterdir() if file.suffix == ".db")
    return database


def is_alive(port: int) -> bool:
    try:
        return request(port, "GET", "/healthz").status == 200
    except OSError:
        return False


def keep(database: Path, version: int) -> None:
    with closing(sqlite3.connect(database, isolation_level=None)) as db:
        ((found,),) = db.execute("PRAGMA user_version")
        assert found == version, f"{COMMITS[version]} writes version {found}"
        db.execute("PRAGMA journal_mode = DELETE")
        db.execute("VACUUM")
    target = FOLDER / f"version_{version}.db.zst"
    target.write_bytes(zstd.compress(database.read_bytes(), LEVEL))
    sys.stdout.write(f"{target.relative_to(ROOT)}: {target.stat().st_size:,} bytes\n")


if __name__ == "__main__":
    main([int(word) for word in sys.argv[1:]] or [*COMMITS])
