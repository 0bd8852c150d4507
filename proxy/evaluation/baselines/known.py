"""Which baselines are there, by the name that `--systems` takes?"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from proxy.evaluation.systems import System
from proxy.ports import Embedder

BASELINES: Mapping[str, Callable[[Embedder], System]] = {}
"""Those that need no language model, in the order of tables."""
