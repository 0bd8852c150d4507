"""Every place that holds words is declared, so that erasing reaches it."""

from __future__ import annotations

import ast
import importlib
import pkgutil
from collections.abc import Iterable, Iterator
from inspect import signature
from pathlib import Path

import palimpsest
import pytest
from palimpsest.domain.word_cache import CACHES
from palimpsest.store.engine.sqlite.database import Database
from palimpsest.store.erasure.holdings import DERIVED, FINGERPRINTS, FULL_TEXT, PLAIN, WORDS

TEXT_WITHOUT_WORDS = {  # columns of text that hold names of ours, keys made by chance, keyed hashes
    "conversation": {"public", "role", "parent"},
    "turn": {"key", "role", "event", "kept", "ending"},
    "block": {"kind", "role", "occurrences", "facts"},
    "memory": {"kind"},
    "item": {"writer", "state"},
    "node": {"kind"},
    "consolidation_step": {"what"},
    "proxy_key": {"id", "shown"},
    "model_note": {"upstream", "source"},
    "fact": {"public", "tool", "category"},
}

CACHES_WITHOUT_WORDS = {  # of keys, rules, addresses, statements
    "palimpsest.store.engine.postgres.connection._repeated",
    "palimpsest.store.engine.postgres.connection._together",
    "palimpsest.store.engine.postgres.connection._width",
    "palimpsest.edge.admin.operation._adapter",
    "palimpsest.features.page.application.templates",
    "palimpsest.core.history.shingles._constants",
    "palimpsest.core.caller.identity.tenant_key",
    "palimpsest.core.redaction.formats.long_formats",
    "palimpsest.core.redaction.formats.short_formats",
    "palimpsest.core.redaction.redaction._anchors",
    "palimpsest.memory.tokens.counter.encoder",
    "palimpsest.upstream.passthrough._url",
    "palimpsest.settings.embedding_models.embedding_models",
    "palimpsest.settings.embedding_models.text_embedding",
    "palimpsest.settings.prices.providers",
    "palimpsest.settings.reference.descriptions",
}


async def tables(database: Database) -> set[str]:
    """Tables and views, virtual ones too, but not those that a full-text index keeps for itself."""
    listed = await database.read("SELECT name, type FROM pragma_table_list WHERE schema = 'main'")
    shadows = {name for name, kind in listed if kind == "shadow"}
    assert {name.rpartition("_")[0] for name in shadows} == set(FULL_TEXT)
    return {name for name, _ in listed if name not in shadows and not name.startswith("sqlite_")}


@pytest.mark.sqlite
async def test_every_table_says_what_it_holds_of_what_people_said(database: Database) -> None:
    declared = [*WORDS, *DERIVED, *FINGERPRINTS, *PLAIN]
    assert len(declared) == len(set(declared))
    assert await tables(database) == set(declared)


@pytest.mark.sqlite
async def test_every_column_of_text_is_searched_or_known_to_hold_no_words(database: Database) -> None:
    for table, words in WORDS.items():
        columns = await database.read(f"SELECT name, type FROM pragma_table_info('{table}')")
        text = {name for name, kind in columns if kind in ("TEXT", "")}
        assert text - TEXT_WITHOUT_WORDS.get(table, set()) == set(words), table


def test_every_function_that_remembers_says_whether_it_remembers_words() -> None:
    found = set()
    for module in pkgutil.walk_packages(palimpsest.__path__, "palimpsest."):
        if module.name.startswith(("palimpsest.evaluation", "palimpsest.__main__", "palimpsest.commands.demo")):
            continue
        members = vars(importlib.import_module(module.name)).values()
        found |= {member for member in members if hasattr(member, "cache_clear")}
    others = {f"{cache.__module__}.{cache.__name__}" for cache in found.difference(CACHES)}
    names = {name for name in others if name.startswith("palimpsest.")}
    assert len(CACHES) > 10
    assert names == CACHES_WITHOUT_WORDS


# Classes whose objects keep words: `forget_words` is given the `forget` of each.
OBJECTS_OF_WORDS = {
    "palimpsest.memory.embedding.embedder.LocalEmbedder",
    "palimpsest.memory.index.item_keys.ItemKeys",
    "palimpsest.memory.index.passage_tables.PassageTables",
    "palimpsest.memory.archive.Archive",
    "palimpsest.memory.request.recent_readings.RecentReadings",
}


def test_every_class_whose_objects_remember_words_is_declared() -> None:
    found = set()
    for module in pkgutil.walk_packages(palimpsest.__path__, "palimpsest."):
        if module.name.startswith(("palimpsest.evaluation", "palimpsest.__main__", "palimpsest.commands.demo")):
            continue
        for member in vars(importlib.import_module(module.name)).values():
            forget = vars(member).get("forget") if isinstance(member, type) else None
            if forget is not None and not getattr(member, "_is_protocol", False):
                parameters = signature(forget).parameters
                found |= {f"{member.__module__}.{member.__qualname__}"} if set(parameters) == {"self"} else set()
    assert found == OBJECTS_OF_WORDS


KEPT_WITHOUT_WORDS = {  # containers that objects keep: numbers, ids, settings, tasks; or words of a request under way
    "features/assist": {"ModelAssistants._models", "ModelAssistants._senders"},
    "memory": {
        *("Archivist._commits", "Archivist._taken", "Archivist._unanswered", "Follower._listeners"),
        *("KnownKeys._by_digest", "KnownModels._stored", "ArchiveProcess._out", "ArchiveProcess._unsent"),
        *("ArchiveProcess._waiting", "_Link._behind", "_Link._gathered", "_Link._open"),
        *("ArchiveWorker._open", "ArchiveWorker._under_way", "RelayedCounts._calls"),
        *("MemoryService._switched_on", "MemoryService.concerns", "Readers._reading", "Readers._results"),
        *("Archive._made", "KnownReminders._of", "MemoryService._extensions", "UnreadAttempts._openings"),
        *("Recall._expected", "Sweeper._ages", "Traffic._giving_way", "Sweeper._due"),
        *("Supervisor._states", "Supervisor._tasks", "PassageProcess._command", "MiniLMEncoder._inputs"),
        *("_Graph.constants", "_Graph.nodes", "ItemKeys._used", "_GrowingTable._columns"),
        *("_GrowingTable._begun", "_GrowingTable._ends"),
        *("TokenCounter._counts", "TokenCounter._ratios", "_loaded", "Windows._learnt", "Windows._table"),
    },
    "pipeline": {"Pipeline._lacking", "Pipeline._running"},
    "store": {
        *("Watch._errors", "Dialect._rules", "Database._opened", "FileTransaction._given", "Finder._parts"),
        *("_Lane._opened", "_Runs._numbers", "ServerTransaction._reserved", "ServerConnection.local"),
        *("_Reading._ahead", "PassageTexts._read"),
    },
}
KEPT_WITH_WORDS = {  # emptied by the `forget` of a class in `OBJECTS_OF_WORDS`
    "memory": {
        *("LocalEmbedder._remembered", "PassageTables._growing", "_GrowingTable._known", "_GrowingTable._names"),
        *("RecentReadings._openings", "ItemKeys._kept"),
    },
}
CONTAINERS = {"dict", "list", "set", "OrderedDict", "deque", "defaultdict", "Counter", "WeakValueDictionary", "Queue"}
DISPLAYS = (ast.Dict, ast.List, ast.Set, ast.DictComp, ast.ListComp, ast.SetComp)


def is_container(value: ast.expr | None) -> bool:
    if isinstance(value, ast.Call):
        called = value.func.value if isinstance(value.func, ast.Subscript) else value.func
        name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
        return name in CONTAINERS
    return isinstance(value, DISPLAYS)


def assigned(body: Iterable[ast.AST]) -> Iterator[ast.expr]:
    """What containers are assigned to."""
    for node in body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and is_container(node.value):
            yield from node.targets if isinstance(node, ast.Assign) else [node.target]


def kept_in(source: ast.Module) -> Iterator[str]:
    """Containers that stay: in a module under a name that is no constant's, or in an object."""
    yield from (
        t.id for t in assigned(source.body) if isinstance(t, ast.Name) and not t.id.isupper() and t.id != "__all__"
    )
    for defined in ast.walk(source):
        if isinstance(defined, ast.ClassDef):
            for target in assigned(ast.walk(defined)):
                if isinstance(target, ast.Attribute) and getattr(target.value, "id", "") == "self":
                    yield f"{defined.name}.{target.attr}"


@pytest.mark.parametrize("layer", sorted(KEPT_WITHOUT_WORDS))
def test_every_container_that_stays_says_whether_it_holds_words(layer: str) -> None:
    root = Path(palimpsest.__path__[0])
    files = [*(root / layer).rglob("*.py")] or [root / f"{layer}.py"]
    found = {name for file in files for name in kept_in(ast.parse(file.read_text()))}
    assert found == KEPT_WITHOUT_WORDS[layer] | KEPT_WITH_WORDS.get(layer, set())


def test_no_cache_hides_in_a_class_or_a_function() -> None:
    hidden = []
    for file in Path(palimpsest.__path__[0]).rglob("*.py"):
        source = ast.parse(file.read_text())
        outside = {id(decorator) for node in source.body for decorator in getattr(node, "decorator_list", ())}
        for node in ast.walk(source):
            for decorator in getattr(node, "decorator_list", ()):
                named = ast.unparse(decorator).partition("(")[0].rpartition(".")[2]
                if named in ("lru_cache", "cache") and id(decorator) not in outside:
                    hidden.append(f"{file.name}: {ast.unparse(decorator)}")
    assert hidden == []
