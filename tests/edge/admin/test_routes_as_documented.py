"""docs/api.md: its commands work against a running proxy and answer what it shows, and it names every operation."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from palimpsest.evaluation.scripted import ScriptedUpstream

from tests.running import ROOT, Conversation, Proxy, request, until, upstream_on_a_thread

pytestmark = pytest.mark.slow

GUIDE = (ROOT / "docs" / "api.md").read_text()
EXAMPLES = re.findall(r"```sh\n(.*?)```(?:\n\n```json\n(.*?)```)?", GUIDE, re.S)
TOKEN = {"authorization": "Bearer t0ken"}


def settings_for(upstream: ScriptedUpstream) -> dict[str, Any]:
    """One tenant with a key, as the guide has it."""
    return {
        "facts": {"policy": "suggest"},
        "tenants": {"keys": [{"name": "acme", "key_env": "ACME_KEY"}]},
        "upstreams": [{"url": upstream.url, "auth": "held"}],
    }


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """What stands in the guide, and what it is called in a proxy that runs here."""
    upstream = ScriptedUpstream(lambda body: f"Noted: {body['messages'][-1]['content'][:40]}")
    data = tmp_path_factory.mktemp("documented") / "data"
    environment = {"PALIMPSEST_ADMIN_TOKEN": "t0ken", "ACME_KEY": "acme-key"}
    with upstream_on_a_thread(upstream) as up, Proxy(data, "", settings_for(up), **environment) as proxy:
        ann = {"x-palimpsest-user": "ann"}
        for text in ("Write a haiku.", "Name three rivers."):
            Conversation(proxy, "acme-key", headers=ann).say(text)
        talk = Conversation(proxy, "acme-key", headers=ann)
        for text in ("The staging database listens on port 7431.", "Clara lives in Porto.", "Thanks.", "Go on."):
            talk.say(text)
        talk.keep_last(2, "They talked.")
        home = talk.say("Which port did we choose for the staging database?").said("conversation")
        path = f"/memory/v1/conversations/{home}/turns/5"
        until(lambda: request(proxy.port, "GET", path, headers=TOKEN).status == 200, "the turn to be stored")
        page = request(proxy.port, "GET", "/memory/v1/conversations?user=ann&limit=2", headers=TOKEN).json
        yield {
            "http://127.0.0.1:8484": f"http://127.0.0.1:{proxy.port}",
            "$PALIMPSEST_ADMIN_TOKEN": "t0ken",
            "c-5b0c": home,
            "Y29udmVyc2F0aW9ucy40": page["next"],
            "palimpsest openapi": f"{sys.executable} -m palimpsest openapi",
        }


def lacking(shown: Any, answered: Any, path: str = "") -> list[str]:
    """Names that the guide shows and the answer does not have."""
    if isinstance(shown, dict) and path.rpartition(".")[2] not in ("events", "signals"):
        found = [f"{path}.{name}" for name in shown if name not in answered]
        return found + [
            more
            for name in shown.keys() & answered.keys()
            for more in lacking(shown[name], answered[name], f"{path}.{name}")
        ]
    if isinstance(shown, list) and shown and isinstance(shown[0], dict):
        return lacking(shown[0], answered[0], path) if answered else [f"{path}[0]"]
    return []


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_commands_work_and_answer_what_is_shown(names: dict[str, str], tmp_path: Path) -> None:
    assert len(EXAMPLES) > 8
    settings, *examples = EXAMPLES

    def here(text: str) -> str:
        for shown, real in names.items():
            text = text.replace(shown, real)
        return text

    for commands, shown in examples:
        for command in commands.splitlines():
            run = ["bash", "-c", f"set -e; {here(settings[0])}{here(command)}"]
            done = subprocess.run(run, capture_output=True, cwd=ROOT, env=os.environ, timeout=60)
            assert done.returncode == 0, f"{command}: {done.stderr.decode()}"
            answered = orjson.loads(done.stdout)
            if shown and command == commands.splitlines()[-1]:
                assert lacking(orjson.loads(shown), answered) == [], command
