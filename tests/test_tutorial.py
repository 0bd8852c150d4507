"""docs/tutorial.md: its commands, run once in their order, do what it says."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.running import PATIENCE_SECONDS, PATIENT, ROOT, free_port

pytestmark = pytest.mark.slow

TUTORIAL = (ROOT / "docs" / "tutorial.md").read_text()
FILES = re.findall(r"`(\w+\.py)`:\n\n```python\n(.*?)```", TUTORIAL, re.S)
COMMANDS = re.findall(r"```sh\n(.*?)```", TUTORIAL, re.S)


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_commands_of_the_tutorial_do_what_it_says(tmp_path: Path) -> None:
    ports = {"8484": str(free_port()), "9999": str(free_port())}

    def here(text: str) -> str:
        return re.sub("|".join(ports), lambda match: ports[match[0]], text)

    for name, text in FILES:
        (tmp_path / name).write_text(here(text))
    (tmp_path / "scripts").symlink_to(ROOT / "scripts")
    environment = os.environ | {
        "PALIMPSEST_VENV": sys.prefix,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PALIMPSEST_PORT": ports["8484"],
        **PATIENT,
        "PALIMPSEST_MODEL__DOWNLOAD": "never",
    }
    steps = "".join(f"echo '## {number}'\n{here(block)}" for number, block in enumerate(COMMANDS))
    run = subprocess.run(
        ["bash", "-c", f"set -em; trap 'kill $(jobs -p) || true' EXIT\n{steps}"],
        cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=4 * PATIENCE_SECONDS,
    )  # fmt: skip
    assert run.returncode == 0, f"{run.stderr}\n{run.stdout}"
    _, _, _, first, talk, why, other, forgotten, _ = re.split(r"## \d+\n", run.stdout)
    assert "x-palimpsest-event: start" in first and "x-palimpsest-note:" in first
    without, with_memory = talk.splitlines()[-2:]
    assert without.startswith("off") and without.endswith("I do not know any port.")
    assert with_memory.startswith("compaction:summary") and with_memory.endswith("It is port 7431.")
    assert "7431" in why and f"http://127.0.0.1:{ports['8484']}/memory/" in why
    assert "It is port 7431." in other
    assert '"signature"' in forgotten and "I do not know any port." in forgotten
