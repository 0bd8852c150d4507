"""
How the store behaves when it is large, with text of conversations that people had.

    .venv/bin/python -m scripts.scale ../shared/data/locomo --copies 128 [--turns 40 800]
    .venv/bin/python -m scripts.scale ../shared/data/locomo (--cold 1000 10000 | --migrate 5000)

Needs Debian's postgresql-15. Tenants are written as the proxy writes them, and their rows are copied, with ids of their
own, as often as is said: 19 small tenants and a large one. What a copied head lists still names the rows it is a copy
of. Vectors are made of words, without a model.
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from itertools import cycle
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory

import numpy as np
from palimpsest.domain import Head, Json, Query, Reach
from palimpsest.evaluation.datasets import read
from palimpsest.memory.archive import Archive
from palimpsest.memory.index.passage_tables import PassageTables
from palimpsest.settings.policy import Policy
from palimpsest.store.erasure.selection import Target
from palimpsest.store.search.scope import Scope
from palimpsest.telemetry.metrics import Metrics

from scripts.store_cost import processor_seconds
from tests.remembered import DIMENSIONS, WordEmbedder
from tests.servers import ADMIN, Server, running_server
from tests.talking import Talk, assistant, heard, newest, record, user

TENANTS, SMALL_TURNS, LARGE_TURNS = 20, 40, 800  # of these tenants the last is large; the turns of each are an option
TURNS = 20  # of a conversation
SEGMENT = 1 << 14  # ids move by so many, so that lists of passages keep their segments
TRIES = 100
WRITE_SECONDS = 20.0
TOGETHER = (1, 32)  # tenants whose turns are written in one transaction, as where they come at the same time
COLD_TRIES = 5
AT_ONCE = 1_000  # messages of one request

COPIES = """
SET session_replication_role = replica;
CREATE TEMPORARY TABLE copy AS SELECT number, number * {by} AS ids FROM generate_series({first}, {last}) AS one(number);
INSERT INTO tenant SELECT id + ids, name || '/' || number FROM copy, tenant WHERE id < {by};
INSERT INTO conversation SELECT id + ids, tenant + ids, public, role, parent, user_id, scope, created_at
    FROM copy, conversation WHERE id < {by};
INSERT INTO content SELECT id + ids, tenant + ids, digest, text, rest FROM copy, content WHERE id < {by};
INSERT INTO turn SELECT id + ids, tenant + ids, key || '/' || number, conversation + ids, parent + ids, role, event,
    kept, messages, ending, model, prompt_tokens, explain, created_at FROM copy, turn WHERE id < {by};
INSERT INTO occurrence SELECT id + ids, tenant + ids, conversation + ids, turn + ids, position, content + ids,
    fingerprint, opening, flags, role, created_at FROM copy, occurrence WHERE id < {by};
INSERT INTO head SELECT turn + ids, tenant + ids, conversation + ids, replaces, state, lost, base, listing
    FROM copy, head WHERE turn < {by};
INSERT INTO link SELECT tenant + ids, fingerprint, kind, conversation + ids, turn + ids FROM copy, link
    WHERE turn < {by};
INSERT INTO memory SELECT id + ids, tenant + ids, conversation + ids, occurrence + ids, start, stop, tags, kind
    FROM copy, memory WHERE id < {by};
INSERT INTO memory_text(rowid, tokens) SELECT rowid + ids, regexp_replace(tokens, '\\S+ \\S+$', '')
    || E'\\ue000t' || (memory.tenant + ids) || E' \\ue000c' || (conversation + ids)
    FROM copy, memory_text JOIN memory ON id = rowid WHERE rowid < {by};
INSERT INTO posting SELECT tenant + ids, term, segment + (ids >> 14), ARRAY(SELECT id + ids FROM unnest(passages) AS id)
    FROM copy, posting WHERE tenant < {by};
INSERT INTO posted SELECT tenant + ids, passage + ids FROM copy, posted WHERE tenant < {by};
INSERT INTO vector(tenant, memory, model, own) SELECT tenant + ids, memory + ids, model, own FROM copy, vector
    WHERE memory < {by};
SELECT setval(format('%I', sequencename)::regclass, last_value + ({last} - {first} + 1) * {by}) FROM pg_sequences
    WHERE last_value IS NOT NULL AND sequencename LIKE '%\\_id\\_seq'
"""
LARGEST = """
SELECT relname, pg_total_relation_size(oid) FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
ORDER BY 2 DESC LIMIT 8
"""


@asynccontextmanager
async def archived(url: str, data: Path | None = None) -> AsyncIterator[Archive]:
    """An archive on a database of a server; "": in a file, of this folder or one that goes with it."""
    with TemporaryDirectory() as folder:
        policy = Policy.model_validate({"data": data or folder, "store": {"url": url}})
        archive = Archive(policy, Metrics(), WordEmbedder())
        await archive.database.open()
        try:
            yield archive
        finally:
            await archive.close()


async def say(archive: Archive, tenant: str, turns: int, texts: Callable[[], str]) -> None:
    for begin in range(0, turns, TURNS):
        talk = Talk(archive.journal, tenant, f"c-{begin}")
        for _ in range(min(TURNS, turns - begin)):
            await talk.say(texts(), texts())


async def say_together(archive: Archive, tenants: Sequence[str], texts: Callable[[], str]) -> None:
    """A conversation of each tenant, the turns of all in the same transactions."""
    histories: list[tuple[Json, ...]] = [()] * len(tenants)
    heads: list[Head | None] = [None] * len(tenants)
    for _ in range(TURNS):
        histories = [(*history, user(texts())) for history in histories]
        asked = [
            record(history, head, tenant=tenant, conversation="c-new")
            for history, head, tenant in zip(histories, heads, tenants, strict=True)
        ]
        await archive.journal.write(asked)
        answers = [texts() for _ in tenants]
        await archive.journal.write(answers=[heard(one, answer) for one, answer in zip(asked, answers, strict=True)])
        histories = [(*history, assistant(answer)) for history, answer in zip(histories, answers, strict=True)]
        newest_two = zip(histories, tenants, strict=True)
        heads = [await newest(archive.journal, history[-2:], tenant) for history, tenant in newest_two]


async def timed(work: Callable[[int], Awaitable[object]], tries: int) -> str:
    """The median and the 95th percentile of some calls, in milliseconds."""
    spent = []
    for number in range(tries):
        began = time.perf_counter()
        await work(number)
        spent.append(1000 * (time.perf_counter() - began))
    return f"p50 {median(spent):.1f} ms, p95 {quantiles(spent, n=20)[-1]:.1f} ms"


def told(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


async def grow(
    server: Server, url: str, archive: Archive, copies: int, turns: Sequence[int], texts: Callable[[], str]
) -> None:
    """Write the first tenants, and copy them. `turns`: of a small one, and of the large one."""
    for number in range(TENANTS):
        await say(archive, f"t-{number}", turns[number == TENANTS - 1], texts)
    await index(archive)
    ((last,),) = server.rows(url, "SELECT max(last_value) FROM pg_sequences")
    by = (int(last) // SEGMENT + 1) * SEGMENT
    for first in range(1, copies, 16):
        script = COPIES.format(by=by, first=first, last=min(first + 15, copies - 1))
        server.psql(script, url.rpartition("/")[2], user=ADMIN)
    server.psql("VACUUM ANALYZE", url.rpartition("/")[2], user=ADMIN)


async def large(
    server: Server, copies: int, sizes: Sequence[int], texts: Callable[[], str], questions: Sequence[str]
) -> None:
    url = server.new_database()
    async with archived(url) as archive:
        began = time.monotonic()
        await grow(server, url, archive, copies, sizes, texts)
        ((turns, tenants, size),) = server.rows(
            url,
            "SELECT (SELECT count(*) FROM turn), (SELECT count(*) FROM tenant), pg_database_size(current_database())",
        )
        spent_seconds = time.monotonic() - began
        told(f"{turns:,} turns of {tenants:,} tenants in {spent_seconds:.0f} s; {size / turns:,.0f} bytes a turn")
        told("; ".join(f"{name} {table / turns:,.0f}" for name, table in server.rows(url, LARGEST)))
        for together in TOGETHER:
            written, began = 0, time.monotonic()
            while time.monotonic() - began < WRITE_SECONDS:
                numbers = range(written, written + together)
                tenants = [f"t-{number % TENANTS}/{number % copies}" for number in numbers]
                await say_together(archive, tenants, texts)
                written += TURNS * together
            rate = written / (time.monotonic() - began)
            told(f"one writer, {together} tenants in a transaction, two for a turn: {rate:.0f} turns a second")

        def asks(seed: Callable[[int], int], archive: Archive) -> Callable[[int], Awaitable[object]]:
            recall = archive.recall()

            async def ask(number: int) -> None:
                tenant = f"t-{seed(number)}/{1 + number % (copies - 1)}"
                await recall.recall(Query(tenant, "c-0", questions[number % len(questions)], Reach.TENANT), 24)

            return ask

        small, big = (asks(seed, archive) for seed in (lambda number: number % (TENANTS - 1), lambda _: TENANTS - 1))
        for name, ask in (("small", small), ("large", big)):
            told(f"recall of {TRIES} {name} tenants, each for the first time: {await timed(ask, TRIES)}")
            told(f"the same again: {await timed(ask, TRIES)}")
        for name, seed in (("small", 1), ("large", TENANTS - 1)):
            began = time.monotonic()
            await archive.forgetting.erase(Target(tenant=f"t-{seed}/1"))
            told(f"erasing a {name} tenant: {time.monotonic() - began:.1f} s")


async def cold(url: str, sizes: Sequence[int], texts: Callable[[], str], others: Callable[[], float]) -> None:
    """What the first read of a scope of so many passages takes; `others`: processor seconds of a server."""
    name = "PostgreSQL" if url else "SQLite"
    async with archived(url) as archive:
        for wanted in sizes:
            tenant, there, number = f"of {wanted}", 0, 0
            while there < wanted:
                number += 1
                messages = [(user, assistant)[at % 2](f"{number}.{at}: {texts()}") for at in range(AT_ONCE)]
                await archive.journal.write([record(messages, tenant=tenant, conversation=f"c-{number}")])
                ((there,),) = await archive.database.read(
                    "SELECT count(*) FROM memory WHERE tenant = (SELECT id FROM tenant WHERE name = ?)", (tenant,)
                )
            rows = await archive.database.read("SELECT memory FROM unindexed")
            random = np.random.default_rng(0)
            vectors = {id: random.standard_normal(DIMENSIONS, np.float32) / DIMENSIONS**0.5 for (id,) in rows}
            await archive.derived.save_vectors(WordEmbedder.name, vectors)
            ((id,),) = await archive.database.read("SELECT id FROM tenant WHERE name = ?", (tenant,))
            before = time.process_time(), others()
            elapsed = await timed(partial(read_first, archive, Scope(id, Reach.TENANT)), COLD_TRIES)
            own, theirs = (
                1000 * (now - then) / COLD_TRIES
                for now, then in zip((time.process_time(), others()), before, strict=True)
            )
            told(f"{name}, {there:,} passages: {own:.0f} ms of our processor and {theirs:.0f} of its; {elapsed}")


async def read_first(archive: Archive, scope: Scope, _: int) -> None:
    tables = PassageTables(WordEmbedder.name, DIMENSIONS)
    await archive.database.ask(lambda ask: tables.table(ask, scope))


async def index(archive: Archive) -> None:
    indexer = archive.indexer()
    while await indexer.index_batch():
        pass


async def fill(folder: Path, turns: int, texts: Callable[[], str]) -> None:
    async with archived("", folder) as archive:
        await say(archive, "t-0", turns, texts)
        await index(archive)


def migrate(server: Server, turns: int, texts: Callable[[], str]) -> None:
    """How long the command takes there and back, with what it compares."""
    with TemporaryDirectory() as folder:
        here, url, back = Path(folder) / "here", server.new_database(), Path(folder) / "back"
        here.mkdir()
        asyncio.run(fill(here, turns, texts))
        for source, target in ((here, url), (url, back)):
            began = time.monotonic()
            command = [sys.executable, "-m", "palimpsest", "migrate", "--data", str(here)]
            command += ["--from", str(source), "--to", str(target)]
            subprocess.run(command, check=True)
            seconds = time.monotonic() - began
            told(f"{turns:,} turns in {seconds:.1f} s, {turns / seconds:.0f} a second")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="conversations whose text is archived")
    one = parser.add_mutually_exclusive_group(required=True)
    one.add_argument("--copies", type=int, metavar="N", help="copies of 20 tenants on PostgreSQL")
    parser.add_argument(
        "--turns",
        type=int,
        nargs=2,
        metavar="N",
        default=(SMALL_TURNS, LARGE_TURNS),
        help="of a small and of the large tenant that --copies copies, default 40 800",
    )
    one.add_argument("--cold", type=int, nargs="+", metavar="N", help="passages of scopes read first, on both engines")
    one.add_argument("--migrate", type=int, metavar="N", help="turns to the server, and back")
    arguments = parser.parse_args()
    conversations = read(arguments.data)
    texts = cycle([said.text for conversation in conversations for said in conversation.messages])
    questions = [question.text for conversation in conversations for question in conversation.questions]
    with running_server() as server:
        if arguments.migrate:
            migrate(server, arguments.migrate, lambda: next(texts))
        elif arguments.cold:
            asyncio.run(cold("", arguments.cold, lambda: next(texts), lambda: 0.0))
            others = partial(processor_seconds, server.processes()[0])
            asyncio.run(cold(server.new_database(), arguments.cold, lambda: next(texts), others))
        else:
            asyncio.run(large(server, arguments.copies, arguments.turns, lambda: next(texts), questions))


if __name__ == "__main__":
    main()
