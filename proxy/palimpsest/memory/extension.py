"""Extensions: parts of a running memory that not every policy wants, made when one first does."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Protocol

from palimpsest.domain import AssistRole, Query, Recalled
from palimpsest.domain.ports import Assistant
from palimpsest.settings.policy import Policy

if TYPE_CHECKING:
    from palimpsest.memory.service import MemoryService

Task = Callable[[], Awaitable[None]]
"""The work of a background task; called anew where it failed."""


class QueryPlanner(Protocol):
    """Plans how a question is looked up."""

    async def planned(self, query: Query, deadline: float) -> Query:
        """The query with a plan, or as it is where none is made by the deadline (the event loop's clock)."""


class CandidateSelector(Protocol):
    """Orders what recall found."""

    async def selected(self, query: Query, recalled: Recalled, deadline: float) -> Recalled:
        """The candidates in another order, or unchanged if there is none by the deadline (the event loop's clock)."""


class Extension:
    """The base of all, which adds nothing."""

    planner: QueryPlanner | None = None
    selector: CandidateSelector | None = None

    def of(self, role: AssistRole) -> Assistant | None:
        """See `ports.Assistants`."""
        return None

    def tasks(self) -> Mapping[str, Task]:
        """Background tasks that the policy in force wants, by name; one that it no longer wants rests or ends."""
        return {}

    def troubles(self) -> Iterable[str]:
        """What is not as it should be, in words that name nobody."""
        return ()

    def note_written(self) -> None:
        """Turns were written."""

    async def apply(self, policy: Policy) -> None:
        """Prepare for a policy that is about to be in force; called while memory is open."""

    async def open(self) -> None:
        """Load what takes long, so that no request waits for it."""

    async def close(self) -> None:
        """End what runs."""


class ExtensionSource(Protocol):
    """Where an extension comes from; implemented by `features.registry`."""

    @property
    def name(self) -> str:
        """Of the feature."""

    def extends(self, policy: Policy) -> bool:
        """Whether a policy wants it."""

    def extension(self, memory: MemoryService) -> Extension:
        """Make it, and import what it is made of."""
