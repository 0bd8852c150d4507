"""
What one turn costs the serving processes: processor time and requests per second of conversations that grow.

Each of several clients keeps one conversation and sends it whole, one turn longer than before, as soon as the answer to
the last one is there. The bodies are made beforehand, so that making them loads nothing while it is measured.
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from urllib.parse import urlsplit

from talk import Talk, reply_to

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
# in the command lines of processes that serve nobody
EMBEDDER = b"palimpsest.memory.embedding.embedding_worker"
ARCHIVE = b"palimpsest.memory.recording.archive_worker"
RECEIVE_BYTES = 65536
QUIET_SECONDS = 1.0  # between looks whether the servers are at rest: what these cost is measured, too


@dataclass(frozen=True)
class Load:
    """Conversations of one size. Each begins with `first` messages and grows by two a request."""

    clients: int
    first: int  # messages of the request that begins it, which is not measured
    turns: int

    def bodies(self, cycle: int) -> list[list[bytes]]:
        """For each client the requests that it sends in one round, one after the other; no two rounds share any."""
        return [list(self._bodies(cycle * self.clients + client)) for client in range(self.clients)]

    def _bodies(self, number: int) -> Iterator[bytes]:
        talk = Talk(number, self.first)
        talk.requests = 0
        for _ in range(self.turns + 1):
            yield json.dumps({"model": "gpt-4o", "messages": talk.messages}).encode()
            talk.hear(reply_to(talk.messages[-1]["content"]))
            talk.append()


@dataclass(frozen=True)
class Cost:
    """Of one server under one load."""

    requests: int
    seconds: float  # from the first request to the last answer
    processor_seconds: float  # of the serving processes, until what followed from the requests was done too
    archive_seconds: float  # as much, of the processes that archive and index, without the embedding

    @property
    def processor_ms(self) -> float:
        return 1000 * self.processor_seconds / self.requests

    @property
    def all_processor_ms(self) -> float:
        return 1000 * (self.processor_seconds + self.archive_seconds) / self.requests

    @property
    def per_second(self) -> float:
        return self.requests / self.seconds


def total(costs: Sequence[Cost]) -> Cost:
    return Cost(
        sum(cost.requests for cost in costs),
        sum(cost.seconds for cost in costs),
        sum(cost.processor_seconds for cost in costs),
        sum(cost.archive_seconds for cost in costs),
    )


def measure(url: str, process: int, bodies: list[list[bytes]], is_at_rest: object) -> Cost:
    """
    Send the first request of each client, wait until the server is at rest, and measure the others.

    Args:
        is_at_rest: called again and again until it is true.
    """
    send(url, [each[:1] for each in bodies])
    rest(is_at_rest)
    before, started = _seconds(process), time.perf_counter()
    send(url, [each[1:] for each in bodies])
    seconds = time.perf_counter() - started
    rest(is_at_rest)
    serving, archive = (now - then for now, then in zip(_seconds(process), before, strict=True))
    return Cost(sum(len(each) - 1 for each in bodies), seconds, serving, archive)


def rest(is_at_rest: object) -> None:
    assert callable(is_at_rest)
    while not is_at_rest():
        time.sleep(QUIET_SECONDS)


def send(url: str, bodies: list[list[bytes]]) -> None:
    """Each client on a thread and a connection of its own, as fast as it is answered."""
    failures: list[str] = []
    threads = [Thread(target=_client, args=(url, each, failures)) for each in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise SystemExit(f"requests to {url} failed: {failures[0]}")


def _client(url: str, bodies: list[bytes], failures: list[str]) -> None:
    where = urlsplit(url)
    try:
        with socket.create_connection((where.hostname, where.port)) as server:
            server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for body in bodies:
                head = (
                    f"POST /v1/chat/completions HTTP/1.1\r\nhost: {where.netloc}\r\ncontent-type: application/json\r\n"
                    f"authorization: Bearer sk-bench\r\ncontent-length: {len(body)}\r\n\r\n"
                )
                server.sendall(head.encode() + body)
                if status := _refused(server):
                    failures.append(status)
                    return
    except OSError as failure:
        failures.append(str(failure))


def _refused(server: socket.socket) -> str:
    """Read one answer; what it says where it is no success."""
    heard = b""
    while (end := heard.find(b"\r\n\r\n")) < 0:
        heard += _received(server)
    lines = heard[:end].lower().split(b"\r\n")
    length = next(int(line.partition(b":")[2]) for line in lines if line.startswith(b"content-length:"))
    while len(heard) < end + 4 + length:
        heard += _received(server)
    return "" if b" 200 " in lines[0] + b" " else heard.decode(errors="replace")


def _received(server: socket.socket) -> bytes:
    if not (data := server.recv(RECEIVE_BYTES)):
        raise ConnectionError("the server hung up")
    return data


def _seconds(process: int) -> tuple[float, float]:
    """Processor time of a server and its workers; and that of their archive processes."""
    serving, archive = 0.0, 0.0
    for one, command in _family(process):
        if ARCHIVE in command:
            archive += _own_seconds(one)
        else:
            serving += _own_seconds(one)
    return serving, archive


def _own_seconds(process: int) -> float:
    after_name = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(after_name[11]) + int(after_name[12])) / TICKS_PER_SECOND  # user and system time


def _family(process: int) -> Iterator[tuple[int, bytes]]:
    """A process and all that it started, but for those that embed, each with its command line."""
    command = Path(f"/proc/{process}/cmdline").read_bytes()
    if EMBEDDER in command:
        return
    yield process, command
    for task in Path(f"/proc/{process}/task").iterdir():
        for child in (task / "children").read_text().split():
            yield from _family(int(child))
