"""
Forgetting over HTTP: `POST /memory/v1/forget`, and `DELETE` on a turn, a conversation, a user or a tenant.

A proxy key erases in its own tenant only. What is not stored is answered with 404, never with success.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated, Any

from pydantic import Field
from starlette.responses import Response

from proxy.edge.admin.operation import Call, OfTenant, Operation, Refused
from proxy.edge.replies import json_reply
from proxy.memory.forgetting import Forgetting
from proxy.memory.targets import target_of
from proxy.ports import Clock

NOTHING = "nothing stored matches, so nothing was erased"
NOT_CLEAN = 500  # the receipt says what is left
STATUSES = {404: NOTHING, NOT_CLEAN: "it was erased, and remains were found on the disk; the receipt lists them"}

Name = str | None
DryRun = Annotated[bool, Field(description="Only count what would be erased.")]


@dataclass(frozen=True, kw_only=True)
class Forget(OfTenant):
    """What to forget; what is given restricts together."""

    conversation: Annotated[Name, Field(description="Id of a conversation; those of its sub-agents go too.")] = None
    turn: Annotated[Name, Field(description="Id of a turn, or CONVERSATION/N.")] = None
    user: Annotated[Name, Field(description="A user.")] = None
    scope: Annotated[Name, Field(description="A project, from `x-palimpsest-scope`.")] = None
    older_than: Annotated[Name, Field(description="Age of messages: 90d, 12h, 4w.")] = None
    matching: Annotated[Name, Field(description="Words that the messages contain, ignoring case.")] = None
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


class ForgetRoutes:
    """The operations that erase."""

    def __init__(self, forgetting: Forgetting, clock: Clock) -> None:
        self._forgetting = forgetting
        self._clock = clock

    def operations(self) -> tuple[Operation[Any], ...]:
        def delete(path: str, summary: str, asks: type[Any]) -> Operation[Any]:
            return Operation("DELETE", path, summary, self.delete, asks, dict, statuses=STATUSES, in_turn=False)

        conversation = "/conversations/{conversation}"
        return (
            Operation(
                "POST", "/forget", "Erase what matches", self.forget, Forget, dict, statuses=STATUSES, in_turn=False
            ),
            delete(conversation + "/turns/{number}", "Erase a turn by its number", DeleteNumberedTurn),
            delete(conversation, "Erase a conversation", DeleteConversation),
            delete("/turns/{turn}", "Erase a turn", DeleteTurn),
            delete("/users/{user:path}", "Erase all conversations of a user", DeleteUser),
            delete("/tenants/{tenant:path}", "Erase everything of a tenant", DeleteTenant),
        )

    async def forget(self, call: Call[Forget]) -> Response:
        """The body says what to forget."""
        given = {name: value for name, value in asdict(call.asked).items() if value is not None}
        return await self._answer(given)

    async def delete(self, call: Call[Any]) -> Response:
        """The path says what to forget."""
        given = asdict(call.asked)
        if "number" in given:
            given["turn"] = f"{given.pop('conversation')}/{given.pop('number')}"
        return await self._answer(given)

    async def _answer(self, given: dict[str, Any]) -> Response:
        dry_run = given.pop("dry_run")
        if not given["tenant"]:
            del given["tenant"]
        target = target_of(given, self._clock())
        if dry_run:
            preview = await self._forgetting.preview(target)
            if preview is None:
                raise Refused(404, NOTHING)
            return json_reply({"dry_run": True, "tenants": preview.tenants, "would_erase": preview.counts})
        receipt = await self._forgetting.erase(target)
        if receipt is None:
            raise Refused(404, NOTHING)
        return json_reply(receipt, 200 if receipt["check"]["clean"] else NOT_CLEAN)
