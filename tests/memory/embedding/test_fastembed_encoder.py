"""Models that fastembed runs: tiny ones of the real names, dimensions and files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from palimpsest.domain.errors import MemoryFault
from palimpsest.memory.embedding.fastembed_encoder import ENGLISH, OTHERS, FastembedEncoder
from palimpsest.settings.embedding_models import E5_SMALL, EmbeddingModel, embedding_model, text_embedding

from tests.tiny_models import build_tiny_model

NAMES = (E5_SMALL, "jinaai/jina-embeddings-v2-small-en", "thenlper/gte-base", "intfloat/multilingual-e5-large")


def known(name: str) -> EmbeddingModel:
    model = embedding_model(name)
    assert model is not None
    return model


@pytest.mark.parametrize("name", NAMES)
def test_unit_vectors_of_the_models_dimensions_in_the_order_of_the_texts(name: str, tmp_path: Path) -> None:
    model = known(name)
    passages = FastembedEncoder(model, build_tiny_model(model, tmp_path / "m"), 1, for_questions=False)
    texts = [
        "The database port is 5433",
        "dog",
        "I like Thai food more than Italian",
        "The port is 5433",
        "half \ud83d",
    ] * 3
    vectors = passages.embed(texts)
    assert vectors.shape == (15, model.dimensions) and vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(15), abs=1e-5)
    assert vectors[:5] == pytest.approx(vectors[5:10], abs=1e-4)
    assert vectors[0] @ vectors[3] > vectors[0] @ vectors[2] + 0.2


@pytest.mark.parametrize(("questions", "prefix"), [(True, "query: "), (False, "passage: ")])
def test_questions_and_passages_get_their_prefixes_and_what_all_texts_share_is_taken_off(
    tmp_path: Path, questions: bool, prefix: str
) -> None:
    model = known(E5_SMALL)
    folder = build_tiny_model(model, tmp_path / "m")
    bare = text_embedding()(model.name, specific_model_path=str(folder), providers=["CPUExecutionProvider"])
    shared = np.mean([*bare.embed([prefix + text for text in (*ENGLISH, *OTHERS)])], axis=0)
    expected = next(iter(bare.embed([prefix + "Which port"]))) - shared
    (own,) = FastembedEncoder(model, folder, 1, for_questions=questions).embed(["Which port"])
    assert own == pytest.approx(expected / np.linalg.norm(expected), abs=1e-4)


def test_a_folder_that_holds_no_such_model_is_a_fault_that_names_both(tmp_path: Path) -> None:
    with pytest.raises(MemoryFault, match=f"loading the embedding model {E5_SMALL} from .*nowhere"):
        FastembedEncoder(known(E5_SMALL), tmp_path / "nowhere", 1, for_questions=True)


def test_weights_of_another_model_are_refused(tmp_path: Path) -> None:
    other = build_tiny_model(known("jinaai/jina-embeddings-v2-small-en"), tmp_path / "m")  # 512 dimensions, not 384
    with pytest.raises(MemoryFault, match="delete the folder, and it is downloaded again"):
        FastembedEncoder(known(E5_SMALL), other, 1, for_questions=True)
