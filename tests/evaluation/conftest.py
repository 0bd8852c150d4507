"""Benchmarks start proxies as tests do."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from palimpsest.evaluation.running import RunningProxy

from tests.fork_server import ForkServer
from tests.running import Proxy


@pytest.fixture(scope="module")
def forked(fork_server: None) -> Iterator[None]:
    """Lets their proxies be forked from one that is loaded, where nothing is asked of their start."""
    forking, anew = Proxy.fork_server, RunningProxy.python
    assert isinstance(forking, ForkServer)
    RunningProxy.python = lambda: str(forking.python())
    yield
    RunningProxy.python = anew
