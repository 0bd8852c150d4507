"""
Figures of an import: a person's account exports, made of benchmark conversations, read by `palimpsest import`.

    scripts/import_figures.py DATA [--conversations 2000] [--embed 4000] [--keep DIR]

DATA is a folder of conversation files (`docs/benchmarks.md`). Half of the conversations become a ChatGPT export, half
one of Claude's. Questions of LoCoMo are then asked of the archive: whether a message that answers them is among the
first ten passages, by words at once, and again when the newest passages, which are LoCoMo's, have their vectors.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

import orjson

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from palimpsest.domain import Json, Query, Reach  # noqa: E402
from palimpsest.evaluation.datasets import Conversation, DatasetMessage, Question, read  # noqa: E402
from palimpsest.memory.archive import Archive  # noqa: E402
from palimpsest.memory.embedding.embedder import LocalEmbedder  # noqa: E402
from palimpsest.settings.policy import Policy, TenantPolicy  # noqa: E402
from palimpsest.telemetry.metrics import Metrics  # noqa: E402

MOST_MESSAGES = 20  # of one conversation: longer ones are cut into several, as people begin anew
ASKED = "locomo"
RESULTS = 10
TENANT = "static:me"
TIME = re.compile(r"real=([\d.]+) peak_kb=(\d+)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--conversations", type=int, default=2000)
    parser.add_argument("--embed", type=int, default=4000, metavar="N", help="passages that get a vector; 0 none")
    parser.add_argument("--questions", type=int, default=400)
    parser.add_argument("--keep", type=Path, metavar="DIR", help="leave files and database here")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures(given.data, given.keep or Path(folder), given.conversations, given.embed, given.questions)


def figures(data: Path, folder: Path, count: int, embedded: int, questions: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    asked = [one for file in files(data, True) for one in read(file)]
    mine = [piece for one in asked for piece in pieces(one)]
    others = (piece for file in files(data, False) for one in read(file) for piece in pieces(one))
    talks = [*islice(others, max(count - len(mine), 0)), *mine]  # what is asked about comes last
    half = len(talks) // 2
    (folder / "a-chatgpt.json").write_bytes(orjson.dumps([chatgpt(n, talk) for n, talk in enumerate(talks[:half])]))
    (folder / "b-claude.json").write_bytes(orjson.dumps([claude(n, talk) for n, talk in enumerate(talks[half:])]))
    size = sum(file.stat().st_size for file in folder.glob("*.json")) / 1e6
    messages = sum(map(len, talks))
    say(f"{len(talks):,} conversations, {messages:,} messages, {size:,.1f} MB")
    for doing in ("import", "import again"):
        seconds, peak = imported(folder)
        say(f"{doing}: {seconds:,.1f} s, {messages / seconds:,.0f} messages/s, {peak / 1e3:,.0f} MB at most")
    wanted = [(one, question) for one in asked for question in one.questions if question.evidence][:questions]
    asyncio.run(ask(folder / "data", wanted, embedded))


def files(data: Path, is_asked: bool) -> list[Path]:
    return [file for file in sorted(data.rglob("*.jsonl*")) if (ASKED in str(file)) == is_asked]


def pieces(conversation: Conversation) -> Iterator[list[DatasetMessage]]:
    """The sessions of a conversation, cut where somebody speaks."""
    talk: list[DatasetMessage] = []
    for message in conversation.messages:
        is_new = talk and message.session != talk[-1].session
        if talk and (is_new or (len(talk) >= MOST_MESSAGES and message.role == "user")):
            yield talk
            talk = []
        if message.role in ("user", "assistant") and message.text:
            talk.append(message)
    if talk:
        yield talk


def chatgpt(number: int, talk: list[DatasetMessage]) -> Json:
    mapping: Json = {"root": {"id": "root", "message": None, "parent": None, "children": []}}
    parent = "root"
    for at, message in enumerate(talk):
        key = f"n-{at}"
        said = {"author": {"role": message.role}, "create_time": message.at, "recipient": "all", "metadata": {}}
        said["content"] = {"content_type": "text", "parts": [message.text]}
        mapping[key] = {"id": key, "parent": parent, "children": [], "message": said}
        parent = key
    named = {"conversation_id": f"g-{number}", "title": "", "create_time": talk[0].at, "current_node": parent}
    return named | {"mapping": mapping}


def claude(number: int, talk: list[DatasetMessage]) -> Json:
    listed = []
    for at, message in enumerate(talk):
        said = {"uuid": f"m-{at}", "sender": "human" if message.role == "user" else "assistant", "text": ""}
        said["created_at"] = datetime.fromtimestamp(message.at, UTC).isoformat()
        listed.append(said | {"content": [{"type": "text", "text": message.text}], "attachments": [], "files": []})
    return {"uuid": f"a-{number}", "name": "", "created_at": listed[0]["created_at"], "chat_messages": listed}


def imported(folder: Path) -> tuple[float, int]:
    """Seconds of one import as a process of its own, and its memory at most, in kB."""
    program = "import resource, sys; from palimpsest.commands.cli import main; status = main(sys.argv[1:]); "
    program += "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss); sys.exit(status)"
    words = ["import", *map(str, sorted(folder.glob("*.json"))), "--config", "personal", "--data", str(folder / "data")]
    started = time.perf_counter()
    command = [sys.executable, "-c", program, *words]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "proxy")}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    seconds = time.perf_counter() - started
    *told, peak = done.stdout.splitlines()
    say("\n".join(f"    {line.rstrip()}" for line in told))
    return seconds, int(peak)


async def ask(data: Path, wanted: list[tuple[Conversation, Question]], embedded: int) -> None:
    policy = Policy(data=data, tenants=TenantPolicy(static="me"))
    metrics = Metrics()
    embedder = LocalEmbedder(policy.model, metrics)
    archive = Archive(policy, metrics, embedder)
    await archive.database.open()
    say(f"answered by words: {await share(archive, wanted)}")
    if embedded and await embedder.warm():
        indexer, started, done = archive.indexer(), time.perf_counter(), 0
        before = await archive.journal.pending()
        while done < embedded and await indexer.index_batch():
            done = before - await archive.journal.pending()
        say(f"embedded {done:,} of {before:,} passages, {done / (time.perf_counter() - started):,.0f}/s")
        say(f"answered by words and meaning: {await share(archive, wanted)}")
    await embedder.close()
    await archive.close()


async def share(archive: Archive, wanted: list[tuple[Conversation, Question]]) -> str:
    """Questions of which a message that answers them is among the results, and how long they took."""
    recall, found, took = archive.recall(), 0, []
    for conversation, question in wanted:
        answers = [m.text for m in conversation.messages if m.id in question.evidence]  # type: ignore[attr-defined]
        query = Query(TENANT, "", question.text, reach=Reach.TENANT)  # type: ignore[attr-defined]
        recalled = await recall.recall(query, RESULTS)
        took.append(recalled.elapsed_ms)
        texts = [candidate.memory.text for candidate in recalled.candidates]
        found += any(text in answer or answer in text for answer in answers for text in texts)
    return f"{found / len(wanted):.0%} of {len(wanted)} questions, {sorted(took)[len(took) // 2]:.0f} ms at the median"


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
