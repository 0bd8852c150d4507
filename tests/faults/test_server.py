"""Whatever a database server does, requests pass, their turns wait on this disk, and arrive in order and once."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from pathlib import Path

import psycopg
import pytest
from palimpsest.evaluation.scripted import ScriptedUpstream

from tests.commands.test_cli import palimpsest
from tests.running import Conversation, Proxy, until
from tests.servers import ADMIN, OWNER, Server, running_server

pytestmark = [pytest.mark.slow, pytest.mark.sqlite]

DEADLINE_MS = 1000  # so that a statement that hangs is given up soon, and a busy machine answers in time
CONNECTIONS = 15  # of a server that has few: the two processes of a proxy want ten, and three are kept for a superuser
SAID = [f"Line {number}: the ferry leaves from pier {number * 7}." for number in range(5)]
IN_ORDER = (
    "SELECT text FROM occurrence JOIN content ON content.id = content WHERE text LIKE 'Line %' ORDER BY occurrence.id"
)
ANSWERS = "SELECT count(*) FROM occurrence WHERE role = 'assistant'"
END_OURS = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'palimpsest'"

Fault = Callable[[Server, str], AbstractContextManager[None]]


@contextmanager
def hanging(server: Server, url: str) -> Iterator[None]:
    """Connections stay, and statements are answered when it is over."""
    stopped = server.processes()
    for process in stopped:
        os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        for process in stopped:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGCONT)


@contextmanager
def read_only(server: Server, url: str) -> Iterator[None]:
    """Statements that write are refused."""
    for value in ("on", "off"):
        server.psql(
            f"SET default_transaction_read_only = off; ALTER SYSTEM SET default_transaction_read_only = {value}",
            user=ADMIN,
        )
        server.psql("SELECT pg_reload_conf()", user=ADMIN)
        if value == "on":
            yield


@contextmanager
def out_of_connections(server: Server, url: str) -> Iterator[None]:
    """Others have all of them."""
    with ExitStack() as others:
        one = others.enter_context(closing(psycopg.connect(url, autocommit=True)))
        with pytest.raises(psycopg.OperationalError, match="slots are reserved"):
            while one.execute(END_OURS):
                others.enter_context(closing(psycopg.connect(url)))
        yield


def has_all(proxy: Proxy) -> bool:
    ready = proxy.ready()
    is_well = ready["store"] == "ready" and not any("wait" in reason for reason in ready["reasons"])
    return bool(is_well and proxy.metric("palimpsest_queued") == 0)


def hold_all_turns(proxy: Proxy, server: Server, url: str) -> None:
    """Fail unless the database has everything, once and in order."""
    assert server.rows(url, IN_ORDER) == [(line,) for line in SAID]
    assert server.rows(url, ANSWERS) == [(len(SAID),)]
    checked = palimpsest("check", "--data", str(proxy.data), env=proxy.env)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert f"1 conversations, {len(SAID)} turns" in checked.stdout


@pytest.fixture
def start(upstream: ScriptedUpstream, tmp_path: Path) -> Iterator[Callable[[str], Conversation]]:
    """What starts a proxy on a database, and has one turn archived."""
    upstream.script = lambda body: f"Noted, thing number {len(str(body))}."
    settings = {"memory": {"deadline_ms": DEADLINE_MS}}
    with ExitStack() as proxies:

        def start(url: str) -> Conversation:
            proxy = Proxy(tmp_path / "data", upstream.url, settings, PALIMPSEST_STORE__URL=url)
            talk = Conversation(proxies.enter_context(proxy), "sk-one")
            talk.say(SAID[0])
            until(lambda: has_all(proxy), "the first turn to be archived")
            return talk

        yield start


def say_during_outage(talk: Conversation, advice: str) -> None:
    """Say all but the last line, until the log has some advice for the operator."""
    assert [talk.say(line).status for line in SAID[1:4]] == [200, 200, 200]
    until(lambda: "turns wait on this disk" in str(talk.proxy.ready()), "turns to wait")
    until(lambda: advice in talk.proxy.log.read_text(), f"{advice!r} in the log")


def say_afterwards(talk: Conversation) -> None:
    until(lambda: has_all(talk.proxy), "the turns to be archived")
    assert talk.say(SAID[4]).said("event") == "append"
    until(lambda: has_all(talk.proxy), "the last turn to be archived")


@pytest.mark.parametrize(
    ("fault", "advice"),
    [
        (hanging, "has not answered for 2 s: look what its disk or server waits for"),
        (read_only, "lead store.url to the server that takes writes"),
        (out_of_connections, "the server is out of disk, memory or connections"),
    ],
    ids=["hanging", "read only", "out of connections"],
)
def test_requests_pass_while_a_server_takes_no_turns_and_the_log_says_what_to_do(
    start: Callable[[str], Conversation], fault: Fault, advice: str
) -> None:
    with running_server(CONNECTIONS) as server:
        talk = start(url := server.new_database())
        with fault(server, url):
            say_during_outage(talk, advice)
        say_afterwards(talk)
        hold_all_turns(talk.proxy, server, url)


def test_a_url_with_two_hosts_follows_a_standby_that_was_promoted_and_no_turn_is_lost(
    start: Callable[[str], Conversation],
) -> None:
    with running_server() as server, server.standby() as standby:
        name = server.new_database().rpartition("/")[2]
        hosts = f"127.0.0.1:{server.port},127.0.0.1:{standby.port}"
        talk = start(f"postgresql://{OWNER}@{hosts}/{name}?target_session_attrs=read-write")
        server.stop()
        say_during_outage(talk, "lead store.url to the server that takes writes")
        standby.control("promote")
        say_afterwards(talk)
        hold_all_turns(talk.proxy, standby, standby.url(name))
