"""What a page of another site tries in a real browser reaches nobody; a page of this machine is served."""

from __future__ import annotations

import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from palimpsest.evaluation.scripted import ScriptedUpstream

from tests.edge.browser import Site
from tests.edge.test_web_pages import HELD_KEY, PERSONAL
from tests.running import Proxy, rows

pytestmark = pytest.mark.slow

# Every way that needs nobody's leave, one after the other; each says how it ended, as far as the page can see.
TRIES = """
<iframe name=sink></iframe><form id=form target=sink method=post enctype=text/plain action="URL/v1/chat/completions">
<input name='{"model":"m","messages":[{"role":"user","content":"POISON form"}],"x":"' value='"}'></form>
<script>
const body = how => JSON.stringify({model: "m", messages: [{role: "user", content: "POISON " + how}]})
const ended = promise => promise.then(answer => answer.type + " " + answer.status, () => "failed")
const loaded = (element, act) => new Promise(done => { element.onload = element.onerror = done; act() })
const asked = (how, settings) =>
    ended(fetch("URL/v1/chat/completions", {method: "POST", body: body(how), ...settings}))
async function all() {
    const told = {}
    await loaded(document.querySelector("iframe"), () => document.getElementById("form").submit())
    told.no_cors = await asked("no-cors", {mode: "no-cors", headers: {"content-type": "text/plain"}})
    told.cors = await asked("cors", {headers: {"content-type": "text/plain"}})
    told.json = await asked("json", {headers: {"content-type": "application/json"}})
    told.own_header = await asked("header", {headers: {"x-palimpsest-user": "me"}})
    told.list = await ended(fetch("URL/v1/models", {mode: "no-cors"}))
    told.metrics = await ended(fetch("URL/metrics"))
    navigator.sendBeacon("URL/v1/chat/completions", body("beacon"))
    const image = new Image()
    await loaded(image, () => { image.src = "URL/v1/files" })
    const frame = document.createElement("iframe")
    frame.sandbox = "allow-scripts"
    frame.srcdoc = `<script>fetch("URL/v1/chat/completions", {method: "POST", mode: "no-cors",
        body: '${body("frame")}'}).finally(() => parent.postMessage("done", "*"))<\\/script>`
    await new Promise(done => { onmessage = done; document.body.append(frame) })
    told.socket = await new Promise(done => {
        const socket = new WebSocket("ws://ADDRESS/v1/realtime?model=m")
        socket.onopen = () => done("open")
        socket.onerror = () => done("failed")
    })
    return told
}
onload = () => all().then(report, error => report({error: String(error)}))
</script>
"""

# What a page can do once its own name leads to the proxy.
REBOUND = """
<script>
const ask = (path, settings) => fetch(path, settings).then(answer => answer.text(), () => "failed")
onload = async () => report({
    chat: await ask("/v1/chat/completions", {
        method: "POST",
        headers: {"content-type": "application/json"},
        body: JSON.stringify({model: "m", messages: [{role: "user", content: "POISON rebound"}]}),
    }),
    models: await ask("/v1/models"),
    metrics: await ask("/metrics"),
    memory: await ask("/memory/v1/stats"),
})
</script>
"""


@pytest.fixture
def personal(upstream: ScriptedUpstream, tmp_path: Path) -> Iterator[Proxy]:
    """Holds a key, and has one memory for whoever asks."""
    upstream.script = lambda body: "SECRET answer"
    with Proxy(tmp_path / "data", upstream.url, PERSONAL, HELD=HELD_KEY) as running:
        yield running


def tries(proxy: Proxy) -> str:
    address = f"127.0.0.1:{proxy.port}"
    return TRIES.replace("URL", f"http://{address}").replace("ADDRESS", address)


def test_a_page_of_another_site_reaches_nothing(personal: Proxy, upstream: ScriptedUpstream, tmp_path: Path) -> None:
    with Site(tries(personal)).served() as site:
        told = site.visited(f"http://evil.example:{site.port}/", tmp_path / "profile")
    opaque = "opaque 0"  # an answer that the page may not look at: the refusal
    expected = dict.fromkeys(("cors", "json", "own_header", "metrics", "socket"), "failed")
    assert told == expected | {"no_cors": opaque, "list": opaque}
    assert upstream.received == []
    assert rows(personal.data, "SELECT count(*) FROM turn") == [(0,)]
    assert personal.metric("palimpsest_refused_total", kind="origin") >= 8
    assert personal.metric("palimpsest_refused_total", kind="site") >= 2


def test_a_page_of_this_machine_is_served(personal: Proxy, upstream: ScriptedUpstream, tmp_path: Path) -> None:
    """The same tries: it is the origin that decides. What comes without one is refused: frame, image, list."""
    with Site(tries(personal)).served() as site:
        told = site.visited(f"http://localhost:{site.port}/", tmp_path / "profile")
    assert told["no_cors"] == "opaque 0"
    texts = {r.body.decode().rpartition("POISON ")[2].partition('"')[0] for r in upstream.received if r.body}
    assert texts == {"form", "no-cors", "cors", "beacon"}
    assert {r.path for r in upstream.received} == {"/v1/chat/completions", "/v1/realtime?model=m"}


def test_a_page_whose_name_is_made_to_lead_here_reads_nothing(
    personal: Proxy, upstream: ScriptedUpstream, tmp_path: Path
) -> None:
    with Site(REBOUND).served() as site, rebinding(site.port, personal.port) as port:
        told = site.visited(f"http://evil.example:{port}/", tmp_path / "profile")
    assert set(told) == {"chat", "models", "metrics", "memory"}
    assert all("evil.example" in answer and "error" in answer for answer in told.values())
    assert upstream.received == []
    assert rows(personal.data, "SELECT count(*) FROM turn") == [(0,)]


@contextmanager
def rebinding(site_port: int, proxy_port: int) -> Iterator[int]:
    """
    A port behind which stands the site until its page was served, and the proxy from then on.

    So it looks, to the browser and to the proxy, when the name of the site changes its address.
    """
    first = threading.Semaphore(1)

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            asked = self.request.recv(1 << 16)
            is_first = asked.startswith(b"GET / ") and first.acquire(blocking=False)
            with socket.create_connection(("127.0.0.1", site_port if is_first else proxy_port)) as there:
                there.sendall(asked)
                back = threading.Thread(target=_copy, args=(there, self.request))
                back.start()
                _copy(self.request, there)
                back.join()

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


def _copy(source: socket.socket, sink: socket.socket) -> None:
    """All bytes, and the end of them."""
    try:
        while data := source.recv(1 << 16):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        return  # the other side is gone
