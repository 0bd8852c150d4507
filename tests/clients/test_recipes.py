"""What the documents tell people to copy does what they say. The configurations of programs: `tests/clients/cli`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from palimpsest.evaluation.scripted import ScriptedUpstream

from tests.clients.cli.program import installed
from tests.clients.recipes import DOCUMENTS, ENVIRONMENTS, LIBRARIES, at, recipe, recipes
from tests.running import Proxy

pytestmark = pytest.mark.slow

BY_HAND = ("crewAI",)  # it takes a gigabyte to install
ELSEWHERE = {*LIBRARIES.values()}  # `tests/clients/test_parity.py` runs them
PYTHON = [
    (document, client, block)
    for document in DOCUMENTS
    for client, block in recipes(document, "python")
    if client not in BY_HAND and block not in ELSEWHERE
]


@pytest.mark.parametrize(("client", "block"), [found[1:] for found in PYTHON], ids=[f"{d}-{c}" for d, c, _ in PYTHON])
def test_python_recipe_runs(
    proxy: Proxy, upstream: ScriptedUpstream, key: str, tmp_path: Path, client: str, block: str
) -> None:
    upstream.script = lambda _: "hello to you"
    python = installed(f"{ENVIRONMENTS[client]}/bin/python") if client in ENVIRONMENTS else sys.executable
    env = os.environ | {"OPENAI_API_KEY": key, "ANTHROPIC_API_KEY": key, "OPENAI_AGENTS_DISABLE_TRACING": "1"}
    ended = subprocess.run(
        [python, "-c", at(block, proxy.url) + "\nprint(answer)"], env=env, cwd=tmp_path, capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr
    assert "hello to you" in ended.stdout and upstream.received


def test_javascript_recipe_runs(proxy: Proxy, upstream: ScriptedUpstream, key: str, tmp_path: Path) -> None:
    upstream.script = lambda _: "hello to you"
    (tmp_path / "node_modules").symlink_to(installed("npm/node_modules"))
    (tmp_path / "recipe.mjs").write_text(recipe("Vercel AI SDK", "js", proxy.url))
    command, env = ["node", "recipe.mjs"], os.environ | {"OPENAI_API_KEY": key}
    ended = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert "hello to you" in ended.stdout and upstream.received


def test_command_line_recipe_goes_on_with_its_conversation(
    proxy: Proxy, upstream: ScriptedUpstream, key: str, tmp_path: Path
) -> None:
    upstream.script = lambda body: f"hello to you, for the {len(body['messages'])}. time, and come again soon"
    env = os.environ | {"OPENAI_API_KEY": key, "LLM_USER_PATH": str(tmp_path)}
    env["PATH"] = f"{installed('llm/bin/llm').parent}{os.pathsep}{env['PATH']}"
    for command, number in ((recipe("llm", "sh", proxy.url), 1), (f"OPENAI_BASE_URL={proxy.url} llm -c again", 3)):
        ended = subprocess.run(["bash", "-c", command], env=env, capture_output=True, text=True)
        assert ended.returncode == 0, ended.stderr
        assert f"for the {number}. time" in ended.stdout
    conversations = proxy.get("/memory/v1/conversations?limit=1").json["conversations"]
    assert conversations[0]["events"] == {"start": 1, "append": 1}
