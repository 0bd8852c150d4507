"""What the app says of itself when it starts and stops."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from io import StringIO
from math import ceil
from pathlib import Path
from typing import Any

import orjson
import pytest
import structlog
from palimpsest.app import create_app
from palimpsest.domain import Json
from palimpsest.evaluation.scripted import Reply, ScriptedUpstream
from palimpsest.memory.tokens.counter import MESSAGE_TOKENS, UNKNOWN_TOKENIZER_RATIO, encoder
from palimpsest.settings.policy import LogPolicy, Policy
from palimpsest.telemetry.logs import configure

from tests.running import ROOT, Proxy, rows


@pytest.fixture
def log() -> Iterator[StringIO]:
    """Where log lines go; afterwards logging is as it was."""
    root = logging.getLogger()
    before = (root.handlers[:], root.level)
    stream = StringIO()
    configure(LogPolicy(), stream)
    yield stream
    root.handlers[:], root.level = before
    logging.captureWarnings(False)
    structlog.reset_defaults()


async def test_what_ends_the_app_stands_in_the_log(tmp_path: Path, log: StringIO) -> None:
    asked = iter(("lifespan.startup",))

    async def receive() -> dict[str, Any]:
        for kind in asked:
            return {"type": kind}
        raise PermissionError(13, "Permission denied")

    async def send(_message: Any) -> None: ...

    policy = Policy.model_validate({"data": tmp_path, "model": {"download": "never", "cache": tmp_path}})
    with pytest.raises(PermissionError):
        await create_app(policy, {})({"type": "lifespan", "state": {}}, receive, send)
    assert "PermissionError (Permission denied)" in log.getvalue()
    assert "test_app.py" in log.getvalue(), "where it happened"


def test_app_of_the_standard_policy_keeps_its_data_below_the_home_folder(tmp_path: Path) -> None:
    program = (
        "from palimpsest.app import create_app; from palimpsest.settings.policy import Policy; create_app(Policy(), {})"
    )
    data = tmp_path / ".local" / "share" / "palimpsest"
    data.mkdir(parents=True)
    environment = os.environ | {"HOME": str(tmp_path), "PYTHONPATH": str(ROOT / "proxy")}
    subprocess.run([sys.executable, "-c", program], env=environment, cwd=tmp_path, check=True)
    assert [file.name for file in data.iterdir()] == ["secret"]
    assert [file.name for file in tmp_path.iterdir()] == [".local"]


@pytest.mark.slow
def test_missing_token_files_are_told_and_requests_pass(tmp_path: Path, upstream: ScriptedUpstream) -> None:
    upstream.play("It is noted.")
    nothing = tmp_path / "nothing"
    nothing.mkdir()
    with Proxy(tmp_path / "data", upstream.url, TIKTOKEN_CACHE_DIR=str(nothing)) as proxy:
        assert any("tokens cannot be counted" in reason for reason in proxy.ready()["reasons"])
        answered = proxy.chat({"model": "gpt-4o", "messages": [{"role": "user", "content": "Hello."}]})
        assert (answered.status, answered.said("note")) == (200, "fault")
    assert list(nothing.iterdir()) == []


@pytest.mark.slow
def test_ratio_of_an_unknown_tokenizer_is_learnt_from_all_that_was_sent(
    tmp_path: Path, upstream: ScriptedUpstream
) -> None:
    """The provider counts as we begin to: then a block in each request must not move the ratio."""
    ratio = UNKNOWN_TOKENIZER_RATIO
    words = encoder("o200k_base")

    def answer(asked: Json) -> Reply:
        counted = sum(len(words.encode_ordinary(m["content"])) + MESSAGE_TOKENS for m in asked["messages"])
        return Reply("It is noted.", prompt_tokens=ceil(counted * ratio))

    upstream.script = answer
    with Proxy(tmp_path / "data", upstream.url, {"memory": {"reach": "tenant"}}) as proxy:

        def ask(text: str) -> tuple[int, int]:
            """Tokens that we count of the client's own, and those that were added."""
            answered = proxy.chat({"model": "mine", "messages": [{"role": "user", "content": text}]})
            told = orjson.loads(rows(proxy.data, "SELECT explain FROM turn ORDER BY id DESC LIMIT 1")[0][0])
            return told["pressure"]["prompt_tokens"], int(answered.said("added-tokens"))

        ask("The gate code of the harbour warehouse in Trieste is KESTREL-4471, and Marta keeps the key.")
        proxy.settle()
        seen = [ask(f"What is the gate code of the harbour warehouse in Trieste, page {n}?") for n in range(2, 9)]
        assert all(added > 0 for _, added in seen)
        assert max(own for own, _ in seen) - min(own for own, _ in seen) <= 2
