"""Published weights as a graph, checked on a tiny encoder against the same sums in NumPy."""

from __future__ import annotations

import json
from math import erf
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime
import pytest
from palimpsest.memory.embedding.onnx_graph import build
from safetensors.numpy import save_file

HIDDEN, HEADS, LAYERS, WIDE, WORDS, PLACES, EPSILON = 8, 2, 2, 16, 11, 6, 1e-12

Floats = npt.NDArray[np.float32]


@pytest.fixture
def weights() -> dict[str, Floats]:
    random = np.random.default_rng(7)

    def some(*shape: int) -> Floats:
        return random.normal(size=shape).astype(np.float32)

    made = {f"embeddings.{name}_embeddings.weight": some(rows, HIDDEN) for name, rows in ROWS.items()}
    sizes = {
        "attention.self.query": (HIDDEN, HIDDEN),
        "attention.self.key": (HIDDEN, HIDDEN),
        "attention.self.value": (HIDDEN, HIDDEN),
        "attention.output.dense": (HIDDEN, HIDDEN),
        "intermediate.dense": (WIDE, HIDDEN),
        "output.dense": (HIDDEN, WIDE),
        "attention.output.LayerNorm": (HIDDEN,),
        "output.LayerNorm": (HIDDEN,),
    }
    for layer in range(LAYERS):
        for name, shape in sizes.items():
            made[f"encoder.layer.{layer}.{name}.weight"] = some(*shape)
            made[f"encoder.layer.{layer}.{name}.bias"] = some(shape[0])
    return made | {"embeddings.LayerNorm.weight": some(HIDDEN), "embeddings.LayerNorm.bias": some(HIDDEN)}


ROWS = {"word": WORDS, "token_type": 2, "position": PLACES}


def encode(w: dict[str, Floats], ids: list[int]) -> Any:
    """BERT's encoder for one text without padding, sum by sum."""

    def norm(x: Any, name: str) -> Any:
        centred = x - x.mean(-1, keepdims=True)
        return (
            centred / np.sqrt((centred**2).mean(-1, keepdims=True) + EPSILON) * w[name + ".weight"] + w[name + ".bias"]
        )

    def linear(x: Any, name: str) -> Any:
        return x @ w[name + ".weight"].T + w[name + ".bias"]

    def split(x: Any) -> Any:
        return x.reshape(len(ids), HEADS, HIDDEN // HEADS).transpose(1, 0, 2)

    x = w["embeddings.word_embeddings.weight"][ids] + w["embeddings.token_type_embeddings.weight"][0]
    x = norm(x + w["embeddings.position_embeddings.weight"][: len(ids)], "embeddings.LayerNorm")
    for number in range(LAYERS):
        layer = f"encoder.layer.{number}."
        q, k, v = (split(linear(x, f"{layer}attention.self.{name}")) for name in ("query", "key", "value"))
        scores = np.exp(q @ k.transpose(0, 2, 1) / np.sqrt(HIDDEN // HEADS))
        mixed = (scores / scores.sum(-1, keepdims=True) @ v).transpose(1, 0, 2).reshape(len(ids), HIDDEN)
        x = norm(linear(mixed, layer + "attention.output.dense") + x, layer + "attention.output.LayerNorm")
        wide = linear(x, layer + "intermediate.dense")
        wide = wide * 0.5 * (1 + np.vectorize(erf)(wide / np.sqrt(2)))
        x = norm(linear(wide, layer + "output.dense") + x, layer + "output.LayerNorm")
    return x


def test_graph_computes_what_the_paper_says_and_padding_changes_nothing(
    weights: dict[str, Floats], tmp_path: Path
) -> None:
    save_file(weights, tmp_path / "model.safetensors")
    config = {"hidden_size": HIDDEN, "num_attention_heads": HEADS, "num_hidden_layers": LAYERS}
    (tmp_path / "config.json").write_text(json.dumps(config | {"layer_norm_eps": EPSILON}))
    build(tmp_path, tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
    texts = [[3, 1, 4, 1, 5], [9, 2]]
    ids = np.array([text + [0] * (5 - len(text)) for text in texts])
    mask = np.array([[1] * len(text) + [0] * (5 - len(text)) for text in texts])
    (hidden,) = session.run(None, {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)})
    assert hidden.shape == (2, 5, HIDDEN)
    for text, got in zip(texts, hidden, strict=True):
        assert got[: len(text)] == pytest.approx(encode(weights, text), abs=1e-4)
