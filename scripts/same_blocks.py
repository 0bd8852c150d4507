"""
Whether both engines give the same blocks: each question to each conversation is asked on SQLite and on PostgreSQL.

    .venv/bin/python -m scripts.same_blocks ../shared/data/locomo ../shared/data/everyday/*.json tests/everyday/*.json

Needs Debian's postgresql-15. Status 1 where a block, or what was recalled for it, differs in a byte.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

from palimpsest.domain.ports import Embedder, Vectors
from palimpsest.evaluation import questions, vectors
from palimpsest.evaluation.datasets import Conversation, DatasetMessage, Question, read
from palimpsest.evaluation.palimpsest import Palimpsest
from palimpsest.settings.policy import Policy

from tests.servers import Server, made, running_server

BLOCK_CHARS = 2400
APART_SECONDS = 60.0  # between messages of chats that have no time of their own
STARTED_AT = 1_700_000_000.0


class RememberingEmbedder:
    """Gives a question the same vectors on both engines: what a model computes may differ in its last bits."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder, self._known = embedder, dict[tuple[str, ...], Vectors]()
        self.name, self.dimensions, self.ready = embedder.name, embedder.dimensions, True

    async def embed_queries(self, texts: Sequence[str]) -> Vectors:
        if tuple(texts) not in self._known:
            self._known[tuple(texts)] = await self._embedder.embed_queries(texts)
        return self._known[tuple(texts)]

    async def embed_passages(self, texts: Sequence[str]) -> Vectors:
        return await self._embedder.embed_passages(texts)


def conversations_of(path: Path) -> list[Conversation]:
    """What one file holds, each chat with all that is asked about it."""
    if path.suffix != ".json":
        return read(path)
    found = []
    for talk in questions.talks(path, (), 0, (), 0):
        texts = [(said["role"], said["content"]) for said in talk.messages]
        messages = tuple(
            DatasetMessage(f"{at}", role, text, text, STARTED_AT + APART_SECONDS * at, 0, (), talk.messages[at])
            for at, (role, text) in enumerate(texts)
        )
        asked = tuple(Question(f"{at}", one.text, None, one.kind) for at, one in enumerate(talk.asked))
        found.append(Conversation(talk.name, messages, asked, 1))
    return found


async def blocks_of(embedder: Embedder, conversation: Conversation, url: str) -> list[tuple[str, tuple[int, ...]]]:
    """Of each question the block, and what was recalled."""
    policy = Policy.model_validate({"store": {"url": url}})
    async with Palimpsest(embedder, policy).opened(conversation) as reader:
        packs = [await reader.pack(question.text, BLOCK_CHARS) for question in conversation.questions]
    return [(pack.text, tuple(pack.ranked)) for pack in packs]


async def compare(server: Server, paths: Sequence[Path]) -> int:
    """How many questions have different answers."""
    template, wrong = made(server.new_database()).rpartition("/")[2], 0
    async with vectors.opened() as model:
        for path in paths:
            asked = told = differing = 0
            for conversation in conversations_of(path):
                embedder = RememberingEmbedder(model)
                own = await blocks_of(embedder, conversation, "")
                theirs = await blocks_of(embedder, conversation, server.new_database(template))
                asked, told = asked + len(own), told + sum(bool(text) for text, _ in own)
                differing += sum(one != other for one, other in zip(own, theirs, strict=True))
            sys.stdout.write(f"{path}: {asked} questions, {told} blocks, {differing} differ\n")
            sys.stdout.flush()
            wrong += differing
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, nargs="+", help="files or folders that `palimpsest bench recall` reads")
    data = parser.parse_args().data
    with running_server() as server:
        return bool(asyncio.run(compare(server, data)))


if __name__ == "__main__":
    sys.exit(main())
