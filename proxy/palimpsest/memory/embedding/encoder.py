"""The embedding model that policy names, loaded for questions or for passages."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from palimpsest.domain.ports import Vectors
from palimpsest.memory.embedding.minilm import MAX_TOKENS, MiniLMEncoder, questions_folder
from palimpsest.settings.embedding_models import DEFAULT, EmbeddingModel

QUESTION_TOKENS = 64  # prose has no more; logs have up to twice as many in as many characters, and take twice as long


class Encoder(Protocol):
    """Texts to unit vectors, in the thread that asks."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors of texts, shape (n, dimensions), in their order."""


def load_encoder(model: EmbeddingModel, folder: Path, threads: int, *, for_questions: bool) -> Encoder:
    """
    Load a model.

    Args:
        folder: where `palimpsest.memory.embedding.model.locate` found it.
        threads: of one run, >= 1.
        for_questions: which a request waits for; else for passages.

    Raises:
        MemoryFault: the files are missing, damaged, or of another model.
    """
    if model != DEFAULT:
        from palimpsest.memory.embedding.fastembed_encoder import FastembedEncoder

        return FastembedEncoder(model, folder, threads, for_questions=for_questions)
    if for_questions:
        return MiniLMEncoder(questions_folder(folder), threads, QUESTION_TOKENS)
    return MiniLMEncoder(folder, threads, MAX_TOKENS)


def vectors_name(model: EmbeddingModel) -> str:
    """The name that is stored with each vector of a model: vectors of other names are not compared with its own."""
    return f"{model.name}/{MAX_TOKENS}" if model == DEFAULT else f"{model.name}/centred"
