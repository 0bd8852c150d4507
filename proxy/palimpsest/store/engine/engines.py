"""The choice of an engine: a server where one is named, else the file of the data folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

from palimpsest.domain.errors import PolicyError
from palimpsest.store.data_dir import DATABASE_FILE
from palimpsest.store.engine import Engine
from palimpsest.store.engine.secret_mark import SecretMark
from palimpsest.store.engine.sqlite.database import Database


def is_in_use(data: Path, url: str = "", password_file: Path | None = None) -> bool:
    """Whether another process of ours uses a database; see `engine_of`. Raises `MemoryFault`: it cannot be opened."""
    if not url:
        from palimpsest.store.engine.sqlite.copying import is_in_use as file_is_in_use

        file = data / DATABASE_FILE
        return file.exists() and file_is_in_use(file)
    from palimpsest.store.engine.postgres.database import is_in_use as server_is_in_use

    return server_is_in_use(url, password_file)


def engine_of(
    data: Path,
    synchronous: Literal["NORMAL", "FULL"],
    url: str = "",
    password_file: Path | None = None,
    on_replaced: Callable[[], None] = lambda: None,
    secret: Callable[[], bytes] | None = None,
) -> Engine:
    """
    A database that is not open yet.

    Args:
        data: the data folder.
        url: of a PostgreSQL database; "": the file.
        on_replaced: as of SQLite's `Database`.
        secret: that its rows must have been written with; None: whichever.

    Raises:
        PolicyError: the driver of the server is not installed.
    """
    mark = SecretMark(secret) if secret else None
    if not url:
        return Database(data / DATABASE_FILE, synchronous, on_replaced, mark)
    try:
        from palimpsest.store.engine.postgres.database import Database as Server  # its driver is an extra
    except ImportError as cause:
        raise PolicyError("store.url: its driver is missing: pip install 'palimpsest-proxy[postgres]'") from cause
    return Server(url, password_file, mark)
