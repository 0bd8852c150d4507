"""Folders that come and go beside what looks at them."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def vanishing_folders(parent: Path) -> Iterator[None]:
    """Folders in folders below `parent`, made and removed without a pause until the context ends."""

    def come_and_go() -> None:
        while not done.is_set():
            (parent / "a" / "deep" / "folder").mkdir(parents=True)
            shutil.rmtree(parent / "a")

    done = threading.Event()
    thread = threading.Thread(target=come_and_go)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
