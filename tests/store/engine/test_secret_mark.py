"""What was written with one secret is not used with another, and whoever opens it so is told what to do."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from palimpsest.domain.errors import MemoryFault
from palimpsest.evaluation.scripted import ScriptedUpstream
from palimpsest.store.engine import Engine
from palimpsest.store.engine.postgres.database import Database as Server
from palimpsest.store.engine.secret_mark import SecretMark
from palimpsest.store.engine.sqlite.database import Database
from palimpsest.store.operation.secret import SECRET_ENV

from tests.commands.test_cli import palimpsest
from tests.running import Conversation, Proxy, until

MINE, THEIRS = b"m" * 32, b"t" * 32


def again(database: Engine, secret: bytes | None) -> Engine:
    """The same database, as a process with this secret has it; None: one that asks for none."""
    mark = SecretMark(lambda: secret) if secret else None
    if isinstance(database, Server):
        return Server(database.url, mark=mark)
    assert isinstance(database, Database)
    return Database(database.path, mark=mark)


async def test_the_first_secret_is_the_only_one(database: Engine) -> None:
    for secret in (None, MINE, MINE, None):
        same = again(database, secret)
        await same.open()
        await same.close()
    other = again(database, THEIRS)
    with pytest.raises(MemoryFault, match="written with another secret") as failure:
        await other.open()
    assert SECRET_ENV in str(failure.value) and other.error == str(failure.value)
    with pytest.raises(MemoryFault, match="written with another secret"):
        await other.write([("INSERT INTO tenant(name) VALUES (?)", [("a",)])])
    assert await database.read("SELECT count(*) FROM tenant") == [(0,)]
    await other.close()


async def test_the_mark_does_not_tell_the_secret(database: Engine) -> None:
    mine = again(database, MINE)
    await mine.open()
    ((digest,),) = await mine.read("SELECT digest FROM secret_mark")
    assert len(digest) == 16 and bytes(digest) not in MINE
    await mine.close()


@pytest.mark.slow
def test_a_proxy_with_another_secret_says_so_and_lets_requests_pass_without_memory(
    own_proxy: Proxy, upstream: ScriptedUpstream, key: str, tmp_path: Path
) -> None:
    upstream.script = lambda _: "Noted."

    def command(*words: str) -> subprocess.CompletedProcess[str]:
        return palimpsest(*words, "--data", str(own_proxy.data), "--config", str(own_proxy.config), env=own_proxy.env)

    with own_proxy as proxy:
        assert Conversation(proxy, key).say("The door code is 4471.").status == 200
        proxy.settle(vectors=False)
    secret = proxy.data / "secret"
    kept = secret.rename(tmp_path / "kept")
    missing = command("key", "create", "ann")
    assert missing.returncode == 2 and "restore it from a backup" in missing.stderr and not secret.exists()
    secret.touch(mode=0o600)
    secret.write_text("a secret of another installation")
    with own_proxy as proxy:
        assert proxy.ready()["store"] == "failed"
        until(lambda: "written with another secret" in proxy.log.read_text(), "the reason")
        assert Conversation(proxy, key).say("What is the door code?").status == 200
    doctor, forgetting = command("doctor"), command("forget", "--matching", "door code", "--yes")
    for refused in (doctor, forgetting):
        assert refused.returncode != 0 and "written with another secret" in refused.stdout + refused.stderr
    assert "4471" in command("export").stdout
    kept.replace(secret)
    with own_proxy as proxy:
        assert Conversation(proxy, key).say("And what else?").status == 200
        proxy.settle(vectors=False)
        assert proxy.ready()["store"] == "ready"
