"""The table of baselines, by the names that `--systems` takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from palimpsest.domain.ports import Embedder
from palimpsest.evaluation.baselines.bm25 import Bm25
from palimpsest.evaluation.baselines.chunks import VerbatimChunks
from palimpsest.evaluation.baselines.dense import DenseTurns
from palimpsest.evaluation.baselines.epc import Epc
from palimpsest.evaluation.baselines.extractive import Extractive
from palimpsest.evaluation.baselines.lantern import Lantern, LanternWithChunks, RerankedLantern, UnweightedLantern
from palimpsest.evaluation.baselines.memgpt import MemGpt
from palimpsest.evaluation.baselines.memorybank import MemoryBank
from palimpsest.evaluation.baselines.recent import MostRecent
from palimpsest.evaluation.baselines.summary import Summary, TwoPassSummary
from palimpsest.evaluation.model import Model
from palimpsest.evaluation.systems import System

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
        UnweightedLantern,
        LanternWithChunks,
    )
}
"""Those that need no language model, in the order of tables."""

MODEL_BASELINES: Mapping[str, Callable[[Embedder, Model], System]] = {
    system.name: system for system in (Summary, TwoPassSummary, Epc, MemGpt, RerankedLantern)
}
"""Those that need one."""
