"""
What is the meaning of a text, as a vector? all-MiniLM-L6-v2, loaded from a folder by fastembed.

The paper's and the card's settings: mean of the words' vectors, unit length, 256 tokens (Reimers and Gurevych, 2019;
sentence-transformers/all-MiniLM-L6-v2).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np

from proxy.errors import MemoryFault
from proxy.ports import Vectors

NAME = "all-MiniLM-L6-v2"
DIMENSIONS = 384
MAX_TOKENS = 256  # what the model was trained on; the tokenizer file says 128, fastembed would take 512
MAX_CHARS = 8192  # beyond, nothing can be among the first 256 tokens: no tokenising of megabytes
SLICE_TEXTS = 8  # texts per run: larger runs are not faster on one core, only larger in memory

PROBE = "The quick brown fox jumps over the lazy dog."
PROBE_STARTS = (  # the first components of its vector, by the reference implementation
    *(0.0439, 0.0589, 0.0482, 0.0775, 0.0267, -0.0376, -0.0026, -0.0599),
    *(-0.0025, 0.0221, 0.0480, 0.0558, -0.0389, -0.0266, 0.0077, -0.0262),
)
PROBE_COSINE = 0.95  # over these: 1.0 as published, 0.98 in 8-bit integers, about 0 when damaged or another model


class Encoder:
    """A loaded model. Thread-safe; the interpreter is free while it computes."""

    def __init__(self, folder: Path, threads: int, max_tokens: int = MAX_TOKENS) -> None:
        """
        Load, and check that it is the right model and whole.

        Args:
            folder: holds `model.onnx`, `tokenizer.json` and `tokenizer_config.json`.
            threads: of one run, >= 1.
            max_tokens: of a text that are read, 3 to 256: its words, or their parts, and two for its ends.

        Raises:
            MemoryFault: the files are missing, damaged, or of another model.
        """
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # `threads` is all we may use
        from fastembed import TextEmbedding  # late: the import takes a second that no other command should pay

        doing = f"loading the embedding model from {folder}"
        try:
            self._model = TextEmbedding(
                f"sentence-transformers/{NAME}",
                specific_model_path=str(folder),
                cache_dir=str(folder),
                threads=threads,
                providers=["CPUExecutionProvider"],
                enable_cpu_mem_arena=False,  # an arena keeps the memory of the largest batch for ever
            )
            cast(Any, self._model.model).tokenizer.enable_truncation(max_tokens)
            probe = self.embed([PROBE])[0]
        except Exception as cause:  # ONNX Runtime and tokenizers raise whatever they like over a damaged file
            raise MemoryFault(f"{doing}: {cause}; delete the folder to have it fetched again") from cause
        start, expected = probe[: len(PROBE_STARTS)], np.array(PROBE_STARTS)
        if not start @ expected > PROBE_COSINE * np.linalg.norm(start) * np.linalg.norm(expected):  # nor nan
            raise MemoryFault(f"{doing}: damaged, or not {NAME}; delete the folder to have it fetched again")

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors, shape (n, 384), in the order of `texts`."""
        vectors = np.empty((len(texts), DIMENSIONS), np.float32)
        # Alike lengths share a run: a short text beside a long one would be padded to its length.
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        for start in range(0, len(order), SLICE_TEXTS):
            chosen = order[start : start + SLICE_TEXTS]
            vectors[chosen] = list(self._model.embed([_readable(texts[i]) for i in chosen]))
        return vectors


def _readable(text: str) -> str:
    """Half a surrogate pair is legal in JSON, and an error in a tokenizer."""
    return text[:MAX_CHARS].encode("utf-8", "replace").decode()
