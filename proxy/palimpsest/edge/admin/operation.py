"""
Operations of the admin API: one declaration of each, from which requests are parsed and the document is written.

A file of routes declares its operations at the methods that run them, with `operation`. The parameters are a frozen
dataclass: a field that stands in braces in the path is read from there, the others from the query, or from a JSON
object where the operation has a body. The reply is a dataclass too. Describe each field with
`Annotated[type, Field(description=...)]`.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field, is_dataclass, make_dataclass
from functools import cache, cached_property
from typing import Annotated, Any, Generic, TypeVar, get_args, get_type_hints

from pydantic import Field, TypeAdapter
from starlette.requests import Request

from palimpsest.core.caller.proxy_keys import ProxyKeys
from palimpsest.domain.frozen import described_fields, frozen
from palimpsest.domain.ports import Retriever, TurnTaker
from palimpsest.edge.access import Caller
from palimpsest.edge.admin.probe_routes import ReadinessProbe
from palimpsest.edge.open_turns import OpenTurns
from palimpsest.memory.archive import Archive
from palimpsest.memory.operation.policy_reload import PolicyReload
from palimpsest.store.knowledge.added_facts import KeyOf

P = TypeVar("P")
Run = TypeVar("Run", bound=Callable[..., Any])

PREFIX = "/memory/v1"
JSON = "application/json"
NOT_BLANK = r"\S"  # pattern of a text that says something


T = TypeVar("T")


class Refused(Exception):
    """A request that is answered with an error. The text says what was wrong and what to try."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text


def found(value: T | None, missing: str) -> T:
    """The value that was looked up; `Refused` where there is none."""
    if value is None:
        raise Refused(404, missing)
    return value


@dataclass(frozen=True, kw_only=True)
class OfTenant:
    """
    Parameters of an operation within a tenant: the base of theirs.

    After the guard, `tenant` is that of the caller's key, or what the operator named; "" is all tenants. Classes
    derived from it are `@dataclass(frozen=True, kw_only=True)` too.
    """

    tenant: Annotated[str, Field(description="The tenant; only with the admin token. A proxy key has its own.")] = ""


@dataclass(frozen=True)
class Nothing:
    """No parameters."""


@frozen
class Call(Generic[P]):
    """One request to an operation: who asks, and what, parsed."""

    caller: Caller
    asked: P
    request: Request


@dataclass(frozen=True)
class Operation(Generic[P]):
    """
    One method of one path.

    `run` returns the value that is sent as JSON, an instance of `replies`, or a `Response` of its own. It may raise
    `Refused`; a `PolicyError` is answered with 400, a `MemoryFault` with 503.
    """

    method: str
    path: str  # below `PREFIX`, with parameters in braces: /turns/{turn}, or {user:path} where it may hold slashes
    summary: str  # a line for the document
    run: Callable[[Call[P]], Awaitable[Any]]
    asks: type[P]
    replies: Any  # a type
    status: int = 200  # where it was done
    statuses: Mapping[int, str] = field(default_factory=dict)  # others that `run` answers with, and what they mean
    other_replies: Mapping[int, Any] = field(default_factory=dict)  # types, where those are answered with no `Error`
    takes: str = ""  # media type of the body; "": POST, PUT and PATCH take JSON, others none
    gives: str = JSON  # media type of the answer
    for_operator: bool = False  # a proxy key is refused with 403
    in_turn: bool = True  # one at a time: the store has few readers, and proxied requests need the others

    @property
    def body(self) -> str:
        """Media type of the body; "": it has none."""
        return self.takes or (JSON if self.method in ("POST", "PUT", "PATCH") else "")

    @cached_property
    def path_names(self) -> frozenset[str]:
        """Names of the parameters in the path."""
        return frozenset(re.findall(r"{(\w+)(?::\w+)?}", self.path))

    @property
    def adapter(self) -> TypeAdapter[P]:
        """The parser of parameters."""
        return _adapter(self.asks)  # type: ignore[arg-type]  # a type is hashable


@cache
def _adapter(asks: type[P]) -> TypeAdapter[P]:
    """Built when it is first needed, as all of them would delay the start, and once: policies change, types do not."""
    return TypeAdapter(asks)


def operation(place: str, summary: str, missing: str = "", **options: Any) -> Callable[[Run], Run]:
    """
    Declare a method of `Routes` as an operation; repeatedly, where several paths lead to it.

    Args:
        place: method and path: "GET /turns/{turn}".
        missing: what status 404 means; "": nothing.
        options: other fields of `Operation`. Without them, `asks` and `replies` are what the annotations of the method
            say: `Call[asks]`, and the type that it returns.
    """
    method, _, path = place.partition(" ")
    statuses = ({404: missing} if missing else {}) | options.pop("statuses", {})
    declared = {"method": method, "path": path, "summary": summary, "statuses": statuses, **options}

    def declare(run: Run) -> Run:
        vars(run).setdefault("operations", []).insert(0, declared)
        return run

    return declare


def operations_of(routes: object) -> Iterator[Operation[Any]]:
    """The operations that the methods of an object declare, in their order: of two paths that fit, the first counts."""
    for name, run in vars(type(routes)).items():
        if declared := getattr(run, "operations", ()):
            call, reply = get_type_hints(run).values()
            types = {"asks": get_args(call)[0], "replies": reply}
            yield from (Operation(run=getattr(routes, name), **types | options) for options in declared)


def response_type(value_type: type) -> Any:
    """The type of what is answered where a value is: see `frozen.json_value`."""
    kinds = get_type_hints(value_type)
    declared: list[Any] = []
    for name, one in described_fields(value_type):
        kind = response_type(kinds[one.name]) if is_dataclass(kinds[one.name]) else kinds[one.name]
        described = Annotated[kind, Field(description=one.metadata["about"])]  # type: ignore[valid-type]
        declared.append((name, described, field(default=one.default, kw_only=True)))
    return make_dataclass(value_type.__name__, declared, namespace={"__doc__": value_type.__doc__}, frozen=True)


@dataclass(frozen=True, kw_only=True)
class Parts:
    """
    What the operations work on; `default_tenant` is that of an operator's search that names none (`tenants.static`).
    """

    archive: Archive
    retriever: Retriever
    readiness_probe: ReadinessProbe
    policies: PolicyReload
    preparer: TurnTaker
    keyring: ProxyKeys
    open_turns: OpenTurns
    key_of: KeyOf
    default_tenant: str = ""


class Routes:
    """The operations of one resource: methods that `operation` declares."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._archive = parts.archive
        self._database, self._journal, self._clock = parts.archive.database, parts.archive.journal, parts.archive.clock
