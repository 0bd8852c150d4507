"""A proxy on a server's database does what one on a file does, as its operator sees it; or says that it does not."""

from __future__ import annotations

import re
import subprocess
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import orjson
import pytest
from palimpsest.domain import Json
from palimpsest.evaluation.scripted import ScriptedUpstream
from palimpsest.store.operation.secret import SECRET_ENV

from tests.commands.test_cli import palimpsest
from tests.poolers import running_pooler
from tests.running import Answered, Conversation, Proxy, memory_in, request, until, upstream_on_a_thread
from tests.servers import Server

pytestmark = pytest.mark.slow

FACT = "The door code of the northern archive is 4471, and it changes every spring."
QUESTION = "What is the door code of the northern archive?"

SAID = "SELECT text, count(*) FROM content WHERE text LIKE 'line %' GROUP BY text ORDER BY text COLLATE \"C\""
CROSSED = """
SELECT count(DISTINCT conversation) FROM occurrence JOIN content ON content.id = content WHERE text LIKE 'line %'
"""

Two = tuple[Proxy, Proxy]
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module", params=["server", "pooler"])
def port(request: pytest.FixtureRequest, server: Server) -> Iterator[int]:
    """Where a proxy finds the server: at its own port, or at a pooler's."""
    if request.param == "server":
        yield server.port
    else:
        with running_pooler(server) as port:
            yield port


@pytest.fixture
def proxy(own_proxy: Proxy, server: Server, port: int) -> Proxy:
    own_proxy.env["PALIMPSEST_STORE__URL"] = server.new_database().replace(f":{server.port}/", f":{port}/")
    own_proxy.env["PALIMPSEST_MEMORY__REACH"] = "tenant"
    return own_proxy.start()


@pytest.fixture
def run(proxy: Proxy) -> Run:
    """Runs a command on the proxy's store."""

    def command(*words: str) -> subprocess.CompletedProcess[str]:
        return palimpsest(*words, "--data", str(proxy.data), "--config", str(proxy.config), env=proxy.env)

    return command


def test_what_is_said_is_archived_recalled_after_a_restart_and_forgotten(
    proxy: Proxy, upstream: ScriptedUpstream, key: str, run: Run
) -> None:
    upstream.script = lambda _: "Thank you, I have taken note of that and will come back to it when you need it."
    assert Conversation(proxy, key).say(FACT).status == 200
    proxy.settle()
    assert proxy.stop() == 0
    assert not list(proxy.data.glob("*.db*")), "a file was made beside the server's database"
    proxy.start()
    proxy.settle()
    asked = Conversation(proxy, key).say(QUESTION)
    assert "4471" in memory_in(upstream.received[-1].json)
    proxy.settle()

    doctor = run("doctor")
    assert re.search(r"^ok +store ", doctor.stdout, re.M)
    assert proxy.env["PALIMPSEST_STORE__URL"].rpartition("@")[2] in doctor.stdout
    assert "4471" in run("explain", asked.said("turn")).stdout
    for refused in (("check", "--repair"), ("backup", "copy.zip"), ("restore", "copy.zip"), ("vacuum",)):
        told = run(*refused)
        assert told.returncode != 0 and "the database is a server" in told.stderr, refused

    told = run("forget", "--matching", "northern archive", "--yes")
    assert told.returncode == 0, told.stderr
    receipt = orjson.loads(told.stdout[told.stdout.index("{") :])
    assert receipt["erased"]["messages"] >= 1 and not receipt["check"]["searched"]
    assert receipt["not_covered"][0].startswith("the files of the database server")
    Conversation(proxy, key).say(QUESTION)
    assert "4471" not in memory_in(upstream.received[-1].json)


def test_requests_pass_while_the_server_is_away_and_their_turns_arrive_afterwards_once(
    own_proxy: Proxy, upstream: ScriptedUpstream, key: str, own_server: Server
) -> None:
    own_proxy.env["PALIMPSEST_STORE__URL"] = own_server.new_database()
    with own_proxy as proxy:
        upstream.script = lambda _: "Noted."
        talk = Conversation(proxy, key)
        assert talk.say("first").status == 200
        proxy.settle(vectors=False)
        own_server.stop()
        assert [talk.say(text).status for text in ("second", "third")] == [200, 200]
        own_server.start()
        assert talk.say("fourth").status == 200
        proxy.settle(vectors=False)
        texts = own_server.rows(proxy.env["PALIMPSEST_STORE__URL"], "SELECT text FROM content ORDER BY id")
        said = [text for (text,) in texts if text in ("first", "second", "third", "fourth")]
        assert said == ["first", "second", "third", "fourth"]


@pytest.fixture(scope="module")
def provider() -> Iterator[ScriptedUpstream]:
    with upstream_on_a_thread() as upstream:
        upstream.script = lambda _: (
            f"Noted as number {len(upstream.received)}; I will come back to it when you need it."
        )
        yield upstream


@pytest.fixture(scope="module")
def two(provider: ScriptedUpstream, server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Two]:
    """Two proxies that share a database, a secret and a policy, started at the same moment."""
    folder = tmp_path_factory.mktemp("two")
    shared = {"PALIMPSEST_STORE__URL": server.new_database(), SECRET_ENV: "5" * 64}
    settings = {"memory": {"reach": "tenant"}, "tenants": {"require_key": False}}
    one, other = (Proxy(folder / name / "data", provider.url, settings, **shared) for name in ("one", "other"))
    other.config = one.config
    try:
        with ThreadPoolExecutor(2) as starting:
            list(starting.map(Proxy.start, (one, other)))
        yield one, other
    finally:
        one.close()
        other.close()


def test_two_proxies_on_one_database_are_one_memory(two: Two, provider: ScriptedUpstream, server: Server) -> None:
    one, other = two
    talk = Conversation(one, "sk-one-memory")
    first = talk.say(FACT)
    one.settle()
    talk.proxy = other
    assert talk.say("And what else?").said("conversation") == first.said("conversation")
    Conversation(other, "sk-one-memory").say(QUESTION)
    assert "4471" in memory_in(provider.received[-1].json)

    talks = [Conversation(two[number % 2], "sk-one-memory") for number in range(8)]

    def speak(number: int) -> list[int]:
        return [talks[number].say(f"line {turn} of talk {number}").status for turn in range(4)]

    with ThreadPoolExecutor(8) as threads:
        assert [*threads.map(speak, range(8))] == [[200] * 4] * 8
    for proxy in two:
        proxy.settle()
    lines = server.rows(one.env["PALIMPSEST_STORE__URL"], SAID)
    assert lines == sorted((f"line {turn} of talk {number}", 1) for turn in range(4) for number in range(8))
    assert server.rows(one.env["PALIMPSEST_STORE__URL"], CROSSED) == [(8,)]


def test_two_proxies_that_see_a_new_conversation_at_once_agree_on_it(two: Two, server: Server) -> None:
    together = threading.Barrier(2)

    def ask(proxy: Proxy, name: str) -> list[str]:
        talk = Conversation(proxy, "sk-newcomer", headers={"x_palimpsest_conversation": name})
        together.wait()
        return [talk.say(f"We begin {name} in two places at once.").said("conversation") for _ in range(2)]

    for number in range(6):
        with ThreadPoolExecutor(2) as clients:
            one, other = clients.map(ask, two, [f"the-same-{number}"] * 2)
        assert len({*one, *other}) == 1
        for proxy in two:
            proxy.settle(vectors=False)
        counted = "SELECT count(*), count(DISTINCT tenant) FROM conversation WHERE public = '{}'"
        assert server.rows(two[0].env["PALIMPSEST_STORE__URL"], counted.format(one[0])) == [(1, 1)]


def test_what_is_changed_at_one_proxy_is_followed_by_the_other(
    two: Two, provider: ScriptedUpstream, server: Server
) -> None:
    def send(proxy: Proxy, path: str, body: Json) -> Answered:
        return request(proxy.port, "POST", f"/memory/v1/{path}", orjson.dumps(body))

    def greeted(proxy: Proxy, key: str) -> int:
        return Conversation(proxy, key).say("Hello.").status

    def quotes(proxy: Proxy, key: str) -> bool:
        Conversation(proxy, key).say("What is the combination of the safe behind the painting?")
        return "19-77-03" in memory_in(provider.received[-1].json)

    one, other = two
    made = send(one, "keys", {"name": "bot", "tenant": "safe"}).json
    until(lambda: [greeted(proxy, made["key"]) for proxy in two] == [200, 200], "the key to be known")
    Conversation(other, made["key"]).say("The combination of the safe behind the painting is 19-77-03.")
    other.settle()
    assert quotes(one, made["key"]) and quotes(other, made["key"])

    send(one, "disable", {"tenant": "safe"})
    until(lambda: not quotes(other, made["key"]), "memory to be off at the other")
    send(other, "enable", {"tenant": "safe"})
    until(lambda: quotes(one, made["key"]), "memory to be on again")

    one.config.write_text(one.config.read_text().replace("reach: tenant", "reach: conversation"))
    until(lambda: not quotes(one, made["key"]) and not quotes(other, made["key"]), "the policy to be in force")
    one.config.write_text(one.config.read_text().replace("reach: conversation", "reach: tenant"))
    until(lambda: quotes(one, made["key"]) and quotes(other, made["key"]), "the policy to be in force")

    (tenant,) = server.rows(one.env["PALIMPSEST_STORE__URL"], "SELECT name FROM tenant ORDER BY id DESC LIMIT 1")[0]
    forgotten = request(one.port, "DELETE", f"/memory/v1/tenants/{tenant}")
    assert forgotten.status == 200, forgotten.body
    assert not quotes(other, made["key"]) and not quotes(one, made["key"])
    assert request(one.port, "DELETE", f"/memory/v1/keys/{made['id']}").status == 200
    until(lambda: [greeted(proxy, made["key"]) for proxy in two] == [401, 401], "the key to be revoked")
