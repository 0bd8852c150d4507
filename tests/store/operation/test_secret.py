import stat
import subprocess
import sys
from pathlib import Path

import pytest
from palimpsest.domain.errors import PolicyError
from palimpsest.store.engine.secret_mark import SecretMark
from palimpsest.store.engine.sqlite.database import Database
from palimpsest.store.operation.secret import load_secret


def test_the_secret_survives_a_restart_and_only_its_owner_may_read_it(tmp_path: Path) -> None:
    made = load_secret(tmp_path, {})
    assert len(made) >= 32
    assert load_secret(tmp_path, {}) == made
    assert [file.name for file in tmp_path.iterdir()] == ["secret"]
    assert stat.S_IMODE((tmp_path / "secret").stat().st_mode) == 0o600


async def test_no_secret_is_made_beside_a_database_that_was_written_with_another_one(tmp_path: Path) -> None:
    database = Database(tmp_path / "palimpsest.db", mark=SecretMark(lambda: b"another secret"))
    await database.open()
    await database.close()
    with pytest.raises(PolicyError, match="restore it from a backup, or set PALIMPSEST_SECRET"):
        load_secret(tmp_path, {})
    assert not (tmp_path / "secret").exists() and load_secret(tmp_path, {"PALIMPSEST_SECRET": "0123456789abcdef"})


def test_two_installations_have_two_secrets(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    assert load_secret(tmp_path / "a", {}) != load_secret(tmp_path / "b", {})


def test_environment_goes_before_the_file_and_writes_none(tmp_path: Path) -> None:
    assert load_secret(tmp_path, {"PALIMPSEST_SECRET": "0123456789abcdef"}) == b"0123456789abcdef"
    assert list(tmp_path.iterdir()) == []


def test_a_short_secret_is_refused_without_repeating_it(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="at least 16 characters") as refused:
        load_secret(tmp_path, {"PALIMPSEST_SECRET": "hunter2"})
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
def test_a_file_that_others_may_read_is_refused(tmp_path: Path, mode: int) -> None:
    load_secret(tmp_path, {})
    (tmp_path / "secret").chmod(mode)
    with pytest.raises(PolicyError, match="chmod 600"):
        load_secret(tmp_path, {})


def test_an_empty_file_is_never_taken_for_a_secret(tmp_path: Path) -> None:
    (tmp_path / "secret").touch(mode=0o600)
    with pytest.raises(PolicyError, match="is empty"):
        load_secret(tmp_path, {})


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="cannot be used: No such file or directory"):
        load_secret(tmp_path / "nowhere", {})


def test_workers_that_start_at_once_agree(tmp_path: Path) -> None:
    program = (
        "import sys, pathlib\n"
        "from palimpsest.store.operation.secret import load_secret\n"
        "sys.stdin.read()\n"  # until the starting shot: the end of input
        "sys.stdout.buffer.write(load_secret(pathlib.Path(sys.argv[1]), {}))"
    )
    workers = [
        subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for _ in range(6)
    ]
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.close()
        worker.stdin = None
    secrets = {worker.communicate(timeout=60)[0] for worker in workers}
    assert len(secrets) == 1
    assert secrets == {load_secret(tmp_path, {})}
