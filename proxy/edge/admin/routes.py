"""
The table of the proxy's own endpoints: all resources of the admin API, and the endpoints of probes and monitoring.

Each resource is a file with a table of its operations; whoever adds one names it in `admin_routes`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from starlette.routing import BaseRoute, Route

from proxy.edge.access import Access
from proxy.edge.admin.forget_routes import ForgetRoutes
from proxy.edge.admin.guard import Guard, PathEndpoint, UnknownPath
from proxy.edge.admin.health_routes import HealthRoutes
from proxy.edge.admin.operation import PREFIX, Operation
from proxy.edge.admin.policy_routes import PolicyRoutes
from proxy.edge.admin.search_routes import SearchRoutes
from proxy.edge.admin.stats_routes import StatsRoutes
from proxy.edge.admin.turn_routes import TurnRoutes
from proxy.memory.service import MemoryState
from proxy.metrics import Metrics
from proxy.ports import Remembering
from proxy.store.journal import Journal


def admin_routes(
    *,
    journal: Journal,
    remembering: Remembering,
    state: Callable[[], Awaitable[MemoryState]],
    metrics: Metrics,
    access: Access,
    default_tenant: str = "",
    self_description: Mapping[str, Any] = MappingProxyType({}),
    forgetting: ForgetRoutes | None = None,
    policy: PolicyRoutes | None = None,
    is_draining: Callable[[], bool] = lambda: False,
) -> list[BaseRoute]:
    """
    The proxy's own endpoints, for `app.py` to mount in front of the proxied ones.

    Args:
        state: how memory is now.
        default_tenant: tenant of an operator's search that names none: `tenants.static`.
        self_description: what `/livez` and `/healthz` say beside being alive.
        forgetting: None: nothing can be erased here.
        policy: None: it cannot be reloaded here.
        is_draining: whether a stop has begun, and requests should go elsewhere.
    """
    table: list[Operation[Any]] = [
        *TurnRoutes(journal).operations(),
        *SearchRoutes(journal, remembering, default_tenant).operations(),
        *StatsRoutes(journal).operations(),
        *(forgetting.operations() if forgetting is not None else ()),
        *(policy.operations() if policy is not None else ()),
    ]
    health = HealthRoutes(state, metrics, access, self_description, is_draining)
    return [*health.routes(), *_routes(table, Guard(access)), Route("/memory{rest:path}", UnknownPath())]


def _routes(table: Iterable[Operation[Any]], guard: Guard) -> list[Route]:
    by_path: dict[str, list[Operation[Any]]] = {}
    for operation in table:
        by_path.setdefault(operation.path, []).append(operation)
    return [Route(PREFIX + path, PathEndpoint(guard, operations)) for path, operations in by_path.items()]
