"""
The published weights of all-MiniLM-L6-v2 as a graph that ONNX Runtime can run, made without torch.

The graph is BERT's encoder (Devlin et al., 2019) written out: embeddings, then six times attention and a feed-forward
part, each added to its input and normalised. Pooling over the words is left to `minilm`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper, save
from safetensors.numpy import load_file

OPSET = 20  # the first with Gelu
IR_VERSION = 9  # what belongs to opset 20; onnx would write a newer one than older runtimes read
MASKED = -1e9  # added to the score of a word that is only padding: its softmax becomes 0

Array = npt.NDArray[Any]


class _Graph:
    """Nodes and constants in the order they are written; every method returns the name of its result."""

    def __init__(self, weights: Mapping[str, Array]) -> None:
        self.nodes: list[NodeProto] = []
        self.constants: list[TensorProto] = []
        self._weights = weights

    def constant(self, value: Any, dtype: type[np.generic] = np.float32) -> str:
        name = f"constant_{len(self.constants)}"
        # np.array, as np.ascontiguousarray would turn a scalar into a vector
        self.constants.append(numpy_helper.from_array(np.array(value, dtype, order="C"), name))
        return name

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        name = f"{kind}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def lookup(self, table: str, rows: str) -> str:
        return self.op("Gather", self.constant(self._weights[f"embeddings.{table}.weight"]), rows)

    def linear(self, x: str, layer: str, scale: float = 1.0) -> str:
        weight, bias = self._weights[f"{layer}.weight"] * scale, self._weights[f"{layer}.bias"] * scale
        return self.op("Add", self.op("MatMul", x, self.constant(weight.T)), self.constant(bias))

    def norm(self, x: str, layer: str, epsilon: float) -> str:
        weight, bias = self._weights[f"{layer}.weight"], self._weights[f"{layer}.bias"]
        return self.op("LayerNormalization", x, self.constant(weight), self.constant(bias), axis=-1, epsilon=epsilon)


def _embeddings(graph: _Graph, epsilon: float) -> str:
    """Word, segment and place, summed: shape (batch, words, hidden)."""
    zero, one = graph.constant(0, np.int64), graph.constant(1, np.int64)
    length = graph.op("Gather", graph.op("Shape", "input_ids"), one)
    places = graph.op("Range", zero, length, one)
    words = graph.lookup("word_embeddings", "input_ids")
    segments = graph.lookup("token_type_embeddings", "token_type_ids")
    x = graph.op("Add", graph.op("Add", words, segments), graph.lookup("position_embeddings", places))
    return graph.norm(x, "embeddings.LayerNorm", epsilon)


def _mask(graph: _Graph) -> str:
    """0 for a word, `MASKED` for padding: shape (batch, 1, 1, words), to be added to attention scores."""
    shaped = graph.op("Unsqueeze", "attention_mask", graph.constant([1, 2], np.int64))
    words = graph.op("Cast", shaped, to=TensorProto.FLOAT)
    return graph.op("Mul", graph.op("Sub", graph.constant(1.0), words), graph.constant(MASKED))


def _attention(graph: _Graph, x: str, layer: str, mask: str, heads: int, size: int) -> str:
    """Add the self-attention of a layer to the graph, and return its output."""
    split = graph.constant([0, 0, heads, size], np.int64)
    join = graph.constant([0, 0, heads * size], np.int64)

    def part(name: str, perm: list[int], scale: float = 1.0) -> str:
        projected = graph.linear(x, f"{layer}.attention.self.{name}", scale)
        return graph.op("Transpose", graph.op("Reshape", projected, split), perm=perm)

    query = part("query", [0, 2, 1, 3], scale=size**-0.5)
    key = part("key", [0, 2, 3, 1])
    value = part("value", [0, 2, 1, 3])
    scores = graph.op("Softmax", graph.op("Add", graph.op("MatMul", query, key), mask), axis=-1)
    mixed = graph.op("Transpose", graph.op("MatMul", scores, value), perm=[0, 2, 1, 3])
    return graph.linear(graph.op("Reshape", mixed, join), f"{layer}.attention.output.dense")


def build(source: Path, target: Path) -> None:
    """
    Write the graph of one BERT encoder.

    Args:
        source: folder with `config.json` and `model.safetensors`, as sentence-transformers publishes them.
        target: the file to write. Inputs `input_ids`, `attention_mask`, `token_type_ids`: int64, (batch, words).
            Output `last_hidden_state`: float32, (batch, words, hidden).
    """
    config = json.loads((source / "config.json").read_text())
    hidden, heads, epsilon = config["hidden_size"], config["num_attention_heads"], config["layer_norm_eps"]
    graph = _Graph(load_file(source / "model.safetensors"))
    mask = _mask(graph)
    x = _embeddings(graph, epsilon)
    for number in range(config["num_hidden_layers"]):
        layer = f"encoder.layer.{number}"
        attended = _attention(graph, x, layer, mask, heads, hidden // heads)
        x = graph.norm(graph.op("Add", attended, x), f"{layer}.attention.output.LayerNorm", epsilon)
        wide = graph.op("Gelu", graph.linear(x, f"{layer}.intermediate.dense"))
        narrow = graph.linear(wide, f"{layer}.output.dense")
        x = graph.norm(graph.op("Add", narrow, x), f"{layer}.output.LayerNorm", epsilon)
    graph.nodes.append(helper.make_node("Identity", [x], ["last_hidden_state"]))
    save(_model(graph, hidden), target)


def _model(graph: _Graph, hidden: int) -> ModelProto:
    """The finished model: inputs, output and graph."""
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "words"])
        for name in ("input_ids", "attention_mask", "token_type_ids")
    ]
    output = helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["batch", "words", hidden])
    made = helper.make_graph(graph.nodes, "encoder", inputs, [output], graph.constants)
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)


if __name__ == "__main__":  # a process of its own: building holds the interpreter for seconds, and half a gigabyte
    build(Path(sys.argv[1]), Path(sys.argv[2]))
