"""A real language model behind the running proxy: whether SmolLM2 makes use of what memory adds."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.running import ROOT, Conversation, Proxy, free_port, request, until

pytestmark = pytest.mark.slow

SCRIPT = ROOT / "scripts" / "real-model"
FACTS = {  # the key of an answer, what was told, what is asked
    "Pfeffernuss": ("We adopted a puppy, a little beagle. We named her Pfeffernuss.", "What is our puppy called?"),
    "Oluwaseun": ("My new manager is called Oluwaseun Adeyemi.", "What is the name of my manager?"),
    "9417": ("The metrics exporter listens on port 9417.", "On which port does the metrics exporter listen?"),
    "Kepler": ("The quarterly review is in room Kepler.", "In which room is the quarterly review?"),
}
LEAST = 2  # of the four, at least: the model is small, and processors round differently


@pytest.fixture(scope="module")
def model_url() -> Iterator[str]:
    fetched = subprocess.run([SCRIPT, "fetch"], capture_output=True, text=True)
    if fetched.returncode:
        pytest.skip(f"scripts/real-model fetch failed: {fetched.stderr.strip().splitlines()[-1:]}")
    port = free_port()
    with subprocess.Popen(
        [SCRIPT, "--port", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as server:
        try:
            until(lambda: _answers(port), "the model to be served")
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            server.terminate()


def _answers(port: int) -> bool:
    try:
        return request(port, "GET", "/health").status == 200
    except OSError:
        return False


@pytest.mark.usefixtures("model_folder")
def test_a_real_model_answers_from_what_was_said_in_another_conversation(tmp_path: Path, model_url: str) -> None:
    said = {"model": "smollm2", "temperature": 0, "max_tokens": 32}
    system = "You are a helpful assistant. Answer briefly."
    user = {"x_palimpsest_user": "ana"}
    with Proxy(tmp_path / "data", model_url) as proxy:
        told = Conversation(proxy, "sk-1", system, user, said)
        for fact, _ in FACTS.values():
            assert told.say(fact).status == 200
        proxy.settle()
        asking = Conversation(proxy, "sk-1", system, user | {"x_palimpsest_conversation": "another"}, said)
        right = {
            memory: [key for key, (_, question) in FACTS.items() if key in asking.ask(question, **switch).text]
            for memory, switch in {
                "with": {"x_palimpsest_memory": "read-only"},
                "without": {"x_palimpsest_memory": "off"},
            }.items()
        }
    assert len(right["with"]) >= LEAST and right["without"] == [], right
