"""
kill -9 at random moments, of a worker, of what archives for it, or of all processes at once, while clients are at work.

After each round clients rest, and the ledger of what they received whole is compared with the disk: nothing lost,
nothing twice, the file undamaged. Meanwhile backups and erasures are made, and killed as well. With `--last-byte`, each
kill comes at once after the last byte of an answer instead. With `--archive`, what archives is killed every two seconds
under long conversations without a pause, and answers wait for their commits no longer than by default.
"""

from __future__ import annotations

import argparse
import http.client
import os
import random
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import orjson
import psutil
from palimpsest.memory.recording.archive_process import MODULE
from palimpsest.settings.policy import Policy

from scripts.endure.chores import Chores
from scripts.endure.load import Client, Tally, answering, at_work, paused, phrase, seconds_since
from scripts.endure.table import Table, note
from tests.ledger import DONE, Audit, Ledger
from tests.running import PATIENCE_SECONDS, Answered, Proxy, as_headers, database, until, upstream_on_a_thread

KILLS = 1000
WORKERS = 2
CLIENTS = 8
ROUND_KILLS = 50
SHARE_OF_ALL = 0.2  # of kills that take every process at once, as the end of a container does
LONGEST_WAIT_SECONDS = 1.2  # between an answer and a kill
RETENTION = {"side_requests": "1m", "explain": "1m"}  # nothing that is in the ledger
ORPHAN_SECONDS = 5.0  # for what a killed process has started, to notice
ARCHIVE_SECONDS = 2.0  # between two kills of what archives
ARCHIVE_CLIENTS = 6
LONG_TALK_TURNS = 400  # 80 kB in the end, none of it compacted
LOOK_SECONDS = 0.01  # between looks whether there is another process


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--kills", type=int, default=KILLS, metavar="N", help=f"({KILLS})")
    parser.add_argument("--workers", type=int, default=WORKERS, metavar="N", help=f"of the proxy ({WORKERS})")
    parser.add_argument("--clients", type=int, default=CLIENTS, metavar="N", help=f"({CLIENTS})")
    parser.add_argument("--round", type=int, default=ROUND_KILLS, metavar="N", help=f"kills per round ({ROUND_KILLS})")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of the moments (1)")
    parser.add_argument("--words-only", action="store_true", help="without the embedding model: starts are faster")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="leave data and log there")
    parser.add_argument("--last-byte", action="store_true", help="kill at once after the last byte of an answer")
    parser.add_argument("--archive", action="store_true", help=f"kill what archives, every {ARCHIVE_SECONDS:g} s")


def run(arguments: argparse.Namespace) -> bool:
    with tempfile.TemporaryDirectory(prefix="palimpsest-kill-") as temporary, upstream_on_a_thread() as upstream:
        folder = arguments.keep or Path(temporary)
        answering(upstream)
        settings = {"listen": {"workers": arguments.workers}, "log": {"level": "warning"}, "retention": RETENTION}
        if arguments.archive:
            settings["memory"] = {"deadline_ms": Policy().memory.deadline_ms}
        env = {"PALIMPSEST_MODEL__CACHE": temporary} if arguments.words_only else {}
        proxy = Proxy(folder / "data", upstream.url, settings, **env)
        try:
            if arguments.last_byte:
                return _after_last_bytes(proxy, arguments.kills)
            if arguments.archive:
                return _of_archive(proxy, arguments)
            return _at_random(proxy, Chores(proxy, Path(temporary)), arguments)
        finally:
            kill_all(proxy)


def kill_all(proxy: Proxy) -> list[psutil.Process]:
    """Kill -9 of every process that serves, all at once; what else they had started, which has to end by itself."""
    assert proxy.process is not None
    if proxy.process.poll() is not None:
        return []
    supervisor = psutil.Process(proxy.process.pid)
    supervisor.suspend()  # else it might start another worker meanwhile, and that would keep the port
    serving = [supervisor.pid, *(child.pid for child in supervisor.children())]
    others = [process for process in supervisor.children(recursive=True) if process.pid not in serving]
    for pid in serving:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    proxy.process.wait(PATIENCE_SECONDS)
    until(lambda: _is_free(proxy.port), "the port to be free")  # a busy machine ends what was killed late
    return others


def _is_free(port: int) -> bool:
    """Whether a server could listen there."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def workers(proxy: Proxy) -> list[int]:
    """Process ids of the workers; of the proxy itself, where it is its own."""
    assert proxy.process is not None
    children = psutil.Process(proxy.process.pid).children()
    return [child.pid for child in children if _is_called(child, "spawn_main")] or [proxy.process.pid]


def archives(proxy: Proxy) -> list[int]:
    """Process ids of what archives for the workers."""
    assert proxy.process is not None
    started = psutil.Process(proxy.process.pid).children(recursive=True)
    return [process.pid for process in started if _is_called(process, MODULE)]


def _is_called(process: psutil.Process, name: str) -> bool:
    with suppress(psutil.Error):
        return any(name in word for word in process.cmdline())
    return False


def _at_random(proxy: Proxy, chores: Chores, arguments: argparse.Namespace) -> bool:
    chance, ledger, tally, started = random.Random(arguments.seed), Ledger(), Tally(), time.monotonic()
    clients = [Client(proxy, f"client-{n}", ledger, tally) for n in range(arguments.clients)]
    titles = ("kills", "of all", "answered", "cut", "refused", "lost", "twice", "split", "damage", "left", "seconds")
    table, is_clean, of_all, left_over = Table(titles), True, 0, list[psutil.Process]()
    proxy.start()
    with at_work([*clients, chores]):
        for number in range(1, arguments.kills + 1):
            before = len(ledger.entries)
            until(lambda before=before: len(ledger.entries) > before, "an answer since the kill before")
            time.sleep(chance.uniform(0, LONGEST_WAIT_SECONDS))
            if arguments.workers == 1 or chance.random() < SHARE_OF_ALL:
                of_all += 1
                left_over += kill_all(proxy)
                proxy.start()
            else:
                with suppress(ProcessLookupError):
                    os.kill(chance.choice([*workers(proxy), *archives(proxy)]), signal.SIGKILL)
            if number % arguments.round and number < arguments.kills:
                continue
            with paused(clients):
                proxy.settle(vectors=False)
                found = ledger.audit(proxy.data)
                _, orphans = psutil.wait_procs(left_over, ORPHAN_SECONDS)
            left_over = []
            failures = tally.counts["cut"], tally.counts["refused"]
            table.line((number, of_all, found.turns, *failures, *_numbers(found), len(orphans), seconds_since(started)))
            is_clean &= found.is_clean and not orphans and not tally.counts["failed"]
            _explain(found)
    note(f"beside these: {dict(sorted((tally.counts + chores.done).items()))}")
    for failure in chores.failures:
        note(failure)
    return is_clean and not chores.failures


def _numbers(found: Audit) -> tuple[int, int, int, int]:
    return len(found.lost), len(found.duplicated), len(found.split), len(found.integrity)


def _explain(found: Audit) -> None:
    for name in ("lost", "duplicated", "split", "integrity"):
        if listed := getattr(found, name):
            note(f"{name}: {', '.join(listed[:5])}")


def _of_archive(proxy: Proxy, arguments: argparse.Namespace) -> bool:
    """What archives is killed again and again; how long there was no other each time."""
    chance, ledger, tally, started = random.Random(arguments.seed), Ledger(), Tally(), time.monotonic()
    clients = [
        Client(
            *(proxy, f"client-{number}", ledger, tally),
            talk_turns=LONG_TALK_TURNS,
            compact_messages=2 * LONG_TALK_TURNS,
            think_seconds=0.0,
        )
        for number in range(ARCHIVE_CLIENTS)
    ]
    titles = ("kills", "answered", "metric", "lost", "twice", "split", "damage", "median s", "most s", "seconds")
    table, is_clean, gaps = Table(titles), True, list[float]()
    proxy.start()
    with at_work(clients):
        for number in range(1, arguments.kills + 1):
            time.sleep(ARCHIVE_SECONDS)
            gaps.append(_killed_archive(proxy, chance))
            if number % arguments.round and number < arguments.kills:
                continue
            with paused(clients):
                proxy.settle(vectors=False)
                found = ledger.audit(proxy.data)
            said_lost = int(proxy.metric("palimpsest_turns_lost_total"))
            gap = f"{statistics.median(gaps):.2f}", f"{max(gaps):.2f}"
            table.line((number, found.turns, said_lost, *_numbers(found), *gap, seconds_since(started)))
            is_clean &= found.is_clean and not said_lost and not tally.counts["failed"]
            _explain(found)
    note(f"beside these: {dict(sorted(tally.counts.items()))}")
    proxy.close()
    checked = subprocess.run([sys.executable, "-m", "palimpsest", "check", "--data", str(proxy.data)], check=False)
    return is_clean and checked.returncode == 0


def _killed_archive(proxy: Proxy, chance: random.Random) -> float:
    """Kill one of what archives; seconds until there is another that has opened the database."""
    victim = chance.choice(until(lambda: _archiving(proxy), "what archives"))
    others = {pid for pid in _archiving(proxy) if pid != victim}
    with suppress(ProcessLookupError):
        os.kill(victim, signal.SIGKILL)
    killed = time.monotonic()
    while not any(pid not in others and pid != victim for pid in _archiving(proxy)):
        time.sleep(LOOK_SECONDS)
    return time.monotonic() - killed


def _archiving(proxy: Proxy) -> list[int]:
    """Process ids of what archives and has opened the database."""
    return [pid for pid in archives(proxy) if _has_open(pid, str(database(proxy.data)))]


def _has_open(pid: int, path: str) -> bool:
    with suppress(psutil.Error):
        return any(file.path == path for file in psutil.Process(pid).open_files())
    return False


def _after_last_bytes(proxy: Proxy, kills: int) -> bool:
    """Streams and whole answers by turns; the next question of the same conversation follows the restart."""
    ledger, messages, started = Ledger(), list[dict[str, str]](), time.monotonic()
    for number in range(kills):
        proxy.start()
        asked = f"Question {number} of a long row: {phrase()}?"
        messages.append({"role": "user", "content": asked})
        answered = _killed_at_the_end(proxy, {"model": "gpt-4o", "messages": messages, "stream": number % 2 == 0})
        messages.append({"role": "assistant", "content": answered.text})
        ledger.write("talk", asked, answered)
    proxy.start()
    found = ledger.audit(proxy.data)
    table = Table(("kills", "answered", "lost", "twice", "split", "damage", "seconds"))
    table.line((kills, found.turns, *_numbers(found), seconds_since(started)))
    _explain(found)
    return found.is_clean


def _killed_at_the_end(proxy: Proxy, body: dict[str, object]) -> Answered:
    """One answer, whose last byte is followed by a kill with nothing in between."""
    connection = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=PATIENCE_SECONDS)
    serving = [*workers(proxy), proxy.process.pid] if proxy.process else []
    try:
        connection.request("POST", "/v1/chat/completions", orjson.dumps(body), as_headers("sk-one", {}))
        response = connection.getresponse()
        headers = {name.lower(): value for name, value in response.getheaders()}
        heard = b""
        if body["stream"]:
            while not heard.endswith(DONE):
                heard += response.read1()
        else:
            heard = response.read(int(headers["content-length"]))
        for pid in serving:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        until(lambda: proxy.process is None or proxy.process.poll() is not None, "the kill")
        return Answered(response.status, headers, heard)
    finally:
        connection.close()
