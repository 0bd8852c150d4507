"""The command line of the fuzzed requests."""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path

import orjson
import structlog

from scripts import fuzz
from scripts.endure.table import Table, note
from scripts.fuzz.bodies import Bodies, Sent, Talk
from scripts.fuzz.comparison import ADDED, SAME
from scripts.fuzz.layers import AT_ONCE, Layer, Routes, Sockets, Wires

BODIES = 1_000_000
ROUTES_SHARE, SOCKETS_SHARE = 0.06, 0.01  # what is left goes through the wires alone, which takes a tenth of the time
TALKS = 8  # of each wire
MOST_TOLD = 20  # requests that were changed, for each layer
LINES = 10  # of the table, for each layer


def main() -> int:
    """Send what the command line says; 1 where a body was changed."""
    parser = argparse.ArgumentParser(
        prog="python -m scripts.fuzz", description=fuzz.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bodies", type=int, default=BODIES, metavar="N", help=f"({BODIES:,})")
    parser.add_argument("--routes", type=float, default=ROUTES_SHARE, metavar="SHARE", help=f"({ROUTES_SHARE})")
    parser.add_argument("--sockets", type=float, default=SOCKETS_SHARE, metavar="SHARE", help=f"({SOCKETS_SHARE})")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of the bodies (1)")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="write what was changed there")
    given = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))  # each body is logged otherwise
    with tempfile.TemporaryDirectory(prefix="palimpsest-fuzz-") as folder:
        return 0 if asyncio.run(_run(given, Path(folder))) else 1


async def _run(given: argparse.Namespace, folder: Path) -> bool:
    talks = [Talk(wire, number) for wire in ("chat", "responses", "messages") for number in range(TALKS)]
    counts = {
        "routes": int(given.bodies * given.routes),
        "sockets": int(given.bodies * given.sockets),
    }
    counts = {"wires": given.bodies - sum(counts.values()), **counts}
    table = Table(("through", "bodies", SAME, ADDED, "changed"))
    is_clean = True
    for number, (name, count) in enumerate(counts.items()):
        bodies = Bodies(talks, given.seed * len(counts) + number)
        async with AsyncExitStack() as opened:
            layer: Layer = Wires(given.seed)
            if name == "routes":
                layer = await opened.enter_async_context(Routes(folder / name, talks).running())
            elif name == "sockets":
                layer = await opened.enter_async_context(Sockets(folder / name, talks, given.seed).running())
            is_clean &= await _sent(name, layer, bodies, count, table, given.keep)
    return is_clean


async def _sent(name: str, layer: Layer, bodies: Bodies, count: int, table: Table, keep: Path | None) -> bool:
    found: Counter[str] = Counter()
    began = 0

    async def work() -> None:
        nonlocal began
        while began < count:
            began += 1
            number, sent = began, bodies.next(is_encoded=name != "wires")
            told, forwarded = await layer.result(sent)
            found[told] += 1
            if told not in (SAME, ADDED):
                if found.total() - found[SAME] - found[ADDED] <= MOST_TOLD:
                    note(f"  {name} {number}, {sent.wire}, {len(sent.body)} bytes: {told}")
                _write(keep, f"{name}-{number}", sent, forwarded)
            if number % max(1, count // LINES) == 0:
                table.line((name, number, found[SAME], found[ADDED], found.total() - found[SAME] - found[ADDED]))

    await asyncio.gather(*(work() for _ in range(AT_ONCE)))
    return found[SAME] + found[ADDED] == count


def _write(keep: Path | None, name: str, sent: Sent, forwarded: bytes) -> None:
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        (keep / f"{name}.sent").write_bytes(sent.body)
        (keep / f"{name}.forwarded").write_bytes(forwarded)
        headers = [(key.decode(), value.decode()) for key, value in sent.headers]
        (keep / f"{name}.json").write_bytes(orjson.dumps({"wire": sent.wire, "headers": headers}))


if __name__ == "__main__":
    sys.exit(main())
