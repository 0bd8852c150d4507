"""What the app says of itself when it starts and stops."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import structlog

from proxy.app import create_app
from proxy.logs import configure
from proxy.policy import LogPolicy, Policy


@pytest.fixture
def log() -> Iterator[StringIO]:
    """Where log lines go; afterwards logging is as it was."""
    root = logging.getLogger()
    before = (root.handlers[:], root.level)
    stream = StringIO()
    configure(LogPolicy(), stream)
    yield stream
    root.handlers[:], root.level = before
    logging.captureWarnings(False)
    structlog.reset_defaults()


async def test_what_ends_the_app_stands_in_the_log(tmp_path: Path, log: StringIO) -> None:
    asked = iter(("lifespan.startup",))

    async def receive() -> dict[str, Any]:
        for kind in asked:
            return {"type": kind}
        raise PermissionError(13, "Permission denied")

    async def send(_message: Any) -> None: ...

    policy = Policy.model_validate({"data": tmp_path, "model": {"download": "never", "cache": tmp_path}})
    with pytest.raises(PermissionError):
        await create_app(policy, {})({"type": "lifespan", "state": {}}, receive, send)
    assert "PermissionError (Permission denied)" in log.getvalue()
    assert "test_app.py" in log.getvalue(), "where it happened"
