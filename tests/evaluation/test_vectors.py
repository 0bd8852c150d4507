"""The cache of passages' vectors."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import numpy as np
import pytest
from palimpsest.domain.errors import MemoryFault
from palimpsest.evaluation import vectors
from palimpsest.memory.embedding.encoder import vectors_name
from palimpsest.settings.embedding_models import DEFAULT
from palimpsest.settings.policy import ModelPolicy

pytestmark = pytest.mark.slow

TEXTS = ("The ferry leaves at nine.", "A short one.", "The ferry leaves at nine.")


def kept(file: Path) -> list[tuple[str, bytes]]:
    database = sqlite3.connect(file)
    try:
        return database.execute("SELECT model, own FROM vector").fetchall()
    finally:
        database.close()


async def test_passages_are_kept_from_one_run_to_the_next(model_folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "deep" / "vectors.db"
    policy = ModelPolicy(folder=model_folder)
    async with vectors.opened(policy, file) as embedder:
        assert embedder.ready and embedder.name == vectors_name(DEFAULT)
        first = await embedder.embed_passages(TEXTS)
        (question,) = await embedder.embed_queries(["When does the ferry leave?"])
    assert first.shape == (3, 384) and first.dtype == np.float32
    assert (first[0] == first[2]).all() and np.linalg.norm(first, axis=1) == pytest.approx(1, abs=1e-3)
    assert first[0] @ question > 0.6 > first[1] @ question
    assert len(kept(file)) == 2, "questions are not kept"
    with sqlite3.connect(file) as database:
        database.execute("UPDATE vector SET own = ?", (np.full(384, 0.5, np.float32).tobytes(),))
    database.close()
    async with vectors.opened(policy, file) as embedder:
        assert (await embedder.embed_passages(TEXTS[:1]) == 0.5).all(), "taken from the file, not made again"
        assert (await embedder.embed_passages([])).shape == (0, 384)


async def test_a_missing_model_is_said_with_what_to_do(tmp_path: Path) -> None:
    nowhere = ModelPolicy(cache=tmp_path, folder=tmp_path, download="never")
    with pytest.raises(MemoryFault, match="palimpsest model install"):
        async with vectors.opened(nowhere, tmp_path / "vectors.db"):
            pass


async def test_a_file_that_is_no_cache_is_said(model_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "vectors.db").write_text("something else entirely, and long enough to be read as a header" * 9)
    with pytest.raises(MemoryFault, match=r"vectors\.db"):
        async with vectors.opened(ModelPolicy(folder=model_folder), tmp_path / "vectors.db"):
            pass
