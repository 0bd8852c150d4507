"""
The choice of an engine: a server where one is named, else the file of the data folder.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

from palimpsest.domain.errors import PolicyError
from palimpsest.store.data_dir import DATABASE_FILE
from palimpsest.store.engine import Engine
from palimpsest.store.engine.sqlite.database import Database


def engine_of(
    data: Path,
    synchronous: Literal["NORMAL", "FULL"],
    url: str = "",
    password_file: Path | None = None,
    on_replaced: Callable[[], None] = lambda: None,
) -> Engine:
    """
    A database that is not open yet.

    Args:
        data: the data folder.
        url: of a PostgreSQL database; "": the file.
        on_replaced: as of SQLite's `Database`.

    Raises:
        PolicyError: the driver of the server is not installed.
    """
    if not url:
        return Database(data / DATABASE_FILE, synchronous, on_replaced)
    try:
        from palimpsest.store.engine.postgres.database import Database as Server  # its driver is an extra
    except ImportError as cause:
        raise PolicyError("store.url: its driver is missing: pip install 'palimpsest-proxy[postgres]'") from cause
    return Server(url, password_file)
