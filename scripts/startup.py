#!/usr/bin/env python3
"""
The time of a start, from the command to the first 200 on `/healthz`, against a Python that imports what any such proxy
imports.

scripts/startup.py [--runs N]

The two take turns, so that whatever else the machine does slows both. Prints medians, and their ratio: times are of one
machine, ratios travel.
"""

from __future__ import annotations

import argparse
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from http.client import HTTPConnection, HTTPException
from pathlib import Path

ROOT = Path(__file__).parent.parent
RUNS = 15  # the median of these moves by a few hundredths
LOOK_SECONDS = 0.002  # between looks: a hundredth of what is measured
PATIENCE_SECONDS = 60.0
OK = 200
BARE = "import uvicorn, starlette.applications, aiohttp"
SETTINGS = {"memory on": "on", "memory off": "off"}


def bare_seconds() -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", BARE], check=True)
    return time.perf_counter() - started


def start_seconds(mode: str) -> float:
    """One start with default settings, in a folder of its own, on a port of its own."""
    port = free_port()
    quiet = {"PALIMPSEST_MEMORY__MODE": mode, "PALIMPSEST_MODEL__DOWNLOAD": "never", "PALIMPSEST_LOG__LEVEL": "error"}
    with tempfile.TemporaryDirectory(prefix="palimpsest-startup-") as data:
        command = [sys.executable, "-m", "palimpsest", "serve", "--port", str(port), "--data", data]
        started = time.perf_counter()
        with subprocess.Popen(command, cwd=ROOT, env=os.environ | quiet) as process:
            try:
                while not is_alive(port):
                    if process.poll() is not None or time.perf_counter() - started > PATIENCE_SECONDS:
                        raise SystemExit("the proxy did not start")
                    time.sleep(LOOK_SECONDS)
                return time.perf_counter() - started
            finally:
                process.terminate()


def is_alive(port: int) -> bool:
    connection = HTTPConnection("127.0.0.1", port)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status == OK
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
        return port


def main() -> None:
    parser = argparse.ArgumentParser(description="The time that a start takes.")
    parser.add_argument("--runs", type=int, default=RUNS, metavar="N", help=f"starts of each kind ({RUNS})")
    runs = parser.parse_args().runs
    bare: list[float] = []
    starts: dict[str, list[float]] = {name: [] for name in SETTINGS}
    for _ in range(runs + 1):
        bare.append(bare_seconds())
        for name, mode in SETTINGS.items():
            starts[name].append(start_seconds(mode))
    baseline = statistics.median(bare[1:])  # the first of each warms the disk's cache
    sys.stdout.write(f"bare imports  {baseline:.2f} s\n")
    for name, each in starts.items():
        median, slowest = statistics.median(each[1:]), max(each[1:])
        sys.stdout.write(f"{name:12}  {median:.2f} s, slowest {slowest:.2f} s: {median / baseline:.1f} times as long\n")


if __name__ == "__main__":
    main()
