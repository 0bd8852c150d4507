"""The writers that need no model, by the names of the papers that they stand in for."""

from __future__ import annotations

from collections.abc import Mapping

from palimpsest.core.writing import compact_items, epc, lightmem3
from palimpsest.core.writing.entries import Write

WRITERS: Mapping[str, Write] = {"epc": epc.write, "lightmem3": lightmem3.write, "lightmem-slm": compact_items.write}
