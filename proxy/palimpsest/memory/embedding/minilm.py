"""
The default embedding model, all-MiniLM-L6-v2, loaded from a folder by ONNX Runtime without fastembed.

The paper's and the card's settings: mean of the words' vectors, unit length, 256 tokens (Reimers and Gurevych, 2019;
sentence-transformers/all-MiniLM-L6-v2).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from palimpsest.domain.errors import MemoryFault
from palimpsest.domain.ports import Vectors
from palimpsest.memory.embedding.batching import in_slices, readable
from palimpsest.settings.embedding_models import DEFAULT

NAME, DIMENSIONS = DEFAULT.name, DEFAULT.dimensions
GRAPH, TOKENIZER = DEFAULT.files
QUESTIONS = "questions"  # folder inside a fetched model: its copy in 8-bit integers
PAD = 0  # [PAD] of its vocabulary
MAX_TOKENS = 256  # what the model was trained on; the tokenizer file says 128

PROBE = "The quick brown fox jumps over the lazy dog."
PROBE_STARTS = (  # the first components of its vector, by the reference implementation
    *(0.0439, 0.0589, 0.0482, 0.0775, 0.0267, -0.0376, -0.0026, -0.0599),
    *(-0.0025, 0.0221, 0.0480, 0.0558, -0.0389, -0.0266, 0.0077, -0.0262),
)
PROBE_COSINE = 0.95  # over these: 1.0 as published, 0.98 in 8-bit integers, about 0 when damaged or another model


class MiniLMEncoder:
    """A loaded model. Thread-safe; the interpreter is free while it computes."""

    def __init__(self, folder: Path, threads: int, max_tokens: int = MAX_TOKENS) -> None:
        """
        Load, and check that it is the right model and whole.

        Args:
            folder: holds `model.onnx` and `tokenizer.json`.
            threads: that compute at once, a few texts each, >= 1. What is of few texts keeps one busy.
            max_tokens: of a text that are read, 3 to 256: its words, or their parts, and two for its ends.

        Raises:
            MemoryFault: the files are missing, damaged, or of another model.
        """
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # `threads` is all we may use
        import onnxruntime  # type: ignore[import-untyped]  # late: no other command should pay for these imports
        from tokenizers import Tokenizer

        doing = f"loading the embedding model from {folder}"
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self._threads = ThreadPoolExecutor(threads, "embed") if threads > 1 else None
        options.enable_cpu_mem_arena = False  # an arena keeps the memory of the largest batch for ever
        try:
            self._session = onnxruntime.InferenceSession(folder / GRAPH, options, providers=["CPUExecutionProvider"])
            self._inputs = {wanted.name for wanted in self._session.get_inputs()}
            self._tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
            self._tokenizer.enable_truncation(max_tokens)
            self._tokenizer.no_padding()
            probe = self.embed([PROBE])[0]
        except Exception as cause:  # ONNX Runtime and tokenizers raise whatever they like over a damaged file
            raise MemoryFault(f"{doing}: {cause}; delete the folder, and it is downloaded again") from cause
        start, expected = probe[: len(PROBE_STARTS)], np.array(PROBE_STARTS)
        if not start @ expected > PROBE_COSINE * np.linalg.norm(start) * np.linalg.norm(expected):  # nor nan
            raise MemoryFault(f"{doing}: damaged, or not {NAME}; delete the folder, and it is downloaded again")

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors, shape (n, 384), in the order of `texts`."""
        encoded = self._tokenizer.encode_batch([*map(readable, texts)])
        rows = [one.ids for one in encoded]
        return in_slices(
            [*map(len, rows)], DIMENSIONS, lambda chosen: self._run([rows[i] for i in chosen]), self._threads
        )

    def _run(self, rows: Sequence[Sequence[int]]) -> Vectors:
        """Run the model on token ids, padded to one length: unit vectors, (n, 384)."""
        ids = np.full((len(rows), max(map(len, rows))), PAD, np.int64)
        mask = np.zeros_like(ids)
        for at, row in enumerate(rows):
            ids[at, : len(row)], mask[at, : len(row)] = row, 1
        given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        states = self._session.run(None, {name: given[name] for name in self._inputs})[0]  # texts x tokens x 384
        sums: Vectors = np.einsum(
            "ntd,nt->nd", states, mask.astype(np.float32)
        )  # of the words' vectors, not their mean:
        unit: Vectors = sums / np.linalg.norm(sums, axis=1, keepdims=True)  # their direction is the same
        return unit


def questions_folder(folder: Path) -> Path:
    """The folder of the copy that embeds questions faster, or of the model where there is none."""
    return folder / QUESTIONS if (folder / QUESTIONS / GRAPH).is_file() else folder
