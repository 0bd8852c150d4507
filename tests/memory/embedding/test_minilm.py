"""The default model, compared with what sentence-transformers computed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from palimpsest.domain.errors import MemoryFault
from palimpsest.memory.embedding.batching import MAX_CHARS
from palimpsest.memory.embedding.minilm import MiniLMEncoder

pytestmark = pytest.mark.slow

REFERENCE = Path(__file__).parents[4] / "shared" / "tools" / "minilm_reference.json"

# The first components of 384, as first computed here, when they equalled sentence-transformers' to four decimals.
KNOWN = {
    "The database port is 5433.": (0.0539, -0.0621, -0.0948, -0.0967, -0.0549, -0.0183, -0.0504, -0.0151),
    "Which port does Postgres use?": (0.0232, -0.0322, -0.0839, -0.0538, -0.0582, 0.0099, -0.031, -0.0282),
    "": (-0.1188, 0.0483, -0.0025, -0.011, 0.052, 0.0103, 0.1154, 0.0007),
}


@pytest.fixture(scope="session")
def encoder(model_folder: Path) -> MiniLMEncoder:
    return MiniLMEncoder(model_folder, 1)


def test_vectors_are_those_of_the_reference_implementation(encoder: MiniLMEncoder) -> None:
    if not REFERENCE.exists():
        pytest.skip(f"needs {REFERENCE}, vectors of the reference implementation")
    reference = json.loads(REFERENCE.read_text())
    vectors = encoder.embed(reference["texts"])
    cosines = (vectors * np.array(reference["vectors"])).sum(axis=1)
    assert cosines.min() > 0.9999


def test_vectors_stay_what_they_were(encoder: MiniLMEncoder) -> None:
    for text, start in KNOWN.items():
        assert encoder.embed([text])[0][: len(start)] == pytest.approx(start, abs=0.002)


def test_vectors_have_unit_length_and_the_order_of_the_texts(encoder: MiniLMEncoder) -> None:
    texts = ["a much longer text about the weather in Lyon, where it rains today", "rain", "", "port 5433"] * 5
    vectors = encoder.embed(texts)
    assert vectors.shape == (20, 384)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(20), abs=1e-5)
    assert vectors[3] == pytest.approx(encoder.embed(["port 5433"])[0], abs=1e-5)


def test_nothing_beyond_256_tokens_counts(encoder: MiniLMEncoder) -> None:
    long = "word " * 254  # and the two that every text begins and ends with
    vectors = encoder.embed([long + "giraffe", long + "volcano", "word " * 253 + "giraffe"])
    assert vectors[0] == pytest.approx(vectors[1], abs=1e-6)
    assert vectors[0] != pytest.approx(vectors[2], abs=1e-3)


def test_half_a_surrogate_pair_and_megabytes_are_embedded(encoder: MiniLMEncoder) -> None:
    vectors = encoder.embed(["half \ud83d of a smile", "x y " * MAX_CHARS])
    assert np.isfinite(vectors).all()


@pytest.mark.parametrize("damage", ["cut", "zeros", "tokenizer"])
def test_damaged_model_is_refused_with_a_reason(model_folder: Path, tmp_path: Path, damage: str) -> None:
    folder = shutil.copytree(model_folder, tmp_path / "model")
    graph = folder / "model.onnx"
    whole = graph.read_bytes()
    match damage:
        case "cut":
            graph.write_bytes(whole[: len(whole) // 2])
        case "zeros":  # loads without complaint, and means nothing
            third = len(whole) // 3
            graph.write_bytes(whole[:third] + bytes(third) + whole[2 * third :])
        case "tokenizer":
            (folder / "tokenizer.json").write_text("{}")
    with pytest.raises(MemoryFault, match=r"loading the embedding model from .*delete the folder"):
        MiniLMEncoder(folder, 1)
