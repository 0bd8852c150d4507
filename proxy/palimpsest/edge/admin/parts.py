"""
What the operations of the admin API work on, and the base of the classes that hold them.
"""

from __future__ import annotations

from dataclasses import dataclass

from palimpsest.domain.ports import Preparer, Retriever
from palimpsest.edge.admin.probe_routes import ReadinessProbe
from palimpsest.edge.open_turns import OpenTurns
from palimpsest.memory.archive import Archive
from palimpsest.memory.operation.policy_reload import PolicyReload
from palimpsest.store.knowledge.forgotten_facts import KeyOf


@dataclass(frozen=True, kw_only=True)
class Parts:
    """
    What the operations work on.

    `default_tenant` is that of an operator's search that names none (`tenants.static`).
    """

    archive: Archive
    retriever: Retriever
    readiness_probe: ReadinessProbe
    policies: PolicyReload
    preparer: Preparer
    open_turns: OpenTurns
    key_of: KeyOf
    default_tenant: str = ""


class Routes:
    """The operations of one resource: methods that `operation` declares."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._archive = parts.archive
        self._database, self._journal, self._clock = parts.archive.database, parts.archive.journal, parts.archive.clock
