"""
Forgetting under load, over and over, while clients keep sending what was erased.

Each round's clients have told something unique, and hundreds of texts besides. It is erased by one of the ways there
are, and then must be in no block, no answer, no search and no byte on the disk, whatever they send; rows of another
tenant must be as they were.
"""

from __future__ import annotations

import argparse
import random
import re
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from urllib.parse import quote

import orjson
from palimpsest.domain import Json
from palimpsest.evaluation.scripted import ScriptedUpstream

from scripts.endure.load import WORDS
from scripts.endure.table import Table, note
from tests.commands.test_cli import palimpsest
from tests.resending import HABITS, Client, files_with, load, of_tenant, tenants
from tests.running import Conversation, Proxy, memory_in, request, stored_texts, until, upstream_on_a_thread

TIMES = 50
WORKERS = 2
CLIENTS = 8
TEXTS = 60  # that each of them tells in a round besides
TEXT_WORDS = (6, 12, 60, 600)
LOG_CHARS = 5_000  # shown where something failed
AFTER_SECONDS = 2.0  # of load after each erasure
WAYS = ("over HTTP", "by command", "by its words", "when retired")
KEPT = "The lighthouse of Skagen was painted white in 1858, says the plaque."


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--times", type=int, default=TIMES, metavar="N", help=f"erasures ({TIMES})")
    parser.add_argument("--workers", type=int, default=WORKERS, metavar="N", help=f"of the proxy ({WORKERS})")
    parser.add_argument("--texts", type=int, default=TEXTS, metavar="N", help=f"of each client, besides ({TEXTS})")
    parser.add_argument("--clients", type=int, default=CLIENTS, metavar="N", help=f"({CLIENTS})")


def run(given: argparse.Namespace) -> bool:
    """Whether nothing of it was ever seen again."""
    upstream = ScriptedUpstream(
        lambda body: f"Message {len(body['messages'])} is read, the crates are where they were."
    )
    failed = 0
    table = Table(("round", "erased", "seconds", "requests after", "blocks", "left"))
    with tempfile.TemporaryDirectory() as folder, upstream_on_a_thread(upstream):
        settings = {"listen": {"workers": given.workers}, "memory": {"reach": "user"}}
        with Proxy(Path(folder) / "data", upstream.url, settings) as proxy:
            Conversation(proxy, "sk-other", headers={"x_palimpsest_user": "ann"}).say(KEPT)
            proxy.settle(vectors=False)
            (other,) = tenants(proxy.data)
            stranger = of_tenant(proxy.data, other)
            ended = False
            try:
                for number in range(given.times):
                    way = WAYS[number % len(WAYS)]
                    cycle = _Round(proxy, upstream, number, given.clients, given.texts, other)
                    failures = cycle.failures(way)
                    if of_tenant(proxy.data, other) != stranger:
                        failures.append("rows of another tenant changed")
                    failed += len(failures)
                    seen = cycle.seen
                    of_round = f"{cycle.seconds:.1f}", seen["requests"], seen["blocks"], len(failures)
                    table.line((number + 1, way, *of_round))
                    for what in failures:
                        note(f"  {what}")
                ended = True
            finally:
                if failed or not ended:
                    lines = (line for line in proxy.log.read_text().splitlines() if "] request " not in line)
                    note("\n".join(lines)[-LOG_CHARS:])
    return not failed


class _Round:
    """One unique text, told by all clients and then erased."""

    def __init__(
        self, proxy: Proxy, upstream: ScriptedUpstream, number: int, clients: int, texts: int, other: str
    ) -> None:
        self._proxy, self._upstream, self._other = proxy, upstream, other
        self._user = f"ann-{number}"
        self._mark = f"zqx{random.Random(number).randrange(16**8):08x}kestrel"
        about = " ".join(random.Random(number).sample(WORDS, 3))
        self._canary = f"The wire transfer about the {about} is 48,200 euro, reference {self._mark}"
        self._question = f"What is the reference of the wire transfer about the {about}?"
        self._clients = [Client(proxy, "sk-mine", HABITS[at % len(HABITS)], self._user) for at in range(clients)]
        dice = random.Random(f"texts of {number}")
        self._marks = {f"{self._mark}{at}-{dice.randrange(10**9):09d}".encode() for at in range(clients * texts)}
        self._texts = iter([_told(mark.decode(), dice) for mark in sorted(self._marks)])
        self._per_client = texts
        self.seconds = 0.0
        self.seen: Counter[str] = Counter()

    def failures(self, way: str) -> list[str]:
        """What should not have been, in words."""
        for client in self._clients:
            for at, text in enumerate(islice(self._texts, self._per_client)):
                # Beside an answer that was erased elsewhere, what begins like an erased message is taken for that one.
                answer = f"I see your text {at}, {client.habit} as ever, {self._user}."
                client.talk.messages += [{"role": "user", "content": text}, {"role": "assistant", "content": answer}]
            client.begin(self._canary)
        until(lambda: self._stored() == self._marks, "all texts to be stored")  # each worker has its own metrics
        failures: list[str] = []
        with load(self._clients, self._question):
            until(
                lambda: any(self._is_shown(got.json) for got in list(self._upstream.received)), "a block that quotes it"
            )
            if way == "when retired":
                failures += self._retired()
            started = time.monotonic()
            receipt = self._erase(way)
            self.seconds = time.monotonic() - started
            sent, answered = len(self._upstream.received), [len(client.answers) for client in self._clients]
            if left := self._left():
                failures.append(f"{len(left)} of {len(self._marks)} texts are left")
            if files := files_with(self._proxy, self._mark):
                failures.append(f"it stands in {', '.join(files)}")
            if not receipt.get("check", {}).get("clean"):
                told = receipt.get("check", receipt)
                failures.append(f"the receipt is not clean: {orjson.dumps(told).decode()[:300]}")
            time.sleep(AFTER_SECONDS)
            failures += self._searched()
        later = [got.json for got in self._upstream.received[sent:]]
        self.seen.update(requests=len(later), blocks=sum(bool(memory_in(body)) for body in later))
        if any(self._is_shown(body) for body in later):
            failures.append("a block quotes it")
        said = (text for client, at in zip(self._clients, answered, strict=True) for text in client.answers[at:])
        if any(self._mark in text for text in said):
            failures.append("an answer holds it")
        if statuses := {status for client in self._clients for status in client.statuses} - {200}:
            failures.append(f"clients got {statuses}")
        self._proxy.settle(vectors=False)
        if files := files_with(self._proxy, self._mark):
            failures.append(f"it came back into {', '.join(files)}")
        del self._upstream.received[:]
        return failures

    def _stored(self) -> set[bytes]:
        """Marks of the other texts that are stored: in a file, one that two pages of it share would be missed."""
        return self._marks_in([text.encode() for text in stored_texts(self._proxy.data)])

    def _left(self) -> set[bytes]:
        """Marks of the other texts that stand in any file of the data folder."""
        return self._marks_in([file.read_bytes() for file in self._proxy.data.rglob("*") if file.is_file()])

    def _marks_in(self, held: Sequence[bytes]) -> set[bytes]:
        pattern = re.compile(self._mark.encode() + rb"\d+-\d{9}")
        return self._marks & {mark for one in held for mark in pattern.findall(one)}

    def _is_shown(self, body: Json) -> bool:
        return self._mark in memory_in(body)

    def _tenant(self) -> str:
        return next(name for name in tenants(self._proxy.data) if name != self._other)

    def _erase(self, way: str) -> Json:
        if way == "by command":
            arguments = ("forget", "--user", self._user, "--yes", "--data", str(self._proxy.data))
            return dict(orjson.loads(palimpsest(*arguments).stdout or b"{}"))
        return self._post("forget", {"matching": self._mark.upper()} if way == "by its words" else {"user": self._user})

    def _retired(self) -> list[str]:
        """What should not have been after a retirement, which leaves all of it on the disk."""
        self._post("retire", {"user": self._user})
        sent = len(self._upstream.received)
        time.sleep(AFTER_SECONDS)
        shown = any(self._is_shown(got.json) for got in self._upstream.received[sent:])
        failures = ["a block quotes it after it was retired"] if shown else []
        return failures + ([] if files_with(self._proxy, self._mark) else ["what was retired is gone from the disk"])

    def _post(self, name: str, body: Json) -> Json:
        headers = {"content-type": "application/json"}
        return request(self._proxy.port, "POST", f"/memory/v1/{name}", orjson.dumps(body), headers).json

    def _searched(self) -> list[str]:
        tenant = quote(self._tenant())
        found = request(self._proxy.port, "GET", f"/memory/v1/search?tenant={tenant}&q={self._mark}")
        self.seen["searches"] += 1
        held = found.status == 200 and self._mark in found.body.decode().replace(quote(self._mark), "")
        return ["a search finds it"] if held else []


def _told(mark: str, dice: random.Random) -> str:
    """A text with a mark somewhere in it, of a few words or of more than a page of the database."""
    words = dice.choices(WORDS, k=dice.choice(TEXT_WORDS))
    words.insert(dice.randrange(len(words) + 1), mark)
    return " ".join(words)
