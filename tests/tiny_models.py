"""Tiny embedding models of fastembed's names, and a model hub that serves them on a real socket."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper
from palimpsest.memory.embedding.onnx_graph import build
from palimpsest.settings.embedding_models import EmbeddingModel
from safetensors.numpy import save_file
from tokenizers import Tokenizer, models, pre_tokenizers, processors

TEXTS = (
    "query passage : Which port does Postgres use ? The database is 5433 . I like Thai food more than Italian "
    "quick brown fox jumps over the lazy dog number of archive room and its door opens to left What 3172"
)
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
COMMIT = "a" * 40


def build_tiny_model(model: EmbeddingModel, folder: Path, seed: int = 7) -> Path:
    """
    Everything that fastembed wants of a model, of the right dimensions, with a vector for each of a few dozen words.

    It has no layers: it makes the mean of its words' vectors of a text, so that texts that share words are alike.
    """
    folder.mkdir(parents=True)
    words = dict.fromkeys([*SPECIAL, *TEXTS.split()])
    tokenizer = Tokenizer(models.WordLevel({word: at for at, word in enumerate(words)}, "[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"model_max_length": 64, "pad_token": "[PAD]"}))
    (folder / "special_tokens_map.json").write_text(json.dumps({"pad_token": "[PAD]"}))
    hidden = model.dimensions
    rows = {"word": len(words), "token_type": 2, "position": 64}
    random = np.random.default_rng(seed)
    weights = {
        f"embeddings.{name}_embeddings.weight": np.float32(name == "word") * random.normal(size=(count, hidden))
        for name, count in rows.items()
    }
    weights |= {"embeddings.LayerNorm.weight": np.ones(hidden), "embeddings.LayerNorm.bias": np.zeros(hidden)}
    single = {name: weight.astype(np.float32) for name, weight in weights.items()}
    save_file(single, folder / "model.safetensors")
    config = {"hidden_size": hidden, "num_attention_heads": 1, "num_hidden_layers": 0, "layer_norm_eps": 1e-12}
    (folder / "config.json").write_text(json.dumps(config | {"pad_token_id": 0}))
    (folder / model.files[0]).parent.mkdir(exist_ok=True)
    build(folder, folder / model.files[0])
    (folder / "model.safetensors").unlink()
    for name in model.files[1:]:
        if not (folder / name).exists():
            (folder / name).write_bytes(b"weights that a larger graph would keep outside itself")
    return folder


def build_tiny_cross_encoder(folder: Path, best: str) -> Path:
    """
    Everything that fastembed wants of a cross-encoder. It scores a pair by how often one word stands in it.

    Args:
        best: that word.
    """
    (folder / "onnx").mkdir(parents=True)
    words = {word: at for at, word in enumerate([*SPECIAL, best])}
    tokenizer = Tokenizer(models.WordLevel(words, "[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"model_max_length": 64, "pad_token": "[PAD]"}))
    (folder / "special_tokens_map.json").write_text(json.dumps({"pad_token": "[PAD]"}))
    (folder / "config.json").write_text(json.dumps({"pad_token_id": 0}))
    weights = np.zeros((len(words), 1), np.float32)
    weights[words[best]] = 1
    graph = helper.make_graph(
        [
            helper.make_node("Gather", ["weights", "input_ids"], ["each"]),
            helper.make_node("ReduceSum", ["each", "along"], ["logits"], keepdims=0),
        ],
        "counts",
        [helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["pairs", "tokens"])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["pairs", 1])],
        [numpy_helper.from_array(weights, "weights"), numpy_helper.from_array(np.array([1]), "along")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (folder / "onnx" / "model.onnx").write_bytes(model.SerializeToString())
    return folder


@dataclass
class Hub:
    """What a hub serves, and what it was asked for."""

    files: dict[str, dict[str, Path]]
    """Repository to path to file."""
    url: str = ""
    asked: list[str] = field(default_factory=list)
    refuses: bool = False
    serving: threading.Event = field(default_factory=threading.Event)
    """Cleared, callers wait; set from the beginning."""

    def __post_init__(self) -> None:
        self.serving.set()

    def add(self, repository: str, folder: Path) -> None:
        self.files[repository] = {
            path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()
        }


@contextmanager
def model_hub() -> Iterator[Hub]:
    """A hub that speaks as much of Hugging Face's HTTP API as fetching a model takes."""
    hub = Hub({})

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: object) -> None:
            pass

        def do_HEAD(self) -> None:
            self.do_GET()

        def do_GET(self) -> None:
            path = self.path.partition("?")[0].removeprefix("/")
            hub.asked.append(f"{self.command} {path}")
            hub.serving.wait()
            if hub.refuses:
                return self.answer(503, b"")
            if path.startswith("api/models/"):
                return self.describe(path.removeprefix("api/models/"))
            repository, _, rest = path.partition("/resolve/")
            file = hub.files.get(repository, {}).get(rest.partition("/")[2])
            if file is None:
                return self.answer(404, b"", **{"X-Error-Code": "EntryNotFound"})
            content = file.read_bytes()
            headers = {"ETag": f'"{git_id(content)}"', "X-Repo-Commit": COMMIT, "Accept-Ranges": "bytes"}
            self.answer(200, content, **headers)

        def describe(self, path: str) -> None:
            repository, _, tree = path.partition("/tree/")
            repository = repository.partition("/revision/")[0]
            if repository not in hub.files:
                return self.answer(404, b"{}", **{"X-Error-Code": "RepoNotFound"})
            held = [
                {"type": "file", "path": name, "size": file.stat().st_size, "oid": git_id(file.read_bytes())}
                for name, file in hub.files[repository].items()
            ]
            siblings = [{"rfilename": one["path"]} for one in held]
            told = held if tree else {"id": repository, "modelId": repository, "sha": COMMIT, "siblings": siblings}
            self.answer(200, json.dumps(told).encode(), **{"Content-Type": "application/json"})

        def answer(self, status: int, content: bytes, **headers: str) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if self.command == "GET":
                with suppress(ConnectionError):  # whoever waited has gone
                    self.wfile.write(content)

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        hub.url = f"http://127.0.0.1:{server.server_port}"
        try:
            yield hub
        finally:
            hub.serving.set()
            server.shutdown()
        thread.join()


def git_id(content: bytes) -> str:
    """The id of a file as git, and hence the hub, names it."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
