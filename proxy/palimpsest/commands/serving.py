"""
Serving: uvicorn in one process, or in several that share port, policy, database and metrics.

The port is opened here, or was opened by who starts the proxy and keeps it open while one process follows another
(socket activation, as by systemd).
"""

from __future__ import annotations

import errno
import multiprocessing
import os
import shutil
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager, suppress
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread

import structlog
import uvicorn
from starlette.types import ASGIApp
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess

from palimpsest import __version__
from palimpsest.commands.own_address import address, leads_here, try_listening
from palimpsest.domain.errors import PolicyError
from palimpsest.edge.hangup import Terminal
from palimpsest.edge.room import raise_limit
from palimpsest.settings import load
from palimpsest.settings.load import without_memory
from palimpsest.settings.policy import ListenPolicy, Policy, UpstreamPolicy
from palimpsest.settings.source import NO_SOURCE, Source
from palimpsest.store.data_dir import make_folder
from palimpsest.store.operation.secret import load_secret
from palimpsest.telemetry import logs

METRICS_FOLDER_ENV = "PROMETHEUS_MULTIPROC_DIR"  # read by prometheus_client when a worker imports it
IDLE_CONNECTION_SECONDS = 75  # longer than clients keep one for reuse, so that they and not we close it
WORKER_START_SECONDS = 30  # a worker on a busy machine takes seconds to start; uvicorn would replace it after 5
FIRST_SOCKET = 3  # descriptor of the first socket that is handed over: man sd_listen_fds
PARENT_LOOK_SECONDS = 1.0  # between looks whether the wrap that this proxy serves was killed: one system call

log = structlog.get_logger()


def serve(policy: Policy, source: Source = NO_SOURCE) -> None:
    """
    Run until SIGTERM or SIGINT; both end streams gracefully and the process with status 0.

    Args:
        source: what the policy is read from anew while requests run.

    Raises:
        PolicyError: the address, an upstream, the data folder, the secret or the admin token cannot be used.
    """
    logs.configure(policy.log)
    raise_limit()
    load.admin_token(os.environ)
    make_folder(policy.data)
    load_secret(policy.data, os.environ)
    handed = _handed_over(os.environ)
    listen = _at_socket(policy.listen, handed) if handed else _claimed(policy.listen)
    policy = policy.model_copy(update={"listen": listen})
    if own := next((upstream.url for upstream in policy.upstreams if leads_here(upstream.url, listen)), ""):
        raise PolicyError(f"upstreams: {own} is the proxy's own address, so requests would never end; name a provider")
    os.environ.update({**load.hand_over(policy), **source.hand_over()})
    for stop in (signal.SIGTERM, signal.SIGINT):  # uvicorn raises the signal again when all is done; that is no failure
        signal.signal(stop, lambda _signal, _frame: sys.exit(0))
    if wrapper := os.environ.get(load.WRAPPED_BY_ENV):
        Thread(target=_end_with, args=(int(wrapper),), daemon=True).start()
    _introduce(policy)
    if policy.listen.workers == 1:
        _run(policy.listen, handed)
        return
    with TemporaryDirectory(prefix="palimpsest-metrics-") as folder, TemporaryDirectory(prefix="palimpsest-") as own:
        os.environ[METRICS_FOLDER_ENV] = folder
        os.environ[load.POLICY_FILE_ENV] = str(Path(own) / "policy.json")
        _run(policy.listen, handed)


def worker() -> ASGIApp:
    """The app of one process; uvicorn calls this by name in each."""
    if hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until the app listens to it; it would end the process
    policy = load.handed_over(os.environ)
    logs.configure(policy.log)
    if parent := multiprocessing.parent_process():
        Thread(target=_end_behind, args=(parent,), daemon=True).start()
    from palimpsest.app import create_app  # here, so that a start that is refused is refused at once

    return create_app(policy, archives_apart=sys.platform != "win32")  # there a process cannot be given a socket


class Workers(Multiprocess):
    """The supervisor of several processes; SIGHUP goes to each of them, where uvicorn's would replace them all."""

    def __init__(self, config: uvicorn.Config, sockets: list[socket.socket]) -> None:
        super().__init__(config, sockets)
        self._terminal = Terminal()

    def keep_subprocess_alive(self) -> None:
        """Replace workers that have ended; one that does so while it is asked how it is, at once."""
        for process in self.processes:
            process.child_conn.close()  # its own end: while we hold that too, nobody tells us that it is gone
        super().keep_subprocess_alive()

    def handle_hup(self) -> None:
        """Pass SIGHUP on to all workers, and stop where the terminal is gone."""
        if self._terminal.is_gone:
            self.should_exit.set()
        for process in self.processes:
            if process.pid is not None and process.process.is_alive():
                os.kill(process.pid, signal.SIGHUP)


def _run(listen: ListenPolicy, handed: int | None) -> None:
    """Run uvicorn in one process, or in several workers under a supervisor."""
    config = uvicorn.Config(
        f"{__name__}:{worker.__name__}",
        factory=True,
        host=listen.host,
        port=listen.port,
        fd=handed,
        workers=listen.workers,
        loop="palimpsest.edge.loop:Loop" if sys.platform != "win32" else "asyncio",
        http="palimpsest.edge.http:Connection",
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,  # its lines hold query strings
        server_header=False,  # an answer carries the upstream's headers, not ours beside them
        date_header=False,
        proxy_headers=False,
        timeout_keep_alive=IDLE_CONNECTION_SECONDS,
        timeout_graceful_shutdown=listen.shutdown_seconds,
        timeout_worker_healthcheck=WORKER_START_SECONDS,
    )
    if listen.workers > 1:
        Workers(config, [config.bind_socket()]).run()
        return
    config.load_app()
    server = uvicorn.Server(config)
    with suppress(KeyboardInterrupt):
        server.run()
    if not server.started:
        sys.exit(STARTUP_FAILURE)


def _introduce(policy: Policy) -> None:
    """Log what the operator needs next: the data folder, the upstreams, and the settings of clients."""
    listen = policy.listen
    fields = {"version": __version__, "folder": str(policy.data), "workers": listen.workers}
    log.info("starting", host=listen.host, port=listen.port, **fields)
    for upstream in policy.upstreams:
        log.info(f"{_requests_of(upstream)} go to {_destination(upstream)}", upstream=upstream.name)
    if os.environ.get("PALIMPSEST_UPSTREAM") == "":
        log.info("PALIMPSEST_UPSTREAM is empty, which counts as not set")
    for role, assistant in policy.models.items():
        whom = f"upstream {assistant.upstream}" if assistant.upstream else assistant.url or "its provider"
        log.info(f"what memory asks as {role} goes to {assistant.model} at {whom}")
    url = address(listen)
    log.info(f"for OpenAI clients: export OPENAI_BASE_URL={url}/v1")
    log.info(f"for Anthropic clients: export ANTHROPIC_BASE_URL={url}")
    if policy.page.enabled:
        log.info(f"what memory did, in a browser: {url}/memory/")
    command = Path(sys.executable).with_name("palimpsest")
    if shutil.which(command.name) is None and command.exists():
        log.info(f"for other commands: alias {command.name}={command}")


def _requests_of(upstream: UpstreamPolicy) -> str:
    whose = {"openai": "requests of OpenAI's API", "anthropic": "requests of Anthropic's API", "any": "requests"}
    return whose[upstream.wire] + ("" if upstream.models == ("*",) else f" for {', '.join(upstream.models)}")


def _destination(upstream: UpstreamPolicy) -> str:
    if not upstream.litellm:
        return upstream.url
    return f"{upstream.litellm} through LiteLLM" + (f", at {upstream.url}" if upstream.url else "")


def _claimed(listen: ListenPolicy) -> ListenPolicy:
    """The address with its port, which is bound once to try it: workers would fail without saying why."""
    try:
        return listen.model_copy(update={"port": try_listening(listen)})
    except OSError as cause:
        reason = (cause.strerror or str(cause)).partition(" (")[0].lower()
        if cause.errno in (errno.EADDRNOTAVAIL, socket.EAI_NONAME, socket.EAI_AGAIN):
            hint = "choose an address of this machine as --host"
            raise PolicyError(f"listen.host: {listen.host}: cannot listen there: {reason}; {hint}") from cause
        hint = "stop what is listening there (perhaps palimpsest itself), or choose another --port"
        raise PolicyError(f"listen.port: {listen.port}: cannot listen on {listen.host}: {reason}; {hint}") from cause


def _handed_over(environment: MutableMapping[str, str]) -> int | None:
    """The descriptor of the socket that this process was started with, whose variables no child is to inherit; None."""
    addressee, count = environment.pop("LISTEN_PID", ""), environment.pop("LISTEN_FDS", "")
    environment.pop("LISTEN_FDNAMES", "")
    if addressee != str(os.getpid()):
        return None
    if count != "1":
        raise PolicyError(f"LISTEN_FDS: {count}: the proxy listens at one address: hand over one socket")
    return FIRST_SOCKET


def _at_socket(listen: ListenPolicy, descriptor: int) -> ListenPolicy:
    """The address of a socket that was handed over, whatever the settings say."""
    try:
        with socket.socket(fileno=os.dup(descriptor)) as listening:
            host, port, *_ = listening.getsockname()
    except (OSError, ValueError) as cause:
        raise PolicyError(f"LISTEN_FDS: the socket that was handed over is not an internet socket: {cause}") from cause
    return listen.model_copy(update={"host": host, "port": port})


def _end_behind(parent: BaseProcess) -> None:
    """Stop a worker whose parent was killed, so that it does not keep the port from the next start."""
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)


def _end_with(parent: int) -> None:
    """Stop when the process that started this one has ended, for whatever reason."""
    while os.getppid() == parent:
        time.sleep(PARENT_LOOK_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)


@contextmanager
def policy_anyway(
    load: Callable[[], Policy], load_bare: Callable[[], Policy], source: Source, environment: Mapping[str, str]
) -> Iterator[tuple[Policy, Source]]:
    """
    The policy and its source; if it is wrong, one without memory, until it is mended.

    What is wrong goes to standard error. A configuration that is mended later takes effect without a restart; a data
    folder does not, as its database would have to be opened.

    Args:
        load: the policy as it is configured.
        load_bare: the same without what only memory needs; see `load.load_bare`.

    Raises:
        PolicyError: where requests go is wrong as well.
    """
    try:
        policy = load()
    except PolicyError as wrong:
        _say(wrong)
        policy = load_bare()
    try:
        make_folder(policy.data)
        load_secret(policy.data, environment)
    except PolicyError as wrong:
        _say(wrong)
        with TemporaryDirectory(prefix="palimpsest-") as folder:
            yield without_memory(policy).model_copy(update={"data": Path(folder)}), NO_SOURCE
    else:
        yield policy, source


def _say(wrong: PolicyError) -> None:
    sys.stderr.write(f"palimpsest: {wrong}\npalimpsest: until that is fixed, requests pass without memory\n")
