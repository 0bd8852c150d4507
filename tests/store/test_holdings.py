"""Every place that holds words is declared, so that erasing reaches it."""

from __future__ import annotations

import importlib
import pkgutil
from inspect import signature

import proxy
from proxy.memory.forgetting import CACHES_OF_WORDS, CACHES_WITHOUT_WORDS, OBJECTS_OF_WORDS
from proxy.store.database import Database
from proxy.store.holdings import DERIVED, FINGERPRINTS, FULL_TEXT, PLAIN, WORDS

TEXT_WITHOUT_WORDS = {  # columns of text that hold names of ours, keys made by chance, keyed hashes
    "conversation": {"public", "role", "parent"},
    "turn": {"key", "role", "event", "kept", "ending"},
    "block": {"kind", "role", "occurrences"},
    "memory": {"kind"},
    "proxy_key": {"id", "shown"},
}


async def tables(database: Database) -> set[str]:
    rows = await database.read("SELECT name FROM sqlite_master WHERE type = 'table'")
    shadows = tuple(f"{name}_" for name in FULL_TEXT)
    return {name for (name,) in rows if not name.startswith(("sqlite_", *shadows))}


async def test_every_table_says_what_it_holds_of_what_people_said(database: Database) -> None:
    declared = [*WORDS, *DERIVED, *FINGERPRINTS, *PLAIN]
    assert len(declared) == len(set(declared))
    assert await tables(database) == set(declared)


async def test_every_column_of_text_is_searched_or_known_to_hold_no_words(database: Database) -> None:
    for table, words in WORDS.items():
        columns = await database.read(f"SELECT name, type FROM pragma_table_info('{table}')")
        text = {name for name, kind in columns if kind in ("TEXT", "")}
        assert text - TEXT_WITHOUT_WORDS.get(table, set()) == set(words), table


def test_every_function_that_remembers_says_whether_it_remembers_words() -> None:
    found = set()
    for module in pkgutil.walk_packages(proxy.__path__, "proxy."):
        if module.name.startswith(("proxy.evaluation", "proxy.scripted", "proxy.__main__", "proxy.commands.demo")):
            continue
        members = vars(importlib.import_module(module.name)).values()
        found |= {member for member in members if hasattr(member, "cache_clear")}
    others = {f"{cache.__module__}.{cache.__name__}" for cache in found - set(CACHES_OF_WORDS)}
    names = {name for name in others if name.startswith("proxy.")}
    assert set(CACHES_OF_WORDS) <= found
    assert names == CACHES_WITHOUT_WORDS


def test_every_class_whose_objects_remember_words_is_declared() -> None:
    found = set()
    for module in pkgutil.walk_packages(proxy.__path__, "proxy."):
        if module.name.startswith(("proxy.evaluation", "proxy.scripted", "proxy.__main__", "proxy.commands.demo")):
            continue
        for member in vars(importlib.import_module(module.name)).values():
            forget = vars(member).get("forget") if isinstance(member, type) else None
            if forget is not None and not getattr(member, "_is_protocol", False):
                parameters = signature(forget).parameters
                found |= {f"{member.__module__}.{member.__qualname__}"} if set(parameters) == {"self"} else set()
    assert found == OBJECTS_OF_WORDS
