"""What tests of recall ask, of what was said, and the recall that they ask."""

from __future__ import annotations

from typing import Any

from palimpsest.core.recall.generosity import DEMANDS
from palimpsest.core.recall.ranking import Recipe
from palimpsest.domain import BlockKind, Generosity, Query, Recalled
from palimpsest.memory.index.passage_tables import PassageTables
from palimpsest.memory.recall.recall import Recall
from palimpsest.settings.policy import RecallPolicy
from palimpsest.store.engine.sqlite.database import Database

from tests.remembered import Past, WordEmbedder
from tests.talking import NOW

TALK = (
    "The harvest festival in Lisbon begins on the third of May.",
    "Good, then we travel one day before.",
    "My sister Clara plays the violin in the town orchestra.",
    "Since when does she play?",
    "The greenhouse needs a new heating, the old one broke in January.",
    "Which heating do you want?",
    "The ticket about the roof is PROJ-4711.",
    "I will look at it tomorrow.",
)
LEAST_HELP = DEMANDS[Generosity.BALANCED][BlockKind.RECALL].least_help
FESTIVAL = "When does the harvest festival in Lisbon begin?"


class Counts:
    def __init__(self) -> None:
        self.faults: list[str] = []
        self.observed: list[str] = []

    def fault(self, where: str) -> None:
        self.faults.append(where)

    def observe(self, stage: str, seconds: float) -> None:
        self.observed.append(stage)

    def gauge(self, name: str, value: float) -> None:
        raise AssertionError("recall has no state to show")


def recalling(sql: Database, embedder: WordEmbedder, counts: Counts, **recipe: Any) -> Recall:
    return Recall(
        sql, PassageTables(embedder.name, embedder.dimensions), embedder, counts, lambda: NOW, Recipe(**recipe)
    )


def choosing(past: Past, embedder: WordEmbedder, tables: PassageTables | None = None, **chosen: Any) -> Recall:
    """Recall by these settings."""
    policy = RecallPolicy.model_validate(chosen)
    tables = tables or PassageTables(embedder.name, embedder.dimensions)
    return Recall(past.database, tables, embedder, Counts(), lambda: NOW, chosen=lambda: policy)


def ask(text: str, lost: frozenset[int] | None = None, **more: Any) -> Query:
    return Query(**{"tenant": "acme", "conversation": "c-1", "text": text, "lost": lost, **more})


def texts(recalled: Recalled) -> list[str]:
    return [candidate.memory.text for candidate in recalled.candidates]


PORT = "Our dev database is Postgres on port 5432 on the machine heron."
