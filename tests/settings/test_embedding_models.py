"""The embedding models that may be named: the default, and fastembed's."""

from __future__ import annotations

import subprocess
import sys

from fastembed import TextEmbedding
from palimpsest.settings.embedding_models import (
    ALIAS,
    DEFAULT,
    E5_SMALL,
    embedding_model,
    embedding_models,
    unknown_model_error,
)

from tests.running import ROOT


def test_every_model_of_fastembed_may_be_named() -> None:
    theirs = {model["model"]: model for model in TextEmbedding.list_supported_models()}
    ours = embedding_models()
    assert {*theirs} - {ALIAS} <= {*ours} and next(iter(ours)) == DEFAULT.name
    large = ours["intfloat/multilingual-e5-large"]
    assert (large.dimensions, large.megabytes, large.licence) == (1024, 2240, "mit")
    assert large.languages == "Multilingual (~100 languages)"
    assert large.files == ("model.onnx", "model.onnx_data", "tokenizer.json", "tokenizer_config.json")
    assert all(model.languages != "not said" and model.dimensions % 64 == 0 for model in ours.values())


def test_fastembeds_name_of_the_default_means_the_default() -> None:
    assert embedding_model(ALIAS) is embedding_model(DEFAULT.name) is DEFAULT


def test_the_small_multilingual_model_has_the_prefixes_that_its_card_asks_for() -> None:
    small = embedding_model(E5_SMALL)
    assert small is not None
    assert (small.before_question, small.before_passage) == ("query: ", "passage: ")
    assert small.files[0] == "onnx/model.onnx" and small.source == E5_SMALL


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    assert embedding_model("e5") is None
    assert unknown_model_error("BAAI/BGE-small-en").endswith("did you mean BAAI/bge-small-en?")
    assert unknown_model_error("multilingual-e5-larg").endswith("did you mean intfloat/multilingual-e5-large?")
    assert unknown_model_error("zzz").endswith("palimpsest model list says what there is")


def test_the_default_is_known_without_fastembed() -> None:
    program = (
        "import sys\n"
        "from palimpsest.settings import load\n"
        "assert load.load(None, {}, {}).model.name == 'all-MiniLM-L6-v2'\n"
        "assert 'fastembed' not in sys.modules\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
