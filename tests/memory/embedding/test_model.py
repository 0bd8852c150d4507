"""The files of the embedding model: real fetches from the package index, in processes of their own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from palimpsest.domain.errors import MemoryFault, PolicyError
from palimpsest.memory.embedding.encoder import load_encoder
from palimpsest.memory.embedding.fetch import routes
from palimpsest.memory.embedding.minilm import MiniLMEncoder, questions_folder
from palimpsest.memory.embedding.model import (
    cache_folder,
    chosen_model,
    discard,
    install,
    locate,
    missing_files,
)
from palimpsest.settings.embedding_models import DEFAULT, embedding_model
from palimpsest.settings.policy import ModelPolicy

from tests.tiny_models import build_tiny_model, model_hub

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
NOWHERE = "http://127.0.0.1:1"  # nothing listens there

INSTALL = """
import os, sys
from pathlib import Path
from palimpsest.domain.errors import MemoryFault
from palimpsest.memory.embedding.model import install
from palimpsest.settings.policy import ModelPolicy
name = os.environ.get("PALIMPSEST_TEST_MODEL", "all-MiniLM-L6-v2")
try:
    sys.stdout.write(str(install(ModelPolicy(name=name, cache=Path(sys.argv[1])), lambda text: None)))
except MemoryFault as fault:
    sys.exit(str(fault))
"""


def start_install(cache: Path, **env: str) -> subprocess.Popen[str]:
    # `-P`: the folder that a test runs in is no part of the program
    command = [sys.executable, "-P", "-c", INSTALL, str(cache)]
    here = os.environ | {"HF_ENDPOINT": NOWHERE, "PYTHONPATH": str(ROOT / "proxy")} | env
    return subprocess.Popen(command, env=here, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def put_model(folder: Path) -> Path:
    folder.mkdir(parents=True)
    for name in ("model.onnx", "tokenizer.json", "tokenizer_config.json"):
        (folder / name).write_text("{}")
    return folder


def test_configured_folder_comes_before_the_cache(tmp_path: Path) -> None:
    policy = ModelPolicy(folder=tmp_path / "mine", cache=tmp_path / "cache")
    assert locate(policy) is None
    cached = put_model(cache_folder(policy))
    assert locate(policy) == cached
    mine = put_model(tmp_path / "mine")
    assert locate(policy) == mine
    assert install(policy, lambda text: None) == mine


def test_folder_that_cannot_be_looked_into_is_a_fault_unless_another_holds_a_model(tmp_path: Path) -> None:
    policy = ModelPolicy(folder=tmp_path / ("m" * 300), cache=tmp_path / "cache")
    with pytest.raises(MemoryFault, match="looking for the embedding model in"):
        locate(policy)
    cached = put_model(cache_folder(policy))
    assert locate(policy) == cached


def test_folder_without_all_files_is_no_model(tmp_path: Path) -> None:
    policy = ModelPolicy(folder=put_model(tmp_path / "mine"), cache=tmp_path / "cache")
    (tmp_path / "mine" / "tokenizer.json").unlink()
    assert locate(policy) is None


def test_download_never_says_where_it_looked(tmp_path: Path) -> None:
    policy = ModelPolicy(cache=tmp_path / "cache", download="never")
    with pytest.raises(MemoryFault, match=r"none in .*cache.*, and model\.download is never"):
        install(policy, lambda text: None)
    assert not (tmp_path / "cache").exists()


def test_only_our_own_copy_is_ever_removed(tmp_path: Path) -> None:
    policy = ModelPolicy(folder=put_model(tmp_path / "mine"), cache=tmp_path / "cache")
    cached = put_model(cache_folder(policy))
    assert not discard(policy, tmp_path / "mine")
    assert (tmp_path / "mine" / "model.onnx").exists()
    assert not discard(ModelPolicy(cache=tmp_path / "cache", download="never"), cached)
    assert discard(policy, cached)
    assert not cached.exists()


def test_two_processes_that_fetch_at_once_both_get_the_whole_model(model_folder: Path, tmp_path: Path) -> None:
    both = [start_install(tmp_path) for _ in range(2)]
    said = [process.communicate() for process in both]
    assert [process.returncode for process in both] == [0, 0], str(said)
    place = cache_folder(ModelPolicy(cache=tmp_path))
    assert [out for out, _ in said] == [str(place)] * 2
    assert [path.name for path in place.parent.iterdir()] == [place.name]  # nothing half-made stays behind
    assert MiniLMEncoder(place, 1).embed(["hello"]).shape == (1, 384)
    assert questions_folder(place) == place / "questions"


def test_model_of_an_older_version_gets_its_faster_copy(model_folder: Path, tmp_path: Path) -> None:
    policy = ModelPolicy(cache=tmp_path)
    place = shutil.copytree(model_folder, cache_folder(policy), ignore=shutil.ignore_patterns("questions"))
    assert questions_folder(place) == place
    install(policy, lambda text: None)
    assert questions_folder(place) == place / "questions"
    assert MiniLMEncoder(place / "questions", 1).embed(["hello"]).shape == (1, 384)
    assert {path.name for path in place.iterdir()} == {path.name for path in model_folder.iterdir()}


def test_model_that_cannot_be_copied_is_used_as_it_is(tmp_path: Path) -> None:
    policy, said = ModelPolicy(cache=tmp_path), list[str]()
    place = put_model(cache_folder(policy))  # its graph is no graph
    assert install(policy, said.append) == place
    assert said[-1].startswith("questions will take longer to embed: making a faster copy for questions: ")
    assert questions_folder(place) == place


def test_without_any_network_the_error_names_every_route(tmp_path: Path) -> None:
    blocked = {"HTTPS_PROXY": NOWHERE, "https_proxy": NOWHERE, "PIP_INDEX_URL": f"{NOWHERE}/simple"}
    process = start_install(tmp_path, **blocked, PIP_CONFIG_FILE=os.devnull, PIP_FIND_LINKS="")
    _, said = process.communicate()
    assert process.returncode == 1
    assert "fetching the embedding model all-MiniLM-L6-v2: model hub: " in said
    assert all(f"{name}: " in said for name, _ in routes(DEFAULT))
    assert f"put its files into {tmp_path}" in said
    assert list((tmp_path / "models").iterdir()) == []


def test_what_progress_reports_raise_ends_the_fetch_and_leaves_nothing(tmp_path: Path) -> None:
    class Enough(Exception):
        pass

    def stop(text: str) -> None:
        raise Enough

    with pytest.raises(Enough):
        install(ModelPolicy(cache=tmp_path), stop)
    assert list((tmp_path / "models").iterdir()) == []


E5 = "intfloat/multilingual-e5-large"


def test_another_model_is_fetched_from_the_hub_into_a_folder_of_its_name(tmp_path: Path) -> None:
    model = embedding_model(E5)
    assert model is not None
    with model_hub() as hub:
        hub.add(model.source, build_tiny_model(model, tmp_path / "published"))
        process = start_install(tmp_path / "cache", HF_ENDPOINT=hub.url, PALIMPSEST_TEST_MODEL=E5)
        said = process.communicate()
    assert process.returncode == 0, said
    policy = ModelPolicy(name=E5, cache=tmp_path / "cache")
    place = cache_folder(policy)
    assert said[0] == str(place) and place.name == "intfloat--multilingual-e5-large"
    assert locate(policy) == place and missing_files(policy, place) == []
    assert [path.name for path in place.parent.iterdir()] == [place.name], "nothing half-made stays behind"
    assert load_encoder(model, place, 1, for_questions=True).embed(["Which port"]).shape == (1, 1024)


def test_another_model_without_a_hub_says_where_its_files_may_be_put(tmp_path: Path) -> None:
    process = start_install(tmp_path, PALIMPSEST_TEST_MODEL=E5)
    _, said = process.communicate()
    assert process.returncode == 1
    assert f"fetching the embedding model {E5}: fetching {E5} (2,240 MB) from the model hub: " in said
    assert f"or put its files into {tmp_path}" in said and "model.onnx, model.onnx_data, tokenizer.json" in said
    assert list((tmp_path / "models").iterdir()) == []


def test_a_model_that_does_not_exist_is_the_operators_mistake() -> None:
    with pytest.raises(PolicyError, match="did you mean intfloat/multilingual-e5-large"):
        chosen_model(ModelPolicy(name="intfloat/multilingual-e5-huge"))
