"""
The table of the admin API: the operations of all its resources.

Each resource is a file with a table of its operations. Whoever adds one names it in `operations`; those of features
come from `features.registry`. The document and the tests follow the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from typing import Any

from starlette.routing import Route, Router
from starlette.types import ASGIApp

from palimpsest.domain.ports import Preparer, Retriever
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
from palimpsest.memory.archive import Archive
from palimpsest.memory.operation.policy_reload import PolicyReload
from palimpsest.memory.operation.proxy_keys import KeyService
from palimpsest.memory.operation.switches import SwitchService
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


OfFeature = Callable[[Parts], Iterable[Operation[Any]]]
"""The operations of a feature."""


def operations(parts: Parts, features: Iterable[OfFeature]) -> list[Operation[Any]]:
    """The operations of all resources."""
    archive = parts.archive
    database, journal, clock = archive.database, archive.journal, archive.clock
    table: list[Operation[Any]] = [
        *ConversationRoutes(database).operations(),
        *TurnRoutes(database, journal).operations(),
        *PrepareRoutes(parts.preparer, parts.open_turns).operations(),
        *MemoryRoutes(database).operations(),
        *SearchRoutes(database, journal, parts.retriever, parts.default_tenant).operations(),
        *TrailRoutes(journal, database, parts.retriever, parts.policies).operations(),
        *ForgetRoutes(archive.forgetting, clock).operations(),
        *RetireRoutes(archive.retiring, clock).operations(),
        *RetentionRoutes(archive.sweeper).operations(),
        *PolicyRoutes(parts.policies).operations(),
        *KeyRoutes(KeyService(database, clock)).operations(),
        *SwitchRoutes(SwitchService(database, clock)).operations(),
        *SessionRoutes(database, parts.key_of, clock).operations(),
        *StatsRoutes(journal).operations(),
        *CostRoutes(database).operations(),
        *HealthRoutes(parts.readiness_probe).operations(),
        *(operation for feature in features for operation in feature(parts)),
    ]
    table += DocumentRoutes(lambda: table).operations()
    return table


class _Nothing:
    """Stands for anything that an operation may work on."""

    def __getattr__(self, _name: str) -> _Nothing:
        return self

    def __call__(self, *_given: object) -> _Nothing:
        return self


def all_operations(features: Iterable[OfFeature]) -> list[Operation[Any]]:
    """The same table with nothing that it could work on: for whoever only wants to know what there is."""
    nothing: Any = _Nothing()
    return operations(Parts(**{field.name: nothing for field in fields(Parts)}), features)


def admin_api(parts: Parts, access: Access, features: Iterable[OfFeature]) -> ASGIApp:
    """All of it as one application, which also answers whatever else is below /memory."""
    table = operations(parts, features)
    return Router(_routes(table, Guard(access)), redirect_slashes=False, default=UnknownPath())


def _routes(table: Iterable[Operation[Any]], guard: Guard) -> list[Route]:
    by_path: dict[str, list[Operation[Any]]] = {}
    for operation in table:
        by_path.setdefault(operation.path, []).append(operation)
    return [
        Route(PREFIX + path.replace(":path}", ":anything}"), PathEndpoint(guard, operations))
        for path, operations in by_path.items()
    ]
