"""Cross-encoders that fastembed runs: a tiny one under a real name."""

from __future__ import annotations

from pathlib import Path

import pytest
from palimpsest.domain.errors import MemoryFault
from palimpsest.features.assist.cross_encoder import CrossEncoder, cross_encoder_folder
from palimpsest.settings.policy import ModelPolicy, RecallPolicy

from tests.tiny_models import build_tiny_cross_encoder

NAME = RecallPolicy().cross_encoder


def test_passages_are_scored_in_their_order(tmp_path: Path) -> None:
    encoder = CrossEncoder(NAME, build_tiny_cross_encoder(tmp_path / "m", best="violet"))
    scores = encoder.scores("Which flower?", ["a red rose", "the violet one", "half \ud83d", "violet violet"])
    assert scores[3] > scores[1] > scores[0] and len(scores) == 4
    assert len(encoder.scores("Which?", ["one"] * 40)) == 40


def test_it_is_looked_for_beside_the_embedding_models(tmp_path: Path) -> None:
    folder = cross_encoder_folder(NAME, ModelPolicy(cache=tmp_path))
    assert folder == tmp_path / "models" / NAME.replace("/", "--")


def test_a_model_that_is_not_there_is_a_fault_that_says_where_it_belongs(tmp_path: Path) -> None:
    with pytest.raises(MemoryFault, match=f"loading the cross-encoder {NAME} from .*nowhere: it is missing"):
        CrossEncoder(NAME, tmp_path / "nowhere")


def test_a_damaged_model_is_a_fault(tmp_path: Path) -> None:
    folder = build_tiny_cross_encoder(tmp_path / "m", best="violet")
    (folder / "onnx" / "model.onnx").write_bytes(b"no graph")
    with pytest.raises(MemoryFault, match="loading the cross-encoder"):
        CrossEncoder(NAME, folder)


def test_a_name_that_fastembed_does_not_know_is_a_fault(tmp_path: Path) -> None:
    with pytest.raises(MemoryFault, match="not supported"):
        CrossEncoder("nobody/nothing", build_tiny_cross_encoder(tmp_path / "m", best="violet"))
