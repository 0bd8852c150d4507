"""A model, a tokenizer, an address or a token that will not do is named, with what to do."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest
from palimpsest.commands.doctor import machine
from palimpsest.commands.doctor.finding import State
from palimpsest.settings.embedding_models import embedding_model
from palimpsest.settings.load import load
from palimpsest.settings.policy import ListenPolicy, ModelPolicy, Policy

from tests.running import ROOT, Proxy, free_port
from tests.tiny_models import build_tiny_model

pytestmark = pytest.mark.slow

FREE = Policy(listen=ListenPolicy(port=0))


def test_a_model_makes_a_vector(model_folder: Path) -> None:
    found = machine.model(ModelPolicy(folder=model_folder))
    assert found.state is State.OK
    assert found.found.startswith(f"all-MiniLM-L6-v2 in {model_folder}: loads, one vector in ")


def test_what_another_model_lacks_and_how_to_get_it_is_said(tmp_path: Path) -> None:
    wanted = embedding_model("intfloat/multilingual-e5-large")
    assert wanted is not None
    policy = ModelPolicy(name=wanted.name, folder=tmp_path / "mine", cache=tmp_path / "cache")
    found = machine.model(policy)
    assert found.state is State.WARNING
    assert f"no embedding model {wanted.name} on this machine" in found.found
    assert found.found.endswith("lacks model.onnx, model.onnx_data, tokenizer.json, tokenizer_config.json")
    assert f"palimpsest model install --model {wanted.name} (2,240 MB)" in found.advice
    build_tiny_model(wanted, tmp_path / "mine")
    assert machine.model(policy).found.startswith(f"{wanted.name} in {tmp_path / 'mine'}: loads")


def test_a_missing_model_is_no_failure_and_a_damaged_one_is(tmp_path: Path) -> None:
    nowhere = ModelPolicy(cache=tmp_path)
    found = machine.model(nowhere)
    assert found.state is State.WARNING and found.advice.startswith("palimpsest model install")
    assert "model.folder" in machine.model(nowhere.model_copy(update={"download": "never"})).advice
    for name in ("model.onnx", "tokenizer.json", "tokenizer_config.json"):
        (tmp_path / name).write_text("{}")
    found = machine.model(ModelPolicy(folder=tmp_path))
    assert found.state is State.FAILED and "downloaded again" in found.advice


def test_tokenizers_that_cannot_be_had_fail(tmp_path: Path) -> None:
    assert machine.tokenizers().state is State.OK
    program = (
        "from palimpsest.commands.doctor.machine import tokenizers; import sys; sys.stdout.write(str(tokenizers()))"
    )
    nowhere = {
        "TIKTOKEN_CACHE_DIR": str(tmp_path),
        "HTTPS_PROXY": "http://127.0.0.1:1",
        "PYTHONPATH": str(ROOT / "proxy"),
    }
    said = subprocess.run([sys.executable, "-c", program], env=nowhere, capture_output=True, text=True).stdout
    assert "State.FAILED" in said and "TIKTOKEN_CACHE_DIR" in said


def test_a_free_port_is_fine_and_a_taken_one_is_not() -> None:
    assert machine.port(FREE).state is State.OK
    found = machine.port(Policy(listen=ListenPolicy(port=free_port())))
    assert found.state is State.OK and "is free" in found.found
    with socket.create_server(("127.0.0.1", 0)) as other:
        found = machine.port(Policy(listen=ListenPolicy(port=other.getsockname()[1])))
    assert found.state is State.FAILED and "another program" in found.found


def test_an_address_of_another_machine_fails() -> None:
    found = machine.port(Policy(listen=ListenPolicy(host="192.0.2.1", port=free_port())))
    assert found.state is State.FAILED


def test_a_running_proxy_is_told_from_another_and_says_how_it_is(own_proxy: Proxy, tmp_path: Path) -> None:
    own_proxy.env["PALIMPSEST_MODEL__CACHE"] = str(tmp_path)
    with own_proxy:
        flags = {"port": own_proxy.port, "data": str(own_proxy.data)}
        found = machine.port(load(None, {}, flags | {"upstream": own_proxy.upstream_url}))
        assert found.state is State.WARNING and "the proxy is running; the embedding model is missing" in found.found
        assert machine.port(load(None, {}, flags)).state is State.FAILED


def test_the_operators_token_is_there_or_need_not_be(tmp_path: Path) -> None:
    outside = Policy(listen=ListenPolicy(host="0.0.0.0"))
    assert machine.admin_token(FREE, {}).state is State.OK
    assert machine.admin_token(outside, {}).state is State.WARNING
    assert machine.admin_token(outside, {"PALIMPSEST_ADMIN_TOKEN": "x" * 16}).state is State.OK
    short = machine.admin_token(outside, {"PALIMPSEST_ADMIN_TOKEN": "hunter2"})
    assert short.state is State.WARNING and "hunter2" not in str(short)
    assert machine.admin_token(FREE, {"PALIMPSEST_ADMIN_TOKEN_FILE": str(tmp_path / "no")}).state is State.FAILED
