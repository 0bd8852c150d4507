"""
Calls of a writer of items with a model, counted at that model behind a running proxy.

python -m scripts.writer_calls DATA.jsonl[.gz] [--conversations N] [--turns N] [--writer NAME]

Replays conversations (as `scripts/prefix_cache.py` reads them) turn by turn through `palimpsest serve`, and lets the
writer read on after each turn, as it does of its own accord every 15 seconds.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from palimpsest.domain import Json
from palimpsest.evaluation.scripted import ScriptedUpstream

from scripts.prefix_cache import conversations
from tests.running import Conversation, Proxy, upstream_on_a_thread

EMPTY = {"lightmem3": '{"topics": []}', "lightmem-slm": '{"items": []}', "epc": '{"questions": ["What was said?"]}'}
SETTLED_SECONDS = 40.0  # behind the last turn: more than two looks of the writer


def policy(writer: str, helper: ScriptedUpstream, upstream: ScriptedUpstream) -> Json:
    local = {"name": "local", "url": helper.url, "models": ["tiny"], "auth": "held"}
    return {
        "upstreams": [local, {"name": "main", "url": upstream.url}],
        "models": {"writer": {"model": "tiny", "upstream": "local", "tokens_a_day": None}},
        "consolidation": {"writer": writer},
    }


def calls(given: argparse.Namespace, helper: ScriptedUpstream, upstream: ScriptedUpstream) -> tuple[int, int]:
    """Turns, and calls of the writer's model."""
    turns, helper.script = 0, lambda _: EMPTY[given.writer]
    settings = policy(given.writer, helper, upstream)
    with TemporaryDirectory() as folder, Proxy(Path(folder) / "data", "", settings) as proxy:
        for number, said in enumerate(conversations(given.data, given.conversations)):
            talk = Conversation(proxy, f"sk-{number}")
            for asked, answered in [*zip(said[::2], said[1::2], strict=False)][: given.turns]:
                upstream.script = lambda _, answered=answered: answered["content"]
                talk.say(asked["content"])
                turns += 1
                time.sleep(given.pause)
        proxy.settle()
        time.sleep(SETTLED_SECONDS)
    return turns, len(helper.received)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--conversations", type=int, default=1)
    parser.add_argument("--turns", type=int, default=40)
    parser.add_argument(
        "--pause", type=float, default=0.0, help="seconds between turns; at 16 the writer looks each time"
    )
    parser.add_argument("--writer", choices=sorted(EMPTY), default="lightmem3")
    given = parser.parse_args()
    with upstream_on_a_thread() as helper, upstream_on_a_thread() as upstream:
        turns, asked = calls(given, helper, upstream)
    sys.stdout.write(
        f"{given.writer}: {asked} calls, {turns / max(asked, 1):.1f} turns a call, {1000 * asked / turns:.0f} a 1,000\n"
    )


if __name__ == "__main__":
    main()
