"""
The table of the proxy's own endpoints: all resources of the admin API, and the endpoints of probes and monitoring.

Each resource is a file with a table of its operations. Whoever adds one names it in `operations`, and what it works on
in `Parts`; the document and the tests follow the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from starlette.convertors import Convertor, register_url_convertor
from starlette.routing import BaseRoute, Route

from proxy.edge.access import Access
from proxy.edge.admin.conversation_routes import ConversationRoutes
from proxy.edge.admin.document_routes import DocumentRoutes
from proxy.edge.admin.forget_routes import ForgetRoutes
from proxy.edge.admin.guard import Guard, PathEndpoint, UnknownPath
from proxy.edge.admin.health_routes import HealthRoutes, ProbeRoutes, Readying
from proxy.edge.admin.memory_routes import MemoryRoutes
from proxy.edge.admin.operation import PREFIX, Operation
from proxy.edge.admin.policy_routes import PolicyRoutes
from proxy.edge.admin.retention_routes import RetentionRoutes
from proxy.edge.admin.retire_routes import RetireRoutes
from proxy.edge.admin.search_routes import SearchRoutes
from proxy.edge.admin.stats_routes import StatsRoutes
from proxy.edge.admin.turn_routes import TurnRoutes
from proxy.memory.forgetting import Forgetting
from proxy.memory.policy_reload import PolicyReload
from proxy.memory.retention import Sweeper
from proxy.memory.retiring import Retiring
from proxy.metrics import Metrics
from proxy.ports import Clock, Retriever
from proxy.store.database import Database
from proxy.store.journal import Journal


@dataclass(frozen=True, kw_only=True)
class Parts:
    """
    What the operations work on.

    `default_tenant` is that of an operator's search that names none (`tenants.static`).
    """

    database: Database
    journal: Journal
    retriever: Retriever
    forgetting: Forgetting
    retiring: Retiring
    sweeper: Sweeper
    readying: Readying
    policies: PolicyReload
    clock: Clock
    default_tenant: str = ""


class _Anything(Convertor[str]):
    """What is left of a path; `path` of Starlette's ends at a line break."""

    regex = "(?s:.*)"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("anything", _Anything())


def operations(parts: Parts) -> list[Operation[Any]]:
    """The operations of all resources."""
    table: list[Operation[Any]] = [
        *ConversationRoutes(parts.database).operations(),
        *TurnRoutes(parts.database, parts.journal).operations(),
        *MemoryRoutes(parts.database).operations(),
        *SearchRoutes(parts.database, parts.journal, parts.retriever, parts.default_tenant).operations(),
        *ForgetRoutes(parts.forgetting, parts.clock).operations(),
        *RetireRoutes(parts.retiring, parts.clock).operations(),
        *RetentionRoutes(parts.sweeper).operations(),
        *PolicyRoutes(parts.policies).operations(),
        *StatsRoutes(parts.journal).operations(),
        *HealthRoutes(parts.readying).operations(),
    ]
    table += DocumentRoutes(lambda: table).operations()
    return table


def all_operations() -> list[Operation[Any]]:
    """The same table with nothing that it could work on: for whoever only wants to know what there is."""
    nothing: dict[str, Any] = {field.name: None for field in fields(Parts)}
    return operations(Parts(**nothing))


def admin_routes(
    parts: Parts, *, metrics: Metrics, access: Access, self_description: Mapping[str, Any]
) -> list[BaseRoute]:
    """
    The proxy's own endpoints, for `app.py` to mount in front of the proxied ones.

    Args:
        self_description: what `/livez` and `/healthz` say beside being alive.
    """
    probes = ProbeRoutes(parts.readying, metrics, access, self_description)
    return [
        *probes.routes(),
        *_routes(operations(parts), Guard(access)),
        Route("/memory{rest:anything}", UnknownPath()),
    ]


def _routes(table: Iterable[Operation[Any]], guard: Guard) -> list[Route]:
    by_path: dict[str, list[Operation[Any]]] = {}
    for operation in table:
        by_path.setdefault(operation.path, []).append(operation)
    return [
        Route(PREFIX + path.replace(":path}", ":anything}"), PathEndpoint(guard, operations))
        for path, operations in by_path.items()
    ]
