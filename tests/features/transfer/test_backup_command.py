"""Backup and restore as an operator types them, the backup beside a running proxy."""

from __future__ import annotations

from pathlib import Path

import pytest
from palimpsest.evaluation.scripted import ScriptedUpstream

from tests.commands.test_cli import palimpsest
from tests.running import Proxy, rows, stored_texts

pytestmark = pytest.mark.slow

SAID = "The quince stands beside hive seven, behind the northern wall."


@pytest.fixture(autouse=True)
def short_answers(upstream: ScriptedUpstream) -> None:
    upstream.script = lambda _: "Noted."


def words(printed: str) -> list[str]:
    return [" ".join(line.split()) for line in printed.splitlines()]


@pytest.mark.sqlite
def test_a_backup_of_a_running_proxy_is_restored_to_an_empty_folder_and_to_no_other(
    own_proxy: Proxy, tmp_path: Path
) -> None:
    file, new = tmp_path / "b.tar.zst", tmp_path / "new"
    backup = ("backup", str(file), "--data", str(own_proxy.data))
    restore = ("restore", str(file), "--data")
    with own_proxy as running:
        assert running.chat({"model": "gpt-4o", "messages": [{"role": "user", "content": SAID}]}).status == 200
        running.settle(vectors=False)
        done = palimpsest(*backup)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith(f"{file}: ") and " MB, opened and found intact\n" in done.stdout
        assert words(done.stdout)[1:] == ["conversations 1", "turns 1", "messages 2"]
        assert "that is a backup: palimpsest restore" in palimpsest("import", str(file), "--data", f"{new}er").stderr
        nowhere = palimpsest("backup", str(tmp_path / "no" / "b.tar"), "--data", str(own_proxy.data))
        assert f"writing {tmp_path}/no/b.tar: there is no folder {tmp_path}/no" in nowhere.stderr
        again = palimpsest(*backup)
        assert (again.returncode, again.stdout) == (1, "")
        assert again.stderr == f"palimpsest: writing {file}: it exists already; choose another name\n"
        in_use = palimpsest(*restore, str(own_proxy.data), "--force")
        assert (in_use.returncode, in_use.stdout) == (1, "")
        assert in_use.stderr.endswith("a process is using the database; stop it first\n")
        assert running.chat({"model": "gpt-4o", "messages": [{"role": "user", "content": SAID}]}).status == 200
    there = palimpsest(*restore, str(own_proxy.data))
    assert (there.returncode, there.stdout) == (1, "")
    assert there.stderr.endswith("it contains a database; --force moves it aside\n")
    done = palimpsest(*restore, str(new))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{new}: restored as it was at 2")
    assert words(done.stdout)[1:] == ["conversations 1", "turns 1", "messages 2"]
    assert SAID in stored_texts(new)
    done = palimpsest(*restore, str(new), "--force")
    assert done.returncode == 0 and "later erasures do not reach that copy" in done.stdout
    done = palimpsest("forget", "--matching", SAID, "--yes", "--data", str(new))
    (aside,) = new.glob("replaced-*")
    assert (
        done.returncode == 1
        and f"still in {aside.name}/palimpsest.db: delete what you do not need of these;" in done.stderr
    )
    assert SAID not in stored_texts(new)


@pytest.mark.sqlite
def test_a_backup_without_the_secret_says_what_that_means_and_needs_it_again(own_proxy: Proxy, tmp_path: Path) -> None:
    file = tmp_path / "b.tar"
    with own_proxy as running:
        assert running.chat({"model": "gpt-4o", "messages": [{"role": "user", "content": SAID}]}).status == 200
    done = palimpsest("backup", str(file), "--without-secret", "--data", str(own_proxy.data))
    assert done.returncode == 0, done.stderr
    assert words(done.stdout)[-1] == "it does not contain the secret, without which nothing in it can be found again"
    restore = ("restore", str(file), "--data", str(tmp_path / "new"))
    without = palimpsest(*restore)
    assert (without.returncode, without.stdout) == (2, "")
    assert "PALIMPSEST_SECRET: is not set" in without.stderr
    secret = (own_proxy.data / "secret").read_text().strip()
    given = palimpsest(*restore, env={"PALIMPSEST_SECRET": secret})
    assert given.returncode == 0, given.stderr
    assert rows(tmp_path / "new", "SELECT count(*) FROM turn") == [(1,)]


def test_what_is_no_backup_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "b.tar").write_text("no archive")
    wrong = palimpsest("restore", str(tmp_path / "b.tar"), "--data", str(tmp_path / "new"))
    assert (wrong.returncode, wrong.stdout) == (1, "")
    assert str(tmp_path / "b.tar") in wrong.stderr and "Traceback" not in wrong.stderr
    assert not [*tmp_path.glob("new/*")]
