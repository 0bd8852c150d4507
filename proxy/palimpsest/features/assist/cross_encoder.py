"""
A cross-encoder that fastembed runs: it reads a question and a passage together, and says how well the one answers the
other. Slower than vectors by a thousand times, so only the best candidates are shown to it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from palimpsest.domain.errors import MemoryFault
from palimpsest.memory.embedding.model import models_folder
from palimpsest.settings.policy import ModelPolicy

BATCH_PAIRS = 16  # of similar memory as one batch of passages that are embedded
THREADS = 2  # of one run; a request waits for it, and others run beside it


def cross_encoder_folder(name: str, policy: ModelPolicy) -> Path:
    """Where the files of a cross-encoder belong: beside the embedding models in the cache."""
    return models_folder(policy) / name.replace("/", "--")


class CrossEncoder:
    """A loaded model. One run at a time."""

    def __init__(self, name: str, folder: Path) -> None:
        """Load from a folder; nothing is fetched."""
        doing = f"loading the cross-encoder {name} from {folder}"
        if not folder.is_dir():
            raise MemoryFault(f"{doing}: it is missing; docs/assist.md says how to install it")
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
        try:
            from fastembed.rerank.cross_encoder import TextCrossEncoder  # late: half a second, and only who wants one

            self._model = TextCrossEncoder(
                name, threads=THREADS, providers=["CPUExecutionProvider"], specific_model_path=str(folder)
            )
        except Exception as cause:  # the libraries raise whatever they like over a damaged file
            raise MemoryFault(f"{doing}: {cause}") from cause

    def scores(self, question: str, passages: Sequence[str]) -> list[float]:
        """How well each passage answers the question; higher is better, on no scale."""
        asked, *said = (text.encode(errors="replace").decode() for text in (question, *passages))  # no half characters
        try:
            return [float(score) for score in self._model.rerank(asked, said, batch_size=BATCH_PAIRS)]
        except Exception as cause:
            raise MemoryFault(f"asking the cross-encoder: {cause}") from cause
