"""
Conversations made up from a seed: distinct facts, plausible prose, no data.

Standard library only: the load tool imports it from an environment of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

SYSTEM = "You are the assistant of a platform team. Answer briefly, and keep the team's decisions in mind."
MESSAGES_AFTER_CUT = 72  # with the system prompt; grows by two a request, so that ten requests carry 81 on average
REQUESTS_PER_CYCLE = 10  # the tenth is a truncation: the oldest messages are gone, and one of their facts is asked for
MESSAGE_CHARS = 365  # 81 of them are 28 kB

NAMES = [
    "Alder",
    "Birch",
    "Cedar",
    "Dogwood",
    "Elder",
    "Fir",
    "Ginkgo",
    "Hazel",
    "Ivy",
    "Juniper",
    "Kapok",
    "Larch",
    "Maple",
    "Nettle",
    "Oak",
    "Poplar",
    "Rowan",
]
PARTS = [
    "listener",
    "importer",
    "scheduler",
    "gateway",
    "exporter",
    "renderer",
    "indexer",
    "mailer",
    "archiver",
    "resolver",
]
THINGS = ("port", "retry limit", "batch size", "cache size", "timeout", "quota", "shard count", "queue length")
FILLER = (
    "We looked at the {part} again this {day}, because the nightly run had taken longer than the week before.",
    "The logs of the {part} show nothing unusual, apart from two restarts that {person} had announced.",
    "{person} suggests to split the {part} in two, and to move the slower half behind a queue.",
    "Somebody from support asked whether the {part} could be switched off during the migration on {day}.",
    "The tests of the {part} pass on every machine except the one that {person} uses.",
    "On {day} we agreed that the {part} should fail loudly instead of returning an empty list.",
    "A short note on the {part} belongs into the handbook, and {person} has offered to write it.",
    "The dashboard of the {part} will get a second panel, so that the delay can be seen at a glance.",
    "{person} measured the {part} with production traffic and found that parsing takes most of the time.",
    "Until {day} the {part} stays as it is; afterwards the new settings are rolled out step by step.",
)
PEOPLE = [
    "Amira",
    "Bruno",
    "Chloe",
    "Dmitri",
    "Esther",
    "Farid",
    "Greta",
    "Hugo",
    "Ines",
    "Jonas",
    "Keiko",
    "Lucia",
    "Marek",
    "Nadia",
    "Otto",
    "Priya",
]
DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday"]

Message = dict[str, Any]


@dataclass(frozen=True)
class Fact:
    """Something worth remembering, told once."""

    about: str
    value: int

    @property
    def told(self) -> str:
        return f"For the record: the {self.about} is {self.value}."

    @property
    def asked(self) -> str:
        return f"Before we go on, what was the {self.about} again?"


def prose(random: Random, chars: int) -> str:
    """Sentences, at most `chars` characters."""
    text = ""
    while True:
        sentence = random.choice(FILLER).format(
            part=random.choice(PARTS), person=random.choice(PEOPLE), day=random.choice(DAYS)
        )
        if len(text) + len(sentence) > chars:
            return text.strip()
        text += f"{sentence} "


def reply_to(text: str) -> str:
    """What the assistant answers; the same for the same text."""
    return f"Understood. {prose(Random(text), MESSAGE_CHARS)}"


class Talk:
    """One growing conversation, as its client keeps it."""

    def __init__(self, number: int, size: int = MESSAGES_AFTER_CUT) -> None:
        """`size`: messages of the shortest request, system prompt included; even."""
        self.kind = "start"  # of the newest request: start, append or truncate
        self._random = Random(number)
        self._number = number
        self._facts: dict[int, Fact] = {}  # by the place of the message that tells it, counted from the first
        self._dropped = 0
        self._history: list[Message] = []
        self._size = size
        self.requests = number % REQUESTS_PER_CYCLE
        turns = size // 2 + self.requests  # so that not all are cut at the same time
        for _ in range(turns - 1):
            self._say()
            self.hear(reply_to(self._history[-1]["content"]))
        self._say()

    @property
    def messages(self) -> list[Message]:
        return [{"role": "system", "content": SYSTEM}, *self._history]

    def hear(self, answer: str) -> None:
        self._history.append({"role": "assistant", "content": answer})

    def next(self) -> None:
        """Write the next request: one turn more or, once a cycle, the oldest turns gone and a question about them."""
        self.requests += 1
        if self.requests % REQUESTS_PER_CYCLE:
            self.append()
            return
        self.kind = "truncate"
        cut = len(self._history) + 2 - self._size
        lost = [fact for place, fact in self._facts.items() if self._dropped <= place < self._dropped + cut]
        self._history.append({"role": "user", "content": self._random.choice(lost).asked})
        del self._history[:cut]
        self._dropped += cut

    def append(self) -> None:
        """Write one turn more."""
        self.kind = "append"
        self._say()

    def _say(self) -> None:
        place = self._dropped + len(self._history)
        name = f"{self._random.choice(NAMES)}-{self._number}{place:04d}"
        fact = Fact(f"{self._random.choice(THINGS)} of {name}", self._random.randrange(1000, 99999))
        self._facts[place] = fact
        text = prose(self._random, MESSAGE_CHARS - len(fact.told))
        self._history.append({"role": "user", "content": f"{text} {fact.told}"})
