"""Windows are read from lists of models in any server's form."""

from __future__ import annotations

import orjson
import pytest
from palimpsest.domain import Json
from palimpsest.wire.model_list import windows_in


@pytest.mark.parametrize(
    "entry",
    [
        {"max_model_len": 2048},
        {"meta": {"n_ctx": 2048, "n_ctx_train": 32768}},
        {"meta": {"n_ctx_train": 2048}},
        {"context_length": 4096, "top_provider": {"context_length": 2048}},
        {"loaded_context_length": 2048, "max_context_length": 32768},
        {"max_context_length": 2048},
        {"context_window": 2048},
        {"max_input_tokens": 2048},
        {"context_length": 2048, "top_provider": None, "max_model_len": "many"},
    ],
)
def test_window_is_read_where_each_server_names_it(entry: Json) -> None:
    listed = {"object": "list", "data": [{"id": "m"} | entry, {"id": "other"}, "no entry", entry]}
    assert windows_in(orjson.dumps(listed)) == {"m": 2048}
    assert windows_in(orjson.dumps({"id": "m"} | entry)) == {"m": 2048}


@pytest.mark.parametrize("body", [b"", b"[]", b'{"data": {}}', b'{"data": [{"id": "m", "max_model_len": -1}]}'])
def test_list_that_names_no_window_says_nothing(body: bytes) -> None:
    assert windows_in(body) == {}
