"""
The table of the admin API: the operations of all its resources.

Each resource is a file, and a class that is named in `RESOURCES`; those of features come from `features.registry`. The
document and the tests follow the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from typing import Any

from starlette.routing import Route, Router
from starlette.types import ASGIApp

from palimpsest.edge.access import Access
from palimpsest.edge.admin.conversation_routes import ConversationRoutes, SessionRoutes
from palimpsest.edge.admin.forget_routes import ForgetRoutes
from palimpsest.edge.admin.guard import Guard, PathEndpoint, unknown_path
from palimpsest.edge.admin.health_routes import DocumentRoutes, HealthRoutes
from palimpsest.edge.admin.key_routes import KeyRoutes
from palimpsest.edge.admin.link_routes import LinkRoutes
from palimpsest.edge.admin.loss_routes import LossRoutes
from palimpsest.edge.admin.memory_routes import MemoryRoutes
from palimpsest.edge.admin.operation import PREFIX, Operation, Parts, Routes, operations_of
from palimpsest.edge.admin.policy_routes import PolicyRoutes, SwitchRoutes
from palimpsest.edge.admin.prepare_routes import PrepareRoutes
from palimpsest.edge.admin.reminder_routes import ReminderRoutes
from palimpsest.edge.admin.retention_routes import RetentionRoutes
from palimpsest.edge.admin.retire_routes import RetireRoutes
from palimpsest.edge.admin.search_routes import SearchRoutes, TrailRoutes
from palimpsest.edge.admin.stats_routes import CostRoutes, StatsRoutes
from palimpsest.edge.admin.turn_routes import TurnRoutes
from palimpsest.edge.admin.work_routes import WorkRoutes
from palimpsest.memory.archive import Archive

RESOURCES: tuple[type[Routes], ...] = (
    ConversationRoutes,
    TurnRoutes,
    LossRoutes,
    WorkRoutes,
    PrepareRoutes,
    MemoryRoutes,
    SearchRoutes,
    TrailRoutes,
    ForgetRoutes,
    ReminderRoutes,
    RetireRoutes,
    RetentionRoutes,
    PolicyRoutes,
    KeyRoutes,
    SwitchRoutes,
    SessionRoutes,
    StatsRoutes,
    CostRoutes,
    HealthRoutes,
    LinkRoutes,
)

OfFeature = Callable[[Parts], Routes]
"""The operations of a feature."""


def operations(parts: Parts, features: Iterable[OfFeature]) -> list[Operation[Any]]:
    """The operations of all resources."""
    every: list[OfFeature] = [*RESOURCES, *features]
    table = [operation for routes in every for operation in operations_of(routes(parts))]
    table += operations_of(DocumentRoutes(lambda: table))
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


def admin_api(
    parts: Parts,
    access: Access,
    features: Iterable[OfFeature],
    page: Callable[[Sequence[Operation[Any]], Guard, Archive], ASGIApp] | None = None,
) -> ASGIApp:
    """All of it as one application; `page` makes the one that answers whatever else is below /memory."""
    table, guard = operations(parts, features), Guard(access)
    others = unknown_path if page is None else page(table, guard, parts.archive)
    return Router(_routes(table, guard), redirect_slashes=False, default=others)


def _routes(table: Iterable[Operation[Any]], guard: Guard) -> list[Route]:
    by_path: dict[str, list[Operation[Any]]] = {}
    for operation in table:
        by_path.setdefault(operation.path, []).append(operation)
    return [
        Route(PREFIX + path.replace(":path}", ":anything}"), PathEndpoint(guard, operations))
        for path, operations in by_path.items()
    ]
