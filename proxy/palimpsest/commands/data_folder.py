"""The database of a data folder, for commands that need nothing else of it. A proxy may run on it meanwhile."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import TypeVar

from palimpsest.settings.policy import Policy
from palimpsest.store.data_dir import make_folder
from palimpsest.store.engine import Engine
from palimpsest.store.engine.engines import engine_of
from palimpsest.store.operation.secret import load_secret

T = TypeVar("T")


def run(policy: Policy, work: Callable[[Engine], Awaitable[T]]) -> T:
    """Open the database of `policy.data`, made where there is none yet, run work on it, and return the result."""
    make_folder(policy.data)
    load_secret(policy.data, os.environ)  # a database without one would look as if it had been lost
    store = policy.store
    database = engine_of(policy.data, policy.archive.synchronous, store.url, store.password_file)

    async def working() -> T:
        try:
            await database.open()
            return await work(database)
        finally:
            await database.close()

    return asyncio.run(working())
