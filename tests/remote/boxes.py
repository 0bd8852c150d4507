"""Two machines on one: a box that keeps the memory, and laptops whose proxies keep theirs there."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import orjson
import trustme
from palimpsest.domain import Json

from tests.running import PATIENCE_SECONDS, Proxy, free_port, request, until

NOWHERE = "http://127.0.0.1:9"  # of the box: it forwards nothing
CHUNK_BYTES = 1 << 16
UNAUTHORIZED = 401  # what a box answers to a key that it does not know


def box(folder: Path) -> Proxy:
    """The machine that keeps the memory, not yet started."""
    return Proxy(folder / "box", NOWHERE, {"tenants": {"require_key": True}})


def key_of(box: Proxy, name: str = "ada") -> str:
    """A new key of a running box, which knows it by then: that takes up to a second."""
    body = orjson.dumps({"name": name})
    made = request(box.port, "POST", "/memory/v1/keys", body, {"content-type": "application/json"})
    key: str = made.json["key"]
    shown = {"authorization": f"Bearer {key}"}
    until(
        lambda: request(box.port, "GET", "/v1/models", headers=shown).status != UNAUTHORIZED, "the box to know the key"
    )
    return key


def laptop(folder: Path, upstream_url: str, server_url: str, key: str, **server: object) -> Proxy:
    """A proxy whose memory is at that address, not yet started."""
    file = folder / "key"
    file.write_text(key + "\n")
    told: Json = {"url": server_url, "key_file": str(file)} | server
    proxy = Proxy(folder / "laptop", upstream_url, {"server": told})
    proxy.env.pop("PALIMPSEST_STORE__URL", None)
    return proxy


def root_of(box: Proxy) -> str:
    return f"http://127.0.0.1:{box.port}"


def is_linked(laptop: Proxy) -> bool:
    """Whether the box has everything, and is asked."""
    ready = laptop.ready()
    return bool(ready["ready"] and ready["pending"] == 0)


def settle(laptop: Proxy, box: Proxy) -> None:
    """Wait until the box has everything, and finds it."""
    until(lambda: is_linked(laptop), f"the box to have it all: {laptop.ready()}")
    box.settle()


@contextmanager
def behind_tls(port: int, folder: Path) -> Iterator[tuple[str, Path]]:
    """A reverse proxy that speaks TLS in front of a port: its URL, and the certificate of its authority."""
    authority = trustme.CA()
    certificate = folder / "authority.pem"
    authority.cert_pem.write_to_path(str(certificate))
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("localhost").configure_cert(tls)
    loop, own_port, over = asyncio.new_event_loop(), free_port(), asyncio.Event()
    up = threading.Event()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            onward, back = await asyncio.open_connection("127.0.0.1", port)
            await asyncio.gather(_pass(reader, back), _pass(onward, writer))

    async def serve() -> None:
        async with await asyncio.start_server(accept, "127.0.0.1", own_port, ssl=tls):
            up.set()
            await over.wait()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    try:
        assert up.wait(PATIENCE_SECONDS)
        yield f"https://localhost:{own_port}", certificate
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join()
        loop.close()


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(CHUNK_BYTES):
            writer.write(data)
            await writer.drain()
    writer.close()
