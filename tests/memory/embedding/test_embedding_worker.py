"""The process that embeds passages."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from palimpsest.domain.errors import MemoryFault
from palimpsest.memory.embedding.embedding_worker import NICENESS, PassageProcess
from palimpsest.memory.embedding.minilm import MiniLMEncoder
from palimpsest.settings.embedding_models import DEFAULT

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]


@pytest.fixture
def passages(model_folder: Path) -> Iterator[PassageProcess]:
    process = PassageProcess(DEFAULT, model_folder, 2)
    yield process
    process.close()


def children() -> list[psutil.Process]:
    return [
        child
        for child in psutil.Process().children()
        if "palimpsest.memory.embedding.embedding_worker" in child.cmdline()
    ]


def test_process_answers_as_the_model_does(passages: PassageProcess, model_folder: Path) -> None:
    texts = [f"passage {number} about the port {number * 7}" for number in range(20)] + ["", "\ud83d half"]
    assert passages.embed(texts) == pytest.approx(MiniLMEncoder(model_folder, 1).embed(texts), abs=1e-5)
    assert passages.embed(["again"]).shape == (1, 384)
    assert passages.embed([]).shape == (0, 384)


def test_process_gives_way_to_requests(passages: PassageProcess) -> None:
    passages.embed(["hello"])
    [child] = children()
    assert child.nice() == min(19, os.nice(0) + NICENESS)


def test_killed_process_is_a_fault_and_the_next_call_starts_another(passages: PassageProcess) -> None:
    passages.embed(["hello"])
    [child] = children()
    child.kill()
    child.wait()
    with pytest.raises(MemoryFault, match="embedding passages"):
        passages.embed(["hello"])
    assert passages.embed(["hello"]).shape == (1, 384)


def test_missing_model_is_a_fault(tmp_path: Path) -> None:
    process = PassageProcess(DEFAULT, tmp_path / "nothing", 1)
    with pytest.raises(MemoryFault, match=r"loading the embedding model from .*nothing"):
        process.embed(["hello"])
    process.close()


def test_process_dies_with_the_proxy(model_folder: Path) -> None:
    program = f"""
import sys, time
from pathlib import Path
from palimpsest.memory.embedding.embedding_worker import PassageProcess
from palimpsest.settings.embedding_models import DEFAULT
process = PassageProcess(DEFAULT, Path({str(model_folder)!r}), 1)
process.embed(["hello"])
print(process._process.pid, flush=True)
time.sleep(1000)
"""
    env = os.environ | {"PYTHONPATH": str(ROOT / "proxy")}
    with subprocess.Popen([sys.executable, "-c", program], env=env, stdout=subprocess.PIPE, text=True) as proxy:
        assert proxy.stdout
        worker = psutil.Process(int(proxy.stdout.readline()))
        proxy.kill()
    assert psutil.wait_procs([worker], timeout=60)[1] == [] or worker.status() == psutil.STATUS_ZOMBIE
