"""Retention over HTTP: `GET /memory/v1/retention` says what is due, and `POST` erases it now."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from palimpsest.domain.frozen import frozen
from palimpsest.edge.admin.operation import Call, Nothing, Routes, operation

RUN_SECONDS = 5.0  # of one request: whoever waits for the answer sees how far it came


@frozen
class Kind:
    """What is due of one kind."""

    due: Annotated[int, Field(description="Number of rows older than allowed.")]
    oldest_seconds: Annotated[float | None, Field(description="Age of the oldest that is stored; null: there is none.")]


@frozen
class File:
    """The database file."""

    bytes: Annotated[int, Field(description="Size of the file.")]
    used_bytes: Annotated[int, Field(description="Bytes in use.")]
    free_pages: Annotated[int, Field(description="Bytes of free pages.")]


@frozen
class DueByAge:
    """What is due, and how large the file is."""

    kinds: Annotated[dict[str, Kind], Field(description="`turns`, `tool_results`, `side_requests`, `explain`.")]
    file: Annotated[File, Field(description="The database file.")]


@frozen
class Swept:
    """What was erased because it was due."""

    swept: Annotated[dict[str, int], Field(description="Number of rows, by kind.")]
    complete: Annotated[bool, Field(description="Whether everything that was due was erased.")]
    file_bytes: Annotated[int, Field(description="Size of the database file afterwards.")]


class RetentionRoutes(Routes):
    @operation("GET /retention", "Show what is due by age", replies=DueByAge, for_operator=True)
    async def due(self, _call: Call[Nothing]) -> dict[str, Any]:
        return (await self._archive.sweeper.overview()).to_json()

    @operation("POST /retention", "Erase what is due, now", replies=Swept, for_operator=True, in_turn=False)
    async def run(self, _call: Call[Nothing]) -> dict[str, Any]:
        """For some seconds; `complete` says whether all of it went."""
        sweep = await self._archive.sweeper.sweep(RUN_SECONDS)
        return {"swept": dict(sweep.swept), "complete": sweep.is_complete, "file_bytes": sweep.bytes}
