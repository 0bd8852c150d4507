"""
The embedding models that `model.name` may name: the default, and those that fastembed supports.

fastembed takes half a second and 40 MB to import, so it is imported only where another model than the default is named.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import TYPE_CHECKING

from palimpsest.domain.frozen import frozen

if TYPE_CHECKING:
    from fastembed import TextEmbedding

TOKENIZER = "tokenizer.json"
OPTIONAL = ("config.json", "special_tokens_map.json")
GIGABYTE_IN_MEGABYTES = 1000
STATIC = ".safetensors"  # a table of words' vectors instead of a graph; its tokenizer needs no settings

_LANGUAGES = re.compile(r"\(text[^)]*\)[^,]*, (?:supports )?([^,(]+(?:\([^)]*\))?)", re.IGNORECASE)

# What a model was trained to find before a question and before a passage, from its card; fastembed adds none of these.
_RETRIEVE = "Represent this sentence for searching relevant passages: "
_INSTRUCT = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:"
_PREFIXES = {
    "intfloat/multilingual-e5-*": ("query: ", "passage: "),
    "BAAI/bge-*-en*": (_RETRIEVE, ""),
    "BAAI/bge-*-zh*": ("为这个句子生成表示以用于检索相关文章\uff1a", ""),
    "mixedbread-ai/mxbai-*": (_RETRIEVE, ""),
    "snowflake/*": (_RETRIEVE, ""),
    "nomic-ai/*": ("search_query: ", "search_document: "),
    "Qwen/*": (_INSTRUCT, ""),
    "google/embeddinggemma-*": ("task: search result | query: ", "title: none | text: "),
}


@frozen
class EmbeddingModel:
    """
    One model, as its publisher describes it.

    Args:
        name: as `model.name` has it.
        dimensions: of its vectors, a multiple of 64.
        megabytes: of its files.
        files: that it cannot do without, relative to its folder; the first holds its weights.
        source: repository of the model hub.
        before_question: text that it wants in front of a question; `before_passage` likewise.
    """

    name: str
    dimensions: int
    megabytes: int
    licence: str
    languages: str
    files: tuple[str, ...]
    source: str = ""
    before_question: str = ""
    before_passage: str = ""

    @property
    def every_file(self) -> tuple[str, ...]:
        """All files of the model, those that it can do without last."""
        return (*self.files, *OPTIONAL)


DEFAULT = EmbeddingModel("all-MiniLM-L6-v2", 384, 150, "apache-2.0", "English", ("model.onnx", TOKENIZER))
ALIAS = f"sentence-transformers/{DEFAULT.name}"  # fastembed's name for the default
E5_SMALL = "intfloat/multilingual-e5-small"  # fastembed knows only its large sister


def embedding_model(name: str) -> EmbeddingModel | None:
    """The model of this name; None: there is no such model."""
    return DEFAULT if name in (DEFAULT.name, ALIAS) else embedding_models().get(name)


def unknown_model_error(name: str) -> str:
    """The error text for an unknown model name, with the nearest known name."""
    known = {each.lower(): each for each in embedding_models()}
    short = {each.rpartition("/")[2]: whole for each, whole in known.items()}
    near = get_close_matches(name.lower(), [*known, *short], 1)
    hint = f"did you mean {(known | short)[near[0]]}?" if near else "palimpsest model list says what there is"
    return f"{name!r} is not allowed; there is no such embedding model; {hint}"


@lru_cache(maxsize=1)
def embedding_models() -> Mapping[str, EmbeddingModel]:
    """Every model by its name, the default first. Imports fastembed."""
    found = [_described(**description) for description in text_embedding().list_supported_models()]
    ordered = sorted(found, key=lambda model: model.name.lower())
    return {model.name: model for model in (DEFAULT, *ordered) if model.name != ALIAS}


@lru_cache(maxsize=1)
def text_embedding() -> type[TextEmbedding]:
    """Fastembed's class, which knows every model here, kept from writing to standard error."""
    from fastembed import TextEmbedding
    from fastembed.common.model_description import ModelSource, PoolingType
    from loguru import logger

    logger.disable("fastembed")
    if not any(model["model"] == E5_SMALL for model in TextEmbedding.list_supported_models()):
        TextEmbedding.add_custom_model(
            model=E5_SMALL,
            pooling=PoolingType.MEAN,
            normalization=True,
            sources=ModelSource(hf=E5_SMALL),
            dim=384,
            model_file="onnx/model.onnx",
            license="mit",
            size_in_gb=0.49,
        )
    return TextEmbedding


def _described(
    *,
    model: str,
    dim: int,
    size_in_GB: float,  # noqa: N803  # their name
    license: str,
    description: str,
    model_file: str,
    additional_files: list[str],
    sources: Mapping[str, str],
    **_other: object,
) -> EmbeddingModel:
    """A model as fastembed describes it."""
    config = () if model_file.endswith(STATIC) else ("tokenizer_config.json",)
    languages = _LANGUAGES.search(description)
    said = languages[1] if languages else "multilingual (~100 languages)" if model == E5_SMALL else "not said"
    prefixes = next((both for pattern, both in _PREFIXES.items() if fnmatchcase(model, pattern)), ("", ""))
    return EmbeddingModel(
        *(model, dim, round(size_in_GB * GIGABYTE_IN_MEGABYTES), license, said.removesuffix(" input text")),
        *((model_file, *additional_files, TOKENIZER, *config), sources["hf"], *prefixes),
    )
