"""An embedding model that fastembed runs: any but the default one."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from proxy.embedding.batching import SLICE_TEXTS, embed_in_batches
from proxy.errors import MemoryFault
from proxy.ports import Vectors
from proxy.settings.embedding_models import EmbeddingModel, text_embedding

LEAST_LENGTH = 1e-6  # of a vector; an empty text has none in a table of words' vectors


class FastembedEncoder:
    """A loaded model, for questions or for passages. Thread-safe; the interpreter is free while it computes."""

    def __init__(self, model: EmbeddingModel, folder: Path, threads: int, *, questions: bool) -> None:
        """
        Load from a folder; nothing is fetched.

        Args:
            folder: holds `model.files`.
            threads: of one run, >= 1.
            questions: whether questions are embedded, which some models tell from passages.

        Raises:
            MemoryFault: the files are missing, damaged, or of another model.
        """
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # `threads` is all we may use
        doing = f"loading the embedding model {model.name} from {folder}"
        try:
            self._model = text_embedding()(
                model.name,
                threads=threads,
                providers=["CPUExecutionProvider"],
                specific_model_path=str(folder),
                enable_cpu_mem_arena=False,  # an arena keeps the memory of the largest batch for ever
            )
            self._before = model.before_question if questions else model.before_passage
            self._questions, self._dimensions = questions, model.dimensions
            probe = self.embed(["The quick brown fox jumps over the lazy dog."])
        except Exception as cause:  # the libraries raise whatever they like over a damaged file
            raise MemoryFault(f"{doing}: {cause}; delete the folder to have it fetched again") from cause
        if not np.isfinite(probe).all() or not probe.any():
            raise MemoryFault(f"{doing}: damaged; delete the folder to have it fetched again")

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors, shape (n, dimensions), in the order of `texts`; zeros for a text without a word."""
        return embed_in_batches(texts, self._dimensions, self._run)

    def _run(self, texts: list[str]) -> Vectors:
        given = [self._before + text for text in texts]
        embed = self._model.query_embed if self._questions else self._model.passage_embed
        vectors = np.array([*embed(given, batch_size=SLICE_TEXTS)], np.float32)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        unit: Vectors = vectors / np.maximum(lengths, LEAST_LENGTH)
        return unit
