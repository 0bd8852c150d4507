"""
The running proxy for tests: a process of its own, a scripted upstream on a thread, and a plain caller.

Nothing here patches anything: what a test sees is what a client, an operator or a provider would see.
"""

from __future__ import annotations

import asyncio
import http.client
import os
import random
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import cycle, pairwise
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import orjson
import psycopg
import yaml
from palimpsest.domain import Json
from palimpsest.evaluation.scripted import ScriptedUpstream

from tests.fork_server import Forked, ForkServer

ROOT = Path(__file__).parent.parent
SHARED = ROOT.parent / "shared"
TICK_SECONDS = 0.02  # between two looks, at least
PAUSE = 0.05  # between two looks, by what was waited before
PATIENCE_SECONDS = 120.0  # before a test that waits gives up; machines differ, results must not
WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
WORKERS = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
# Outgoing connections have those from 32,768 on. Each worker has its own, and takes them in turn: a port that two of
# them had found free at once would send the requests of one test to the proxy of another.
PORTS = cycle(random.sample(range(20_000 + WORKER, 30_000, WORKERS), 10_000 // WORKERS))
DEADLINE_MS = 10_000.0  # of recall and commit; the default, 250, is met by a machine that does nothing else
PATIENT = {"PALIMPSEST_MEMORY__DEADLINE_MS": str(DEADLINE_MS)}  # for commands that start a proxy themselves
BLOCK_OPENS = "<palimpsest-memory"
BLOCK_CLOSES = "</palimpsest-memory>"
HAND_OVER = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS='1')
os.execv(sys.argv[2], sys.argv[2:])
"""

T = TypeVar("T")


def until(look: Callable[[], T | None], doing: str) -> T:
    """
    The first true value of `look`; fails with `doing` when patience ends.

    The longer it has waited, the less often it looks: a look costs what is waited for some of its processor time.
    """
    begun = time.monotonic()
    while (waited := time.monotonic() - begun) < PATIENCE_SECONDS:
        if value := look():
            return value
        time.sleep(max(TICK_SECONDS, waited * PAUSE))
    raise AssertionError(f"gave up waiting for {doing}")


def free_port() -> int:
    """A port that nobody listens on, below those of outgoing connections: none of these takes it before it is used."""
    while True:
        port = next(PORTS)
        with socket.socket() as s, suppress(OSError):
            s.bind(("127.0.0.1", port))
            return port


@contextmanager
def upstream_on_a_thread(upstream: ScriptedUpstream | None = None) -> Iterator[ScriptedUpstream]:
    """A scripted upstream with an event loop of its own, for callers that block."""
    upstream = upstream or ScriptedUpstream()
    up, over = threading.Event(), asyncio.Event()
    loop = asyncio.new_event_loop()

    async def serve() -> None:
        async with upstream:
            up.set()
            await over.wait()

    def work() -> None:
        try:
            loop.run_until_complete(serve())
        finally:
            loop.close()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        assert up.wait(PATIENCE_SECONDS), "the scripted upstream did not start"
        yield upstream
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join()


@dataclass(frozen=True, slots=True)
class Answered:
    """What a caller got. `broken` says that the connection ended before the answer did."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    broken: bool = False

    @property
    def json(self) -> Json:
        parsed: Json = orjson.loads(self.body)
        return parsed

    @property
    def text(self) -> str:
        """The assistant's words of a chat completion, streamed or not."""
        if not self.headers["content-type"].startswith("text/event-stream"):
            return self.json["choices"][0]["message"]["content"] or ""
        deltas = [orjson.loads(line[6:]) for line in self.body.splitlines() if line.startswith(b"data: {")]
        return "".join(c["delta"].get("content") or "" for d in deltas for c in d["choices"])

    def said(self, name: str) -> str:
        """Our own response header `x-palimpsest-NAME`; "" where it is absent."""
        return self.headers.get(f"x-palimpsest-{name}", "")


def _patient(settings: Json) -> Json:
    """These settings, with deadlines that a busy machine meets: what a test asserts must not depend on its speed."""
    return settings | {"memory": {"deadline_ms": DEADLINE_MS} | settings.get("memory", {})}


class Proxy:
    """`python -m palimpsest serve` in a process of its own, with its data in one folder, or a database of its own."""

    new_database: ClassVar[Callable[[], str] | None] = None  # its URL, with `--store postgres`
    fork_server: ClassVar[ForkServer | None] = None  # that starts what nothing special is asked of
    variables: ClassVar[Mapping[str, str]] = {}  # of all that are made, but for their own
    databases: ClassVar[dict[Path, str]] = {}  # these URLs, by the data folders of their proxies

    def __init__(self, data: Path, upstream_url: str, settings: Json | None = None, **env: str) -> None:
        self.data, self.upstream_url, self.env, self.port = data, upstream_url, {**self.variables, **env}, free_port()
        data.mkdir(parents=True, exist_ok=True)
        self.log = data.parent / f"{data.name}.log"
        self.config = data.parent / f"{data.name}.yaml"
        self._settings = yaml.safe_dump(_patient(settings or {}))
        self.config.write_text(self._settings)
        if Proxy.new_database is not None:
            Proxy.databases[data] = Proxy.databases.get(data) or Proxy.new_database()
            self.env = {"PALIMPSEST_STORE__URL": Proxy.databases[data]} | self.env
        self.words: list[str] = []  # more arguments
        self.under: list[str] = []  # a command that runs another one, as `strace` does
        self.hands_over: socket.socket | None = None  # that it listens on, as systemd hands it over; else its own
        self.process: subprocess.Popen[bytes] | Forked | None = None

    def start(self) -> Proxy:
        """Start it and wait until it is alive."""
        if self.hands_over is not None:
            self.port = self.hands_over.getsockname()[1]
        words = ["serve", "--port", str(self.port), "--data", str(self.data), "--config", str(self.config), *self.words]
        words += ["--upstream", self.upstream_url] if self.upstream_url else []
        env = os.environ | {"PALIMPSEST_MODEL__DOWNLOAD": "never", "HF_HUB_OFFLINE": "1"} | self.env
        self.log.touch()
        if self.fork_server is not None and not self.under and all(map(self._is_ours, self.env)):
            with Path(os.devnull).open() as nothing, self.log.open("ab") as log:
                given = [nothing.fileno(), log.fileno(), log.fileno()]
                if self.hands_over is not None:
                    given.append(self.hands_over.fileno())
                self.process = self.fork_server.start(words, env, given)
        else:
            self.process = self._started([*self.under, sys.executable, "-m", "palimpsest", *words], env)
        until(self.is_alive, f"the proxy to start, see its log:\n{self.log.read_text()[-2000:]}")
        return self

    def _is_ours(self, name: str) -> bool:
        """Whether a variable is a setting of ours, or a credential that one names: nothing else reads it."""
        return name.startswith("PALIMPSEST_") or f"key_env: {name}\n" in self._settings

    def _started(self, command: list[str], env: Mapping[str, str]) -> subprocess.Popen[bytes]:
        """A process of a Python of its own, which is given the socket that it listens on, if there is one."""
        descriptors = ()
        if self.hands_over is not None:
            descriptors = (self.hands_over.fileno(),)
            command = [sys.executable, "-c", HAND_OVER, str(descriptors[0]), *command]
        with self.log.open("ab") as log:
            return subprocess.Popen(command, env=env, cwd=ROOT, stdout=log, stderr=log, pass_fds=descriptors)

    def is_alive(self) -> bool:
        """Whether it answers; fails where it has ended."""
        assert self.process is not None
        assert self.process.poll() is None, f"the proxy ended:\n{self.log.read_text()[-4000:]}"
        try:
            return self.get("/healthz").status == 200
        except OSError:
            return False

    def stop(self, sign: signal.Signals = signal.SIGTERM) -> int:
        """End it as an operator would, or with any signal; its exit status."""
        assert self.process is not None
        self.process.send_signal(sign)
        return self.process.wait(PATIENCE_SECONDS)

    def kill(self) -> None:
        """Kill -9."""
        self.stop(signal.SIGKILL)

    def __enter__(self) -> Proxy:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End it if it runs."""
        if self.process is not None and self.process.poll() is None:
            self.stop()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def get(self, path: str) -> Answered:
        return request(self.port, "GET", path)

    def ready(self) -> Json:
        """`/readyz`, whatever its status."""
        return self.get("/readyz").json

    def metric(self, name: str, **labels: str) -> float:
        """Sum of the samples of one metric that carry these labels."""
        total = 0.0
        for line in self.get("/metrics").body.decode().splitlines():
            head, _, value = line.rpartition(" ")
            if head.partition("{")[0] == name and all(f'{k}="{v}"' in head for k, v in labels.items()):
                total += float(value)
        return total

    def settle(self, *, vectors: bool = True) -> None:
        """Wait until everything that was acknowledged is written, and findable by meaning as well as by words."""
        until(lambda: self._settled(vectors), "the index to be complete")

    def _settled(self, vectors: bool) -> bool:
        if vectors:
            ready = self.ready()
            if ready["pending"] != 0 or ready["embedder"] != "ready":
                return False  # the metrics cost more than to ask this
        return self.metric("palimpsest_queued") == 0

    def chat(self, body: Json, key: str = "sk-test", **headers: str) -> Answered:
        """One chat completion, read to its end."""
        return request(self.port, "POST", "/v1/chat/completions", orjson.dumps(body), as_headers(key, headers))


def as_headers(key: str, named: Mapping[str, str]) -> dict[str, str]:
    """`x_palimpsest_user="a"` to `x-palimpsest-user: a`, with the credential and the content type."""
    names = {name.replace("_", "-"): value for name, value in named.items()}
    return {"authorization": f"Bearer {key}", "content-type": "application/json"} | names


def request(
    port: int, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
) -> Answered:
    """One request over a connection of its own; an answer that breaks off is returned as far as it came."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_SECONDS)
    try:
        connection.request(method, path, body, dict(headers or {}))
        response = connection.getresponse()
        names = {name.lower(): value for name, value in response.getheaders()}
        try:
            return Answered(response.status, names, response.read())
        except (http.client.IncompleteRead, ConnectionError) as cut:
            return Answered(response.status, names, getattr(cut, "partial", b""), broken=True)
    finally:
        connection.close()


@dataclass
class Conversation:
    """A plain client with a growing history, as a hand-written loop keeps one."""

    proxy: Proxy
    key: str
    system: str = "You are a helpful engineer."
    headers: dict[str, str] = field(default_factory=dict)
    extra: Json = field(default_factory=dict)
    messages: list[Json] = field(default_factory=list)

    def body(self, *more: Json) -> Json:
        history = [{"role": "system", "content": self.system}, *self.messages, *more]
        return {"model": "gpt-4o", "messages": history} | self.extra

    def say(self, text: str) -> Answered:
        """Add a human message, ask, and keep the answer."""
        self.messages.append({"role": "user", "content": text})
        answered = self.proxy.chat(self.body(), self.key, **self.headers)
        if answered.status == 200:
            self.messages.append({"role": "assistant", "content": answered.text})
        return answered

    def ask(self, text: str, **headers: str) -> Answered:
        """As `say`, and forget both again."""
        return self.proxy.chat(self.body({"role": "user", "content": text}), self.key, **self.headers, **headers)

    def keep_last(self, count: int, summary: str = "") -> None:
        """Compact: only the last `count` messages stay, behind a summary if there is one."""
        note = [{"role": "user", "content": f"Summary of the conversation so far:\n{summary}"}] if summary else []
        self.messages[:] = [*note, *self.messages[-count:]]


def store_of(arguments: Sequence[str]) -> dict[str, str]:
    """The setting of a command by which it finds what the data folder that it names has on a server."""
    data = next((Path(folder) for word, folder in pairwise(arguments) if word == "--data"), None)
    return {"PALIMPSEST_STORE__URL": Proxy.databases[data]} if data in Proxy.databases else {}


def database(data: Path) -> Path:
    """The one SQLite file of a data folder."""
    return next(file for file in sorted(data.iterdir()) if file.suffix in (".db", ".sqlite", ".sqlite3"))


def rows(data: Path, sql: str) -> list[tuple[Any, ...]]:
    """What stands on the disk, or on the server, read beside the proxy as any other process would."""
    if data in Proxy.databases:
        with closing(psycopg.connect(Proxy.databases[data], user="postgres")) as connection:  # who may read all rows
            return connection.execute(sql.encode()).fetchall()
    with closing(sqlite3.connect(database(data), timeout=PATIENCE_SECONDS)) as db:
        return db.execute(sql).fetchall()


def stored_texts(data: Path) -> set[str]:
    """Every message text that the journal holds."""
    return {text for (text,) in rows(data, "SELECT text FROM content")}


def texts(body: Json) -> str:
    """All the text of a request on any wire, tool results included, for a look."""

    def read(value: Any) -> str:
        if isinstance(value, dict):
            value = [value.get(name) for name in ("content", "text", "output")]
        return value if isinstance(value, str) else "\n".join(map(read, value or ()))

    return "\n".join(read(body.get(name)) for name in ("system", "instructions", "messages", "input"))


def memory_in(body: Json) -> str:
    """What stands inside the memory blocks of a request; "" without one."""
    pieces = texts(body).split(BLOCK_OPENS)[1:]
    return "\n".join(piece.partition(BLOCK_CLOSES)[0] for piece in pieces)


def own_texts(body: Json) -> str:
    """All the text of a request but its memory blocks: what the client sent."""
    first, *pieces = texts(body).split(BLOCK_OPENS)
    return first + "".join(piece.partition(BLOCK_CLOSES)[2] for piece in pieces)
