"""Turns over HTTP: requests and their answers, what was decided for each, and what was added to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from palimpsest.core.block.explanation import passage_of
from palimpsest.domain import Event, Rebuild, Role, frozen
from palimpsest.edge.admin.operation import Call, OfTenant, Routes, found, operation
from palimpsest.edge.admin.paging import InPeriod, NextCursor, cursor_to, position_of
from palimpsest.store.engine import Ask
from palimpsest.store.turns.listings import Filter, Page, blocks_of_turn, conversations, messages_of_turn, turns

EXCERPT_CHARS = 1000  # of a candidate's message: as long as a passage
NEWEST = "newest"
NUMBER = r"^(newest|[1-9]\d{0,8})$"  # more turns than a conversation has, and fewer than a database integer holds
UNKNOWN_TURN = "no such turn"
UNKNOWN = "No such turn, or no such conversation."
LIST = "turns"
LIST_OF_ONE = "turnsof"

TurnName = Annotated[str, Field(description="Id of the turn (`x-palimpsest-turn`).")]
ConversationName = Annotated[str, Field(description="Id of the conversation.")]


@dataclass(frozen=True, kw_only=True)
class Turns(InPeriod):
    event: Annotated[Event | None, Field(description="Only turns with this event in the client's history.")] = None
    role: Annotated[Role | None, Field(description="Only turns of this role.")] = None
    added: Annotated[bool, Field(description="Only turns to which a new block was added.")] = False


@dataclass(frozen=True, kw_only=True)
class TurnsOfConversation(Turns):
    conversation: ConversationName


@dataclass(frozen=True, kw_only=True)
class NumberedTurn(OfTenant):
    conversation: ConversationName
    number: Annotated[
        str, Field(pattern=NUMBER, description="Number of the turn in its conversation, from 1, or `newest`.")
    ]


@dataclass(frozen=True, kw_only=True)
class NamedTurn(OfTenant):
    turn: Annotated[str, Field(description="Id of the turn (`x-palimpsest-turn`), or `newest`.")]


@frozen
class TurnSummary:
    """A request and its answer."""

    turn: TurnName
    conversation: ConversationName
    number: Annotated[int, Field(description="Its number in the conversation, from 1.")]
    tenant: Annotated[str, Field(description="Its tenant.")]
    role: Annotated[Role, Field(description="Role of the conversation.")]
    event: Annotated[Event, Field(description="Event in the client's history.")]
    ending: Annotated[
        str, Field(description="How the answer ended; `open`: it has not ended yet, or the proxy was killed.")
    ]
    model: Annotated[str, Field(description="The model that was asked.")]
    messages: Annotated[int, Field(description="Number of messages in the request.")]
    prompt_tokens: Annotated[int | None, Field(description="Prompt tokens, as counted by the provider.")]
    own_tokens: Annotated[
        int | None, Field(description="Tokens that the client sent, by the proxy's count; null: not archived.")
    ]
    cache_read_tokens: Annotated[
        int | None, Field(description="Prompt tokens read from the provider's prefix cache; null: not reported.")
    ]
    cache_write_tokens: Annotated[
        int | None, Field(description="Prompt tokens written to the cache; null: not reported.")
    ]
    rebuild: Annotated[Rebuild | None, Field(description="Why the provider rebuilt its cache; null: not known.")]
    rebuilt_tokens: Annotated[int | None, Field(description="Tokens read again because of that; null: not known.")]
    created_at: Annotated[float, Field(description="When it arrived, Unix seconds.")]
    title: Annotated[str, Field(description="First words of the new user message; empty: none.")]
    kind: Annotated[str, Field(description="Kind of the new block: `restore`, `recall`, `facts`; empty: none.")]
    note: Annotated[str, Field(description="Why no block was added; empty: one was.")]
    added_tokens: Annotated[int, Field(description="Tokens of all added blocks, including earlier ones.")]
    trimmed_tokens: Annotated[
        int, Field(description="Tokens that stayed behind because the request is longer than the window (`overflow`).")
    ]
    is_cut: Annotated[bool, Field(description="Whether more stayed behind than before.")]
    elapsed_ms: Annotated[
        dict[str, float],
        Field(description="Time that memory took, milliseconds: `read`, `decide`, and of that `recall`."),
    ]
    answered_ms: Annotated[
        float | None, Field(description="Time until the whole answer was there, milliseconds; null: it is not stored.")
    ]


@frozen
class TurnPage:
    """Turns."""

    turns: list[TurnSummary]
    next: NextCursor


@frozen
class ShownMessage:
    """A message as it is stored."""

    occurrence: Annotated[
        int, Field(description="Number of the message occurrence; candidates and blocks refer to it.")
    ]
    position: Annotated[int, Field(description="Position in the request, from 0; the answer comes last.")]
    role: Annotated[str, Field(description="Role: `user`, `assistant`, `tool`, `system` ...")]
    text: Annotated[str, Field(description="Text, with credentials redacted; empty if it was erased.")]
    is_answer: Annotated[bool, Field(description="Whether it answers this request.")]
    created_at: Annotated[float, Field(description="When it was stored, Unix seconds.")]
    state: Annotated[str, Field(description="`stored`, `retired` (may be restored) or `erased`.")]


@frozen
class ShownBlock:
    """Text that was added to a request."""

    kind: Annotated[
        str, Field(description="`restore` after a compaction, `recall`, or `facts`, which quotes no messages.")
    ]
    text: Annotated[str, Field(description="The whole block, as the model saw it.")]
    tokens: Annotated[int, Field(description="Tokens of the block.")]
    occurrences: Annotated[list[int], Field(description="The messages that it quotes.")]
    carried_by: Annotated[int, Field(description="Number of the message occurrence in front of whose text it stands.")]
    is_replayed: Annotated[bool, Field(description="Whether it is repeated in later requests.")]


@frozen
class Turn(TurnSummary):
    """A request and its answer, with what was decided and why."""

    user: Annotated[str, Field(description="The user named by the client.")]
    scope: Annotated[str, Field(description="The project named by the client.")]
    parent: Annotated[str, Field(description="Id of the parent conversation; empty: none.")]
    turns: Annotated[int, Field(description="Number of turns in the conversation.")]
    new_messages: Annotated[list[ShownMessage], Field(description="The new messages of the request, and its answer.")]
    blocks: Annotated[list[ShownBlock], Field(description="The blocks that were newly added.")]
    explain: Annotated[
        dict[str, Any],
        Field(
            description="The decision: event and evidence, pressure, query, gate, and `candidates`, each with score, "
            "probability, rank and value of each signal, whether it was `packed` or `why` not, and its `text` (null: "
            "it was erased since)."
        ),
    ]


class TurnRoutes(Routes):
    @operation("GET /turns", "List turns, the newest first")
    async def list_turns(self, call: Call[Turns]) -> TurnPage:
        (after,) = position_of(LIST, call.asked.cursor)
        which = _filter(call.asked)
        page = await self._database.ask(
            lambda ask: turns(ask, which, after, call.asked.limit, newest_first=True), which.tenant
        )
        return _page(LIST, page)

    @operation(
        "GET /conversations/{conversation}/turns",
        "List the turns of a conversation, the oldest first",
        missing="No such conversation.",
    )
    async def list_of_conversation(self, call: Call[TurnsOfConversation]) -> TurnPage:
        asked = call.asked
        (after,) = position_of(LIST_OF_ONE, asked.cursor)

        def look(ask: Ask) -> Page | None:
            named = conversations(ask, Filter(asked.tenant, conversation=asked.conversation), 0, 1).listed
            if not named:
                return None
            which = _filter(asked, tenant=named[0]["tenant"], conversation=asked.conversation)
            return turns(ask, which, after, asked.limit, newest_first=False)

        return _page(LIST_OF_ONE, found(await self._database.ask(look, asked.tenant), "no such conversation"))

    @operation(
        "GET /conversations/{conversation}/turns/{number}", "Show and explain a turn, by its number", missing=UNKNOWN
    )
    async def numbered(self, call: Call[NumberedTurn]) -> Turn:
        asked = call.asked
        number = None if asked.number == NEWEST else int(asked.number)
        return await self._whole(await self._journal.turn(asked.tenant or None, asked.conversation, number))

    @operation("GET /turns/{turn}", "Show and explain a turn", missing=UNKNOWN)
    async def named(self, call: Call[NamedTurn]) -> Turn:
        asked = call.asked
        key = None if asked.turn == NEWEST else asked.turn
        return await self._whole(await self._journal.turn_named(asked.tenant or None, key))

    async def _whole(self, named: Mapping[str, Any] | None) -> Turn:
        turn = found(named, UNKNOWN_TURN)
        explain, key, tenant = turn["explain"], turn["key"], turn["tenant"]
        candidates = explain.get("candidates", [])
        stored = await self._journal.messages(tenant, [candidate["occurrence"] for candidate in candidates])
        for candidate in candidates:  # None: forgotten since
            message = stored.get(candidate["occurrence"])
            candidate["text"] = None if message is None else passage_of(candidate, message.text)[:EXCERPT_CHARS]
        page, messages, blocks = await self._database.ask(
            lambda ask: (
                turns(ask, Filter(tenant, turn=key), 0, 1, newest_first=True),
                messages_of_turn(ask, tenant, key),
                blocks_of_turn(ask, tenant, key),
            ),
            tenant,
        )
        return Turn(
            **found(next(iter(page.listed), None), UNKNOWN_TURN),  # else erased in between
            **{name: turn[name] for name in ("user", "scope", "parent", "turns")},
            new_messages=[ShownMessage(**one) for one in messages],
            blocks=[ShownBlock(**one) for one in blocks],
            explain=explain,
        )


def _filter(asked: Turns, **more: str) -> Filter:
    since, until = asked.period
    filters = {"tenant": asked.tenant} | more
    return Filter(
        **filters, event=asked.event or "", role=asked.role or "", added=asked.added, since=since, until=until
    )


def _page(name: str, page: Page) -> TurnPage:
    return TurnPage([TurnSummary(**one) for one in page.listed], cursor_to(name, page.next))
