"""
The table of the admin API: the operations of all its resources.

Each resource is a file with a table of its operations. Whoever adds one names it in `operations`, and what it works on
in `Parts`; the document and the tests follow the table.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any

from starlette.routing import Route, Router
from starlette.types import ASGIApp

from palimpsest.domain.ports import Clock, Preparer, Retriever
from palimpsest.edge.access import Access
from palimpsest.edge.admin.conversation_routes import ConversationRoutes
from palimpsest.edge.admin.cost_routes import CostRoutes
from palimpsest.edge.admin.document_routes import DocumentRoutes
from palimpsest.edge.admin.forget_routes import ForgetRoutes
from palimpsest.edge.admin.guard import Guard, PathEndpoint, UnknownPath
from palimpsest.edge.admin.health_routes import HealthRoutes
from palimpsest.edge.admin.key_routes import KeyRoutes
from palimpsest.edge.admin.memory_routes import MemoryRoutes
from palimpsest.edge.admin.operation import PREFIX, Operation
from palimpsest.edge.admin.policy_routes import PolicyRoutes
from palimpsest.edge.admin.prepare_routes import PrepareRoutes
from palimpsest.edge.admin.probe_routes import ReadinessProbe
from palimpsest.edge.admin.retention_routes import RetentionRoutes
from palimpsest.edge.admin.retire_routes import RetireRoutes
from palimpsest.edge.admin.search_routes import SearchRoutes
from palimpsest.edge.admin.session_routes import SessionRoutes
from palimpsest.edge.admin.stats_routes import StatsRoutes
from palimpsest.edge.admin.switch_routes import SwitchRoutes
from palimpsest.edge.admin.trail_routes import TrailRoutes
from palimpsest.edge.admin.turn_routes import TurnRoutes
from palimpsest.edge.open_turns import OpenTurns
from palimpsest.features.facts.routes import FactRoutes
from palimpsest.features.facts.service import Facts
from palimpsest.features.gaps.routes import GapRoutes
from palimpsest.features.items.consolidation import Consolidator
from palimpsest.features.items.routes import ConsolidationRoutes
from palimpsest.features.transfer.routes import ExportRoutes
from palimpsest.memory.erasure.forgetting import Forgetting
from palimpsest.memory.erasure.retention import Sweeper
from palimpsest.memory.erasure.retiring import Retiring
from palimpsest.memory.operation.policy_reload import PolicyReload
from palimpsest.memory.operation.proxy_keys import KeyService
from palimpsest.memory.operation.switches import SwitchService
from palimpsest.store.engine import Engine
from palimpsest.store.journal import Journal
from palimpsest.store.knowledge.forgotten_facts import KeyOf


@dataclass(frozen=True, kw_only=True)
class Parts:
    """
    What the operations work on.

    `default_tenant` is that of an operator's search that names none (`tenants.static`).
    """

    database: Engine
    journal: Journal
    retriever: Retriever
    facts: Facts
    forgetting: Forgetting
    retiring: Retiring
    sweeper: Sweeper
    consolidator: Consolidator
    readiness_probe: ReadinessProbe
    policies: PolicyReload
    preparer: Preparer
    open_turns: OpenTurns
    clock: Clock
    key_of: KeyOf
    default_tenant: str = ""


def operations(parts: Parts) -> list[Operation[Any]]:
    """The operations of all resources."""
    table: list[Operation[Any]] = [
        *ConversationRoutes(parts.database).operations(),
        *TurnRoutes(parts.database, parts.journal).operations(),
        *PrepareRoutes(parts.preparer, parts.open_turns).operations(),
        *MemoryRoutes(parts.database).operations(),
        *SearchRoutes(parts.database, parts.journal, parts.retriever, parts.default_tenant).operations(),
        *TrailRoutes(parts.journal, parts.database, parts.retriever, parts.policies).operations(),
        *FactRoutes(parts.facts, parts.default_tenant).operations(),
        *ExportRoutes(parts.database, parts.key_of).operations(),
        *ForgetRoutes(parts.forgetting, parts.clock).operations(),
        *RetireRoutes(parts.retiring, parts.clock).operations(),
        *RetentionRoutes(parts.sweeper).operations(),
        *ConsolidationRoutes(parts.consolidator, parts.database, parts.clock).operations(),
        *PolicyRoutes(parts.policies).operations(),
        *KeyRoutes(KeyService(parts.database, parts.clock)).operations(),
        *SwitchRoutes(SwitchService(parts.database, parts.clock)).operations(),
        *SessionRoutes(parts.database, parts.key_of, parts.clock).operations(),
        *StatsRoutes(parts.journal).operations(),
        *CostRoutes(parts.database).operations(),
        *GapRoutes(parts.database).operations(),
        *HealthRoutes(parts.readiness_probe).operations(),
    ]
    table += DocumentRoutes(lambda: table).operations()
    return table


def all_operations() -> list[Operation[Any]]:
    """The same table with nothing that it could work on: for whoever only wants to know what there is."""
    nothing: dict[str, Any] = {field.name: None for field in fields(Parts)}
    return operations(Parts(**nothing))


def admin_api(parts: Parts, access: Access) -> ASGIApp:
    """All of it as one application, which also answers whatever else is below /memory."""
    return Router(_routes(operations(parts), Guard(access)), redirect_slashes=False, default=UnknownPath())


def _routes(table: Iterable[Operation[Any]], guard: Guard) -> list[Route]:
    by_path: dict[str, list[Operation[Any]]] = {}
    for operation in table:
        by_path.setdefault(operation.path, []).append(operation)
    return [
        Route(PREFIX + path.replace(":path}", ":anything}"), PathEndpoint(guard, operations))
        for path, operations in by_path.items()
    ]
