"""The demo tells the truth: what was lost comes back, with the model and without, on a terminal and in a pipe."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.running import ROOT, Proxy

pytestmark = pytest.mark.slow

COLUMNS = 100


def demo(*command: str, **env: str) -> str:
    assert Proxy.fork_server is not None
    ended = Proxy.fork_server.run(command or ("demo",), os.environ | env)
    assert (ended.returncode, ended.stderr) == (0, ""), ended.stdout
    return ended.stdout


def plain(page: str) -> str:
    """Without spaces at line ends, and without the count that depends on how passages are cut."""
    return re.sub(r"… \d+ more lines *", "… more lines", re.sub(r" +$", "", page, flags=re.M))


def test_on_the_page_the_conversation_shows_what_came_back_until_it_is_stopped() -> None:
    program = [str(Path(sys.executable).with_name("palimpsest")), "demo", "--web"]
    with subprocess.Popen(program, cwd=ROOT, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        url = running.stdout.readline().rpartition(" ")[2].strip()
        with urlopen(url) as answer:
            page = answer.read().decode()
        running.send_signal(signal.SIGINT)
    assert "came back" in page and "7431" in page
    assert running.returncode == 0


def test_what_was_lost_comes_back_and_only_with_memory() -> None:
    said = demo()
    without, _, with_memory = said.partition("it answers: It should")
    assert "it answers: I do not know" in without
    assert "7431" in with_memory and "0042_split_ledger.sql" in with_memory
    assert "compaction:summary" in said and "helps with a probability" in said
    best = said.partition("best found")[2].splitlines()[1:3]
    assert any("7431" in line for line in best) and any("0042_split" in line for line in best), "what answers, first"
    assert "export OPENAI_BASE_URL=" in said
    excerpt = (ROOT / "README.md").read_text().partition("<!-- demo -->\n```text\n")[2].partition("\n```\n")[0]
    assert plain(excerpt) in plain(said), "put the demo's output into README.md"


def test_page_fits_a_terminal_of_a_hundred_columns_and_half_a_minute_of_reading() -> None:
    lines = demo("serve", "--demo", COLUMNS="240").splitlines()
    assert max(map(len, lines)) <= COLUMNS
    assert len(lines) <= 60
    assert "\x1b" not in "".join(lines), "no colours in a pipe"


def test_without_the_model_it_works_by_words_and_says_so(tmp_path: Path) -> None:
    said = demo(XDG_CACHE_HOME=str(tmp_path))
    assert "searched by words alone" in said
    assert "7431" in said.partition("it answers: It should")[2]
