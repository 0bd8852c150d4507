"""
Forgetting over HTTP: `POST /memory/v1/forget`, and `DELETE` on a turn, a conversation, a user or a tenant.

A proxy key erases in its own tenant only. What is not stored is answered with 404, never with success.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated, Any

from pydantic import Field
from starlette.responses import Response

from palimpsest.core.archive.receipt import is_done
from palimpsest.domain.frozen import frozen
from palimpsest.edge.admin.operation import NOT_BLANK, Call, OfTenant, Routes, found, operation
from palimpsest.edge.replies import json_reply
from palimpsest.memory.erasure.targets import target_of

AGE = r"^\s*\d{1,6}[mhdw]\s*$"
NOTHING = "nothing stored matches, so nothing was erased"
NOT_CLEAN = 500  # the receipt says what is left

Name = Annotated[str, Field(pattern=NOT_BLANK)]
DryRun = Annotated[bool, Field(description="Only count what would be erased.")]


@dataclass(frozen=True, kw_only=True)
class Forget(OfTenant):
    """What to forget. Several parameters restrict each other."""

    conversation: Annotated[
        Name, Field(description="Id of a conversation; its sub-agents' conversations are included.")
    ] = ""
    turn: Annotated[Name, Field(description="Id of a turn, or CONVERSATION/N.")] = ""
    user: Annotated[Name, Field(description="A user.")] = ""
    scope: Annotated[Name, Field(description="A project, from `x-palimpsest-scope`.")] = ""
    older_than: Annotated[str, Field(pattern=AGE, description="Age of messages: 90d, 12h, 4w.")] = ""
    matching: Annotated[Name, Field(description="Words that the messages contain, ignoring case.")] = ""
    credentials: Annotated[bool, Field(description="Messages in which redaction would find a credential now.")] = False
    dry_run: DryRun = False


@dataclass(frozen=True, kw_only=True)
class DeleteConversation(OfTenant):
    conversation: Annotated[str, Field(description="Id of the conversation.")]
    dry_run: DryRun = False


@dataclass(frozen=True, kw_only=True)
class DeleteNumberedTurn(DeleteConversation):
    number: Annotated[
        str, Field(pattern=r"^[1-9]\d{0,8}$", description="Number of the turn in its conversation, from 1.")
    ]


@dataclass(frozen=True, kw_only=True)
class DeleteTurn(OfTenant):
    turn: Annotated[str, Field(description="Id of the turn: what `x-palimpsest-turn` said.")]
    dry_run: DryRun = False


@dataclass(frozen=True, kw_only=True)
class DeleteUser(OfTenant):
    user: Annotated[str, Field(description="The user.")]
    dry_run: DryRun = False


@dataclass(frozen=True, kw_only=True)
class DeleteTenant(OfTenant):
    dry_run: DryRun = False


@frozen
class Preview:
    """What would be erased; nothing was."""

    dry_run: Annotated[bool, Field(description="Always true.")]
    tenants: Annotated[int, Field(description="Number of tenants affected.")]
    would_erase: Annotated[dict[str, int], Field(description="Number of rows, by kind.")]


@frozen
class DiskCheck:
    """The result of searching the database files after the erasure."""

    clean: Annotated[bool, Field(description="Whether nothing is left on the disk.")]
    files: Annotated[int, Field(description="Number of files searched.")]
    bytes: Annotated[int, Field(description="Total size of these files.")]
    samples: Annotated[int, Field(description="Number of samples of the erased text that were searched for.")]
    said_elsewhere: Annotated[int, Field(description="Samples that are also part of other messages.")]
    left: Annotated[int, Field(description="Samples found that no other message explains.")]
    where: Annotated[list[str], Field(description="Files that hold what is left, by their paths in the data folder.")]
    searched: Annotated[
        bool, Field(description="Whether it was searched; the files of a database server cannot be searched.")
    ]
    log_emptied: Annotated[bool, Field(description="Whether the database's write-ahead log was emptied.")]


@frozen
class Receipt:
    """A signed receipt for an erasure; it contains nothing of what was erased."""

    id: Annotated[str, Field(description="Id of the receipt.")]
    what: Annotated[str, Field(description="`erasure`.")]
    at: Annotated[str, Field(description="When it was done, ISO 8601.")]
    asked: Annotated[dict[str, Any], Field(description="What was requested, by parameter.")]
    tenants: Annotated[int, Field(description="Number of tenants affected.")]
    erased: Annotated[dict[str, int], Field(description="Number of rows, by kind.")]
    stays: Annotated[dict[str, Any], Field(description="What remains, and why.")]
    check: Annotated[DiskCheck, Field(description="Result of searching the disk afterwards.")]
    not_covered: Annotated[list[str], Field(description="Places that the erasure does not reach.")]
    signature: Annotated[str, Field(description="Signature with a key of this installation.")]


ERASING: dict[str, Any] = {
    "replies": Receipt | Preview,
    "missing": NOTHING,
    "statuses": {NOT_CLEAN: "it was erased, and remains were found on the disk; the receipt lists them"},
    "other_replies": {NOT_CLEAN: Receipt},
    "in_turn": False,
}


class ForgetRoutes(Routes):
    @operation("POST /forget", "Erase what matches", **ERASING)
    async def forget(self, call: Call[Forget]) -> Response:
        """The body says what to forget."""
        return await self._answer(asdict(call.asked))

    @operation(
        "DELETE /conversations/{conversation}/turns/{number}",
        "Erase a turn by its number",
        asks=DeleteNumberedTurn,
        **ERASING,
    )
    @operation("DELETE /conversations/{conversation}", "Erase a conversation", asks=DeleteConversation, **ERASING)
    @operation("DELETE /turns/{turn}", "Erase a turn", asks=DeleteTurn, **ERASING)
    @operation("DELETE /users/{user:path}", "Erase all conversations of a user", asks=DeleteUser, **ERASING)
    @operation("DELETE /tenants/{tenant:path}", "Erase everything of a tenant", asks=DeleteTenant, **ERASING)
    async def delete(self, call: Call[Any]) -> Response:
        """The path says what to forget."""
        given = asdict(call.asked)
        if "number" in given:
            given["turn"] = f"{given.pop('conversation')}/{given.pop('number')}"
        return await self._answer(given)

    async def _answer(self, given: dict[str, Any]) -> Response:
        dry_run = given.pop("dry_run")
        target = target_of({name: value for name, value in given.items() if value}, self._clock())
        if dry_run:
            preview = found(await self._archive.forgetting.preview(target), NOTHING)
            return json_reply(Preview(True, preview.tenants, preview.counts))
        receipt = found(await self._archive.forgetting.erase(target), NOTHING)
        return json_reply(receipt, 200 if is_done(receipt) else NOT_CLEAN)
