"""Fetching one of fastembed's models from a model hub, on a real socket."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from palimpsest.memory.embedding.fastembed_download import CACHE_ENV
from palimpsest.settings.embedding_models import EmbeddingModel, embedding_model

from tests.running import ROOT
from tests.tiny_models import Hub, build_tiny_model, model_hub

pytestmark = pytest.mark.slow

NAME = "intfloat/multilingual-e5-large"  # its weights are in two files


@pytest.fixture
def model() -> EmbeddingModel:
    found = embedding_model(NAME)
    assert found is not None
    return found


@pytest.fixture
def hub(model: EmbeddingModel, tmp_path: Path) -> Iterator[Hub]:
    with model_hub() as hub:
        hub.add(model.source, build_tiny_model(model, tmp_path / "published"))
        yield hub


def download(hub: Hub, target: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    target.mkdir()
    command = [sys.executable, "-m", "palimpsest.memory.embedding.fastembed_download", NAME, str(target)]
    env = os.environ | {"HF_ENDPOINT": hub.url, "PYTHONPATH": str(ROOT / "proxy")} | environment
    return subprocess.run(command, env=env, capture_output=True, text=True)


def names(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}


def test_every_file_of_the_model_is_there_and_nothing_else(hub: Hub, model: EmbeddingModel, tmp_path: Path) -> None:
    done = download(hub, tmp_path / "fetched")
    assert done.returncode == 0, done.stderr
    assert names(tmp_path / "fetched") == {*model.every_file}
    assert not any(path.is_symlink() for path in (tmp_path / "fetched").rglob("*")), "the folder can be copied"


def test_a_model_in_fastembeds_own_cache_is_taken_from_there_without_the_hub(
    hub: Hub, model: EmbeddingModel, tmp_path: Path
) -> None:
    cache = {CACHE_ENV: str(tmp_path / "theirs")}
    assert download(hub, tmp_path / "first", **cache).returncode == 0
    hub.asked.clear()
    hub.refuses = True
    done = download(hub, tmp_path / "second", **cache)
    assert done.returncode == 0, done.stderr
    assert names(tmp_path / "second") == {*model.every_file}
    assert hub.asked == []


def test_a_hub_that_refuses_is_said_in_one_line(hub: Hub, tmp_path: Path) -> None:
    hub.refuses = True
    done = download(hub, tmp_path / "fetched")
    assert done.returncode == 1
    assert "503" in done.stderr.splitlines()[-1]


def test_a_hub_without_the_model_is_said_in_one_line(hub: Hub, tmp_path: Path) -> None:
    hub.files.clear()
    done = download(hub, tmp_path / "fetched")
    assert done.returncode == 1
    assert "404" in done.stderr.splitlines()[-1] or "not found" in done.stderr.splitlines()[-1].lower()
