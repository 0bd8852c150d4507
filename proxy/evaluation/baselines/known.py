"""
The table of baselines, by the names that `--systems` takes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from proxy.evaluation.baselines.bm25 import Bm25
from proxy.evaluation.baselines.chunks import VerbatimChunks
from proxy.evaluation.baselines.dense import DenseTurns
from proxy.evaluation.baselines.epc import Epc
from proxy.evaluation.baselines.extractive import Extractive
from proxy.evaluation.baselines.lantern import Lantern, LanternWithChunks
from proxy.evaluation.baselines.memgpt import MemGpt
from proxy.evaluation.baselines.memorybank import MemoryBank
from proxy.evaluation.baselines.recent import MostRecent
from proxy.evaluation.baselines.summary import Summary, TwoPassSummary
from proxy.evaluation.model import Model
from proxy.evaluation.systems import System
from proxy.ports import Embedder

BASELINES: Mapping[str, Callable[[Embedder], System]] = {
    system.name: system
    for system in (
        MostRecent,
        Extractive,
        VerbatimChunks,
        DenseTurns,
        Bm25,
        MemoryBank,
        Lantern,
        LanternWithChunks,
    )
}
"""Those that need no language model, in the order of tables."""

MODEL_BASELINES: Mapping[str, Callable[[Embedder, Model], System]] = {
    system.name: system for system in (Summary, TwoPassSummary, Epc, MemGpt)
}
"""Those that need one."""
