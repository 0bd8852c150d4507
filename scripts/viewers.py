#!/usr/bin/env python3
"""
How much longer a request takes while people look at the page: requests with viewers and without, by turns, in one run.

    scripts/viewers.py [--viewers N] [--rounds N]

It begins with the first page: how long it takes when nobody has looked yet, and from then on.

Half of the viewers read the live stream, the other half leave it unread; each opens it again when it ends.
"""

from __future__ import annotations

import argparse
import socket
import sys
import tempfile
import threading
from pathlib import Path
from statistics import median
from time import perf_counter

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from tests.running import Conversation, Proxy, upstream_on_a_thread  # noqa: E402

VIEWERS = 20
ROUNDS = 6  # of each: by turns, so that whatever else the machine does falls on both
REQUESTS = 300  # of one round: some seconds, in which streams end and are opened again
OF_CONVERSATION = 30
PAGES = 21  # of the first page: one cold, the others for a median
READ_BYTES = 1 << 16
ASKED = b"GET /memory/live HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n"
HANGING_SECONDS = 5.0  # longer than a stream is open


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--viewers", type=int, default=VIEWERS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, upstream_on_a_thread() as upstream:
        upstream.script = lambda _question: "Noted."
        with Proxy(Path(folder) / "data", f"{upstream.url}/v1") as proxy:
            seconds: dict[bool, list[float]] = {False: [], True: []}
            round_of(proxy)  # what is loaded late is loaded now
            cold, *warm = [seconds_of_page(proxy) for _ in range(PAGES)]
            for _ in range(given.rounds):
                seconds[False] += round_of(proxy)
                over = threading.Event()
                viewers = [
                    threading.Thread(target=view, args=(proxy.port, over, n % 2 == 0)) for n in range(given.viewers)
                ]
                for viewer in viewers:
                    viewer.start()
                seconds[True] += round_of(proxy)
                over.set()
                for viewer in viewers:
                    viewer.join()
    sys.stdout.write(
        f"first page: {1000 * cold:.0f} ms when it is first asked for, then {1000 * median(warm):.0f} ms\n"
    )
    for name, share in (("median", 0.5), ("95th percentile", 0.95)):
        bare, watched = (sorted(seconds[which])[int(share * len(seconds[which]))] for which in (False, True))
        sys.stdout.write(f"{name}: {watched / bare:.2f} times as long with {given.viewers} viewers\n")
    sys.stdout.write(f"{len(seconds[True])} requests of each; median without {1000 * median(seconds[False]):.1f} ms\n")
    return 0


def seconds_of_page(proxy: Proxy) -> float:
    """How long the first page takes."""
    started = perf_counter()
    answered = proxy.get("/memory/")
    taken = perf_counter() - started
    assert answered.status == 200, answered.status
    return taken


def round_of(proxy: Proxy) -> list[float]:
    """Seconds of each request."""
    taken = []
    for n in range(REQUESTS):
        if n % OF_CONVERSATION == 0:
            talk = Conversation(proxy, "sk-test")
        started = perf_counter()
        answered = talk.say(f"Request {n}.")
        taken.append(perf_counter() - started)
        assert answered.status == 200, answered.status
    return taken


def view(port: int, over: threading.Event, reads: bool) -> None:
    """Look at the live stream until it is over."""
    while not over.is_set():
        with socket.create_connection(("127.0.0.1", port)) as viewer:
            viewer.settimeout(1.0)
            viewer.sendall(ASKED)
            if not reads:
                over.wait(HANGING_SECONDS)
            while reads and not over.is_set():
                try:
                    if not viewer.recv(READ_BYTES):
                        break
                except TimeoutError:
                    continue


if __name__ == "__main__":
    sys.exit(main())
