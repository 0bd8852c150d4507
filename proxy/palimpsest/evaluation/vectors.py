"""
A cache of passages' vectors on disk, by model and text, so that no run embeds what another one did.

Questions are embedded anew in every run, by the proxy's own code: their time is part of what is measured.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path

import numpy as np

from palimpsest.domain.errors import MemoryFault, faults
from palimpsest.domain.ports import Vectors
from palimpsest.evaluation.report import progress
from palimpsest.memory.embedding.embedder import LocalEmbedder
from palimpsest.memory.embedding.model import cache_folder
from palimpsest.settings import load
from palimpsest.settings.policy import ModelPolicy
from palimpsest.telemetry.metrics import Metrics

BATCH_TEXTS = 128  # embedded and kept at a time: a second or two, so that little is lost when a run is stopped
BUSY_SECONDS = 60.0  # several runs may share the file
DIGEST_BYTES = 16
LOOK_UP_TEXTS = 500  # in one question to SQLite

TABLE = "CREATE TABLE IF NOT EXISTS vector(model TEXT, digest BLOB, own BLOB, PRIMARY KEY(model, digest)) WITHOUT ROWID"


class CachedEmbedder:
    """Implements `palimpsest.domain.ports.Embedder`. Open it with `opened`."""

    def __init__(self, model: LocalEmbedder, cache: sqlite3.Connection) -> None:
        self._model = model
        self._cache = cache
        self.name = model.name
        self.dimensions = model.dimensions

    @property
    def ready(self) -> bool:
        return self._model.ready

    async def embed_queries(self, texts: Sequence[str]) -> Vectors:
        return await self._model.embed_queries(texts)

    async def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors, shape (n, dimensions), float32; what is not on disk is embedded and kept."""
        digests = [_digest(text) for text in texts]
        found = self._kept(digests)
        missing = {digest: text for digest, text in zip(digests, texts, strict=True) if digest not in found}
        if missing:
            with progress() as bar:
                task = bar.add_task("embedding", total=len(missing))
                waiting = sorted(missing.items(), key=lambda item: len(item[1]))  # alike lengths pad each other least
                for start in range(0, len(waiting), BATCH_TEXTS):
                    batch = dict(waiting[start : start + BATCH_TEXTS])
                    made = dict(zip(batch, await self._model.embed_passages([*batch.values()]), strict=True))
                    self._keep(made)
                    found |= made
                    bar.advance(task, len(batch))
        return np.array([found[digest] for digest in digests], np.float32).reshape(-1, self.dimensions)

    def _kept(self, digests: Sequence[bytes]) -> dict[bytes, Vectors]:
        found: dict[bytes, Vectors] = {}
        for start in range(0, len(digests), LOOK_UP_TEXTS):
            part = digests[start : start + LOOK_UP_TEXTS]
            marks = ", ".join("?" * len(part))
            rows = self._cache.execute(
                f"SELECT digest, own FROM vector WHERE model = ? AND digest IN ({marks})", (self.name, *part)
            )
            found |= {digest: np.frombuffer(own, np.float32) for digest, own in rows}
        return found

    def _keep(self, vectors: dict[bytes, Vectors]) -> None:
        with self._cache:
            self._cache.executemany(
                "INSERT OR REPLACE INTO vector VALUES (?, ?, ?)",
                [(self.name, digest, np.asarray(own, np.float32).tobytes()) for digest, own in vectors.items()],
            )


@asynccontextmanager
async def opened(policy: ModelPolicy | None = None, file: Path | None = None) -> AsyncIterator[CachedEmbedder]:
    """
    The embedding model with its cache, both loaded.

    Args:
        policy: None: what the environment says of the model (`PALIMPSEST_MODEL`), else the default.
        file: the cache; `evaluation/vectors.db` beside the models if left out.

    Raises:
        MemoryFault: the model is missing, or the cache cannot be opened.
    """
    policy = policy or load.load(None, os.environ, {}).model
    file = file or cache_folder(policy).parent.parent / "evaluation" / "vectors.db"
    model = LocalEmbedder(policy, Metrics())
    try:
        if not await model.warm():
            raise MemoryFault(f"loading the embedding model: {model.status}; run palimpsest model install")
        with faults((OSError, sqlite3.Error), f"opening the cache of vectors {file}"):
            file.parent.mkdir(parents=True, exist_ok=True)
            cache = sqlite3.connect(file, timeout=BUSY_SECONDS)
        with closing(cache), faults(sqlite3.Error, f"using the cache of vectors {file}; it may be deleted"):
            cache.execute("PRAGMA journal_mode = WAL")
            cache.execute("PRAGMA synchronous = NORMAL")
            cache.execute(TABLE)
            yield CachedEmbedder(model, cache)
    finally:
        await model.close()


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=DIGEST_BYTES).digest()
