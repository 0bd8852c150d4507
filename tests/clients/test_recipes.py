"""What the documents tell people to copy does what they say. The configurations of programs: `tests/clients/cli`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from palimpsest.scripted import ScriptedUpstream

from tests.clients.cli.program import installed
from tests.clients.recipes import DOCUMENTS, at, recipes
from tests.running import Proxy

pytestmark = pytest.mark.slow

PYTHON = [(document, *found) for document in DOCUMENTS for found in recipes(document, "python")]


@pytest.mark.parametrize(("client", "recipe"), [found[1:] for found in PYTHON], ids=[f"{d}-{c}" for d, c, _ in PYTHON])
def test_python_recipe_runs(
    proxy: Proxy, upstream: ScriptedUpstream, key: str, tmp_path: Path, client: str, recipe: str
) -> None:
    upstream.script = lambda _: "hello to you"
    python = installed("llama-index/bin/python") if client == "LlamaIndex" else sys.executable
    env = os.environ | {"OPENAI_API_KEY": key, "ANTHROPIC_API_KEY": key, "OPENAI_AGENTS_DISABLE_TRACING": "1"}
    ended = subprocess.run(
        [python, "-c", at(recipe, proxy.url) + "\nprint(answer)"], env=env, cwd=tmp_path, capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr
    assert "hello to you" in ended.stdout and upstream.received
