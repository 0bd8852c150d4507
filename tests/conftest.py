"""What every test may ask for: an upstream that follows a script, the real proxy in front of it, the real model."""

from __future__ import annotations

import gc
import json
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import structlog
from hypothesis import settings
from palimpsest.domain import Json
from palimpsest.domain.errors import MemoryFault
from palimpsest.evaluation.scripted import ScriptedUpstream
from palimpsest.memory.embedding.model import install
from palimpsest.settings.policy import ModelPolicy
from palimpsest.store.engine import Engine
from palimpsest.store.engine.dialect import SQLITE
from palimpsest.store.engine.postgres import database as postgres
from palimpsest.store.engine.sqlite.database import Database
from palimpsest.store.journal import Journal
from palimpsest.upstream.passthrough import EXTRA_AUTHORITIES

from tests.databases import copied, database_file
from tests.examples import QUICK, QUICK_EXAMPLES
from tests.fork_server import ForkServer
from tests.remembered import Past
from tests.running import Conversation, Proxy, upstream_on_a_thread
from tests.servers import Server, made, running_server

GC_OBJECTS = 50_000  # made since the last look for garbage
TMPFS_BYTES = 12 << 20
# Long files that would begin last, or nearly so
LONGEST = (
    *("test_endure.py", "test_parity.py", "test_growth.py", "test_pipeline_real_model.py"),
    *("test_network.py", "test_replay.py", "test_via_litellm.py"),
)
TRACED = ("tests/core/", "tests/wire/", "tests/contract/test_wires.py")
SLOW_MODULE = re.compile(r"^pytestmark = \[?pytest\.mark\.slow\b", re.M)

settings.register_profile("default", deadline=None)  # what a test asserts must not depend on the machine's speed
settings.register_profile(QUICK, settings.get_profile("default"), max_examples=QUICK_EXAMPLES)
settings.load_profile("default")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--store", choices=("sqlite", "postgres"), default="sqlite", help="the engine behind the fixture `database`"
    )
    parser.addoption("--statements", help="a folder for the statements that the tests gave to the database, as JSON")


def pytest_sessionfinish(session: pytest.Session) -> None:
    if folder := session.config.option.statements:
        Path(folder, f"{os.getpid()}.json").write_text(json.dumps(list(SQLITE)))


def pytest_configure() -> None:
    """
    Thousands of tests stay until the end: looking through them for garbage took a quarter of a quick run's start.

    Nobody but our own servers is spoken to, and each proxy would read all authorities anew for one more. Where nothing
    else is configured, a traceback is logged with the values of all variables, which takes a second.
    """
    plain = structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
    structlog.configure(processors=[*structlog.get_config()["processors"][:-1], plain])
    gc.set_threshold(GC_OBJECTS)
    os.environ.pop(EXTRA_AUTHORITIES, None)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """
    Begins with the longest files: where files are shared out, none of them is to be alone in the end.

    What `scripts/coverage` runs is marked.
    """
    items.sort(key=lambda item: item.path.name not in LONGEST)
    for item in items:
        if item.nodeid.startswith(TRACED):
            item.add_marker("traced")


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.config.option.store != "sqlite" and item.get_closest_marker("sqlite"):
        pytest.skip("is about SQLite itself")


def pytest_collection_finish(session: pytest.Session) -> None:
    gc.freeze()
    if (trace := sys.gettrace()) is not None:
        session.config.pluginmanager.register(Traced(trace))
        sys.settrace(None)


class Traced:
    """Lets tests and their fixtures be traced, and not pytest around them, where half of the time goes by."""

    def __init__(self, trace: Callable[..., Any]) -> None:
        self._trace = trace

    @pytest.hookimpl(wrapper=True)
    def pytest_pyfunc_call(self) -> Generator[None, object, object]:
        sys.settrace(self._trace)
        try:
            return (yield)
        finally:
            sys.settrace(None)

    pytest_fixture_setup = pytest_pyfunc_call


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """
    Leaves modules of slow tests unread in a quick run, and those without one in a slow run.

    Importing the clients that slow tests drive takes ten seconds, making thousands of tests that are not run as many.
    """
    wanted = config.option.markexpr
    if collection_path.suffix != ".py" or not wanted.startswith(("not slow", "slow")):
        return None
    is_left = SLOW_MODULE.search if wanted.startswith("not slow") else lambda text: "pytest.mark.slow" not in text
    return True if is_left(collection_path.read_text()) else None


@pytest.fixture(scope="session")
def shared_upstream() -> Iterator[ScriptedUpstream]:
    with upstream_on_a_thread() as upstream:
        yield upstream


@pytest.fixture
def upstream(shared_upstream: ScriptedUpstream) -> ScriptedUpstream:
    """The upstream behind the shared proxy, with nothing received, no script and the usual models."""
    shared_upstream.received.clear()
    shared_upstream.abandoned = 0
    shared_upstream.windows.clear()
    shared_upstream.play()
    return shared_upstream


@pytest.fixture(scope="session")
def proxy(shared_upstream: ScriptedUpstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    """One running proxy with default policy, shared: a key of its own keeps each test apart."""
    with Proxy(tmp_path_factory.mktemp("shared") / "data", shared_upstream.url) as running:
        yield running


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of an empty database, to be copied: making its tables takes longer than most tests do."""
    return database_file(tmp_path_factory.mktemp("empty"))


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """A PostgreSQL server, with an empty database of ours that is called `empty`."""
    with running_server() as server:
        server.psql("CREATE DATABASE empty")
        made(server.url("empty"))
        yield server


@pytest.fixture
def own_server() -> Iterator[Server]:
    """A server that a test may stop."""
    with running_server() as server:
        yield server


@pytest.fixture(scope="session", autouse=True)
def fork_server() -> Iterator[None]:
    """Lets proxies start from one that is loaded."""
    Proxy.fork_server = ForkServer()
    yield
    Proxy.fork_server.close()
    Proxy.fork_server = None


@pytest.fixture
def unforked(fork_server: None) -> Iterator[None]:
    """Lets proxies of a test start anew, with processes that may be suspended and are children of each other."""
    forking, Proxy.fork_server = Proxy.fork_server, None
    yield
    Proxy.fork_server = forking


@pytest.fixture
def words_only() -> Iterator[None]:
    """Lets proxies of a test start without the embedding model: they take half as long, and recall by words alone."""
    Proxy.variables = {"PALIMPSEST_MODEL__CACHE": "/nonexistent"}
    yield
    Proxy.variables = {}


@pytest.fixture(scope="session", autouse=True)
def store_of_proxies(request: pytest.FixtureRequest) -> Iterator[None]:
    """Lets proxies keep their memory where `--store` says."""
    if request.config.getoption("--store") == "postgres":
        server: Server = request.getfixturevalue("server")
        Proxy.new_database = lambda: server.new_database("empty")
    yield
    Proxy.new_database = None


@pytest.fixture
async def database(request: pytest.FixtureRequest, tmp_path: Path, empty_database: Path) -> AsyncIterator[Engine]:
    """An open database that is empty."""
    database: Engine
    if request.config.getoption("--store") == "postgres":
        server: Server = request.getfixturevalue("server")
        database = postgres.Database(server.new_database("empty"))
    else:
        database = Database(copied(empty_database, tmp_path))
    await database.open()
    yield database
    await database.close()
    if isinstance(database, postgres.Database):
        server.drop(database.url)


@pytest.fixture
def journal(database: Database) -> Journal:
    return Journal(database)


@pytest.fixture
def past(database: Database) -> Past:
    return Past(database)


@pytest.fixture
def key() -> str:
    """A credential that nobody else uses, hence a tenant of its own."""
    return f"sk-{uuid4().hex}"


@pytest.fixture
def own_proxy(upstream: ScriptedUpstream, tmp_path: Path) -> Iterator[Proxy]:
    """A proxy that a test may break; not yet started."""
    running = Proxy(tmp_path / "data", upstream.url)
    yield running
    running.close()


@pytest.fixture
def conversation(proxy: Proxy, upstream: ScriptedUpstream, key: str) -> Conversation:
    """A plain client with a tenant of its own; every answer repeats how many messages it was sent."""

    def count(body: Json) -> str:
        return f"I read {len(body['messages'])} messages and will keep all of them in mind for what comes next."

    upstream.script = count
    return Conversation(proxy, key)


@pytest.fixture(scope="session")
def model_folder() -> Path:
    """The real embedding model, fetched once into this user's cache."""
    try:
        return install(ModelPolicy(), lambda text: None)
    except MemoryFault as fault:
        pytest.skip(f"needs the embedding model: {fault}")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of a few megabytes."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={TMPFS_BYTES}", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("needs root, and the right to mount a tmpfs")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)
