"""Clients that never stop sending what was erased, and what of it stands on the disk."""

from __future__ import annotations

import http.client
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from tests.running import Conversation, Proxy, database, rows

HABITS = ("grows", "compacts", "returns")
NOBODY_ANSWERED = 0
PAUSE_SECONDS = 0.05  # between two requests of one client


class Client:
    """Somebody who goes on and on, with words in the history that is sent that are to be forgotten."""

    def __init__(self, proxy: Proxy, key: str, habit: str, user: str = "ann") -> None:
        """
        Args:
            habit: one of `HABITS`: repeats its whole history, compacts it now and then, or always begins anew with it.
        """
        self.habit, self.user = habit, user
        self.talk = Conversation(proxy, key, headers={"x_palimpsest_user": user})
        self.statuses: set[int] = set()
        self.answers: list[str] = []

    def begin(self, canary: str) -> None:
        self.talk.say(f"{canary} ({self.habit})")
        for number in range(3):
            self.talk.say(f"Please count the {self.habit} crates of shelf {number} for {self.user}.")
        self.history = list(self.talk.messages)

    def step(self, number: int, question: str) -> None:
        if self.habit == "compacts" and number % 2:
            self.talk.keep_last(2, "Crates were counted. " * 12)
        if self.habit == "returns":  # with the whole past, as a conversation that nobody knows
            self.talk.messages = [*self.history, {"role": "user", "content": f"I am back for the {number}th time."}]
            answered = self.talk.proxy.chat(self.talk.body(), self.talk.key, **self.talk.headers)
        else:
            answered = self.talk.say(f"{question} I ask for the {number}th time.")
        self.statuses.add(answered.status)
        self.answers.append(answered.body.decode())


@contextmanager
def load(clients: list[Client], question: str) -> Iterator[None]:
    """Have them ask, over and over, until the end of the block."""
    over = threading.Event()

    def work(client: Client) -> None:
        number = 0
        while not over.is_set():
            try:
                client.step(number := number + 1, question)
            except (OSError, http.client.HTTPException):
                client.statuses.add(NOBODY_ANSWERED)
            over.wait(PAUSE_SECONDS)

    threads = [threading.Thread(target=work, args=(client,)) for client in clients]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()


def files_with(proxy: Proxy, words: str) -> list[str]:
    """Names of the files of a proxy that hold these words."""
    files = [*proxy.data.iterdir(), proxy.log]
    return [file.name for file in files if words.encode() in file.read_bytes()]


def of_tenant(data: Path, name: str) -> list[list[tuple[object, ...]]]:
    """Every row of a tenant's that holds words."""
    mine = "(SELECT id FROM conversation WHERE tenant = (SELECT id FROM tenant WHERE name = ?1))"
    asked = (
        "SELECT * FROM content WHERE tenant = (SELECT id FROM tenant WHERE name = ?1) ORDER BY id",
        f"SELECT * FROM occurrence WHERE conversation IN {mine} ORDER BY id",
        f"SELECT * FROM turn WHERE conversation IN {mine} ORDER BY id",
        f"SELECT * FROM memory WHERE conversation IN {mine} ORDER BY id",
        "SELECT * FROM term WHERE tenant = (SELECT id FROM tenant WHERE name = ?1) ORDER BY term",
    )
    with closing(sqlite3.connect(database(data))) as db:
        return [db.execute(sql, (name,)).fetchall() for sql in asked]


def tenants(data: Path) -> list[str]:
    """Names of the tenants, those who came first in front."""
    return [str(name) for (name,) in rows(data, "SELECT name FROM tenant ORDER BY id")]
