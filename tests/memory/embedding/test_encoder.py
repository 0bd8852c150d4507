"""The model that policy names, loaded."""

from __future__ import annotations

from pathlib import Path

import pytest
from palimpsest.memory.embedding.encoder import load_encoder, vectors_name
from palimpsest.memory.embedding.fastembed_encoder import FastembedEncoder
from palimpsest.memory.embedding.minilm import MiniLMEncoder
from palimpsest.settings.embedding_models import DEFAULT, E5_SMALL, embedding_model, embedding_models

from tests.tiny_models import build_tiny_model


@pytest.mark.parametrize("questions", [True, False])
def test_the_default_is_loaded_without_fastembed_and_any_other_with_it(
    model_folder: Path, tmp_path: Path, questions: bool
) -> None:
    assert isinstance(load_encoder(DEFAULT, model_folder, 1, for_questions=questions), MiniLMEncoder)
    other = embedding_model(E5_SMALL)
    assert other is not None
    folder = build_tiny_model(other, tmp_path / "m")
    assert isinstance(load_encoder(other, folder, 1, for_questions=questions), FastembedEncoder)


def test_vectors_of_the_default_keep_the_name_under_which_they_are_stored() -> None:
    assert vectors_name(DEFAULT) == "all-MiniLM-L6-v2/256"
    assert {vectors_name(model) for model in embedding_models().values()} > {f"{E5_SMALL}/centred"}
