"""
The process that embeds passages, at low priority, so that requests are not slowed.

A thread would not do: at low priority it can lose its core while it holds the interpreter's lock, and then every
request waits for it (measured with both cores busy: 420 ms at worst; with a process of its own, as without any).
"""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np

from palimpsest.domain.errors import MemoryFault, faults
from palimpsest.domain.ports import Vectors
from palimpsest.memory.embedding.encoder import load_encoder
from palimpsest.settings.embedding_models import EmbeddingModel, embedding_model

NICENESS = 10  # a tenth of what a request gets when both want the core; 19 would starve the index on a busy machine
# glibc keeps what was given back to it, 60 MB after a few batches. Like this, large pieces go back to the system, and a
# batch takes as long.
FRUGAL = {"MALLOC_ARENA_MAX": "1", "MALLOC_MMAP_THRESHOLD_": "1000000", "MALLOC_TRIM_THRESHOLD_": "4000000"}
READY = "ready"  # the first line that the process writes; any other says why it cannot work
LENGTH = struct.Struct("!Q")  # bytes of the JSON list that follows


class PassageProcess:
    """The process, from the outside. Blocking, all from one thread; starts when needed, and again after a fault."""

    def __init__(self, model: EmbeddingModel, folder: Path, threads: int) -> None:
        self._command = [sys.executable, "-P", "-m", __name__, model.name, str(folder), str(threads)]
        self._dimensions = model.dimensions
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the process, unless it runs, and wait until its model is loaded; the text of a failure says why not."""
        if self._process is not None:
            return
        with faults(OSError, "starting the process that embeds passages"):
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,  # the libraries' own chatter
                env=FRUGAL | os.environ | {"PYTHONPATH": os.pathsep.join(path or "." for path in sys.path)},
            )
        assert self._process.stdout
        greeting = self._process.stdout.readline().decode().strip()
        if greeting != READY:
            self.close()
            raise MemoryFault(greeting or "starting the process that embeds passages: it ended; memory may be short")

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed texts as unit vectors, shape (n, dimensions); after a failure the next call starts a new process."""
        self.start()
        assert self._process and self._process.stdin and self._process.stdout
        question = json.dumps(list(texts)).encode()
        size = len(texts) * self._dimensions * np.dtype(np.float32).itemsize
        try:
            self._process.stdin.write(LENGTH.pack(len(question)) + question)
            self._process.stdin.flush()
            answer = self._process.stdout.read(size)
        except OSError:  # it ended before it had read the question
            answer = b""
        if len(answer) < size:
            self.close()
            raise MemoryFault("embedding passages: their process ended; memory may be short")
        return np.frombuffer(answer, np.float32).reshape(len(texts), self._dimensions)

    def interrupt(self) -> None:
        """Let a running `embed` fail now; may be called from any thread."""
        if process := self._process:
            process.kill()

    def close(self) -> None:
        """End the process and wait for its end."""
        if process := self._process:
            self._process = None
            process.kill()
            process.communicate()


def serve(name: str, folder: Path, threads: int, questions: BinaryIO, answers: BinaryIO) -> None:
    """Embed what is asked for until the other side closes its end or dies."""
    try:
        model = embedding_model(name)
        assert model is not None  # policy was asked before
        encoder = load_encoder(model, folder, threads, for_questions=False)
    except MemoryFault as fault:
        answers.write(f"{fault}".replace("\n", " ").encode())
        return
    answers.write(f"{READY}\n".encode())
    answers.flush()
    while header := questions.read(LENGTH.size):
        texts = json.loads(questions.read(LENGTH.unpack(header)[0]))
        answers.write(encoder.embed(texts).tobytes())
        answers.flush()


if __name__ == "__main__":
    # No session of its own: Linux weighs sessions first, and niceness would only count inside it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches us too, and is for the proxy to handle
    os.nice(NICENESS)
    serve(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), sys.stdin.buffer, sys.stdout.buffer)
