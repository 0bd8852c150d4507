"""The 8-bit copy of the default model, which must mean the same."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from palimpsest.memory.embedding.minilm import MiniLMEncoder, questions_folder

pytestmark = pytest.mark.slow

TEXTS = [
    "Which port does Postgres use?",
    "When did Caroline go to the support group?",
    "Why does the importer stop after two restarts, and who looked at the logs on Monday?",
    "KeyError: 'auth' in config/db.yaml",
]


@pytest.fixture
def copy(model_folder: Path) -> Path:
    folder = questions_folder(model_folder)
    if folder == model_folder:
        pytest.skip("needs the 8-bit copy of the embedding model")
    return folder


def test_questions_in_8_bits_mean_the_same(model_folder: Path, copy: Path) -> None:
    exact, fast = MiniLMEncoder(model_folder, 1).embed(TEXTS), MiniLMEncoder(copy, 1).embed(TEXTS)
    assert (exact * fast).sum(axis=1).min() > 0.98
    assert fast @ fast.T == pytest.approx(exact @ exact.T, abs=0.05)


def test_products_are_in_integers(copy: Path) -> None:
    kinds = [node.op_type for node in onnx.load(copy / "model.onnx").graph.node]
    assert kinds.count("MatMulInteger") == 6 * 6  # layers, each with six weighted products
