"""
A turn outside of any database: what an export writes and an import reads, whatever file it came from, and its times.

Rows are named by what is the same everywhere: a turn by its id, a message by the turn that brought it and its position
there.
"""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import Any

from palimpsest.domain import TURN_PREFIX, BlockKind, Ending, Event, Json, Role
from palimpsest.domain.days import seconds_of
from palimpsest.domain.frozen import frozen

ID_BYTES = 12  # of ids made of other programs' ids: no two ever share one

Place = tuple[str, int]
"""The turn that brought a message, and its position there; the answer stands behind the last message."""

Run = tuple[int, int, int]
"""Position in this turn, index in the parent's listing (`store/turns/diffs.py`), and how many messages follow."""

MAX_SECONDS = 253_370_764_800  # the year 9999, the last that has a date


@frozen
class PortableMessage:
    """A message that a turn brought. `raw` is its JSON as stored: credentials and inlined media are taken out."""

    position: int  # an answer's says nothing: it stands behind the last message
    raw: Json
    is_summary: bool = False  # put there by the client's compaction
    is_erased: bool = False  # only its role is left


@frozen
class PortableBlock:
    """What was added to a turn's request, and the messages that it quotes."""

    kind: BlockKind
    text: str
    position: int  # of the message that carries it
    role: str = ""  # of a message of its own; "" inside the one that carries it
    tokens: int = 0
    quotes: tuple[Place, ...] = ()


@frozen
class ForgottenFact:
    """A fact that stays forgotten though its message is stored: text[start:stop] of the message states it."""

    tenant: str
    place: Place
    start: int  # characters
    stop: int
    part: int  # of the facts that these characters state, from 0
    is_shared: bool  # those who are not named share one memory


@frozen
class PortableTurn:
    """
    One request and its answer, as a diff against its parent.

    `kept` and `kept_elsewhere` are messages of earlier turns that the request still carries: runs of its parent's
    listing, and single ones by position.
    """

    id: str
    conversation: str
    created_at: float  # Unix seconds, as is `answered_at`
    messages: tuple[PortableMessage, ...] = ()
    answer: PortableMessage | None = None
    answered_at: float = 0.0
    ending: Ending | None = Ending.COMPLETE  # None: still under way when it was exported
    parent: str = ""
    kept: tuple[Run, ...] = ()
    kept_elsewhere: tuple[tuple[int, Place], ...] = ()
    role: Role = Role.MAIN
    event: Event = Event.START
    tenant: str = ""
    user: str = ""
    scope: str = ""
    serves: str = ""  # the conversation that a sub-agent's or side conversation belongs to
    model: str = ""
    prompt_tokens: int | None = None
    block: PortableBlock | None = None
    sheds_blocks: bool = False  # earlier blocks of the conversation are no longer repeated
    client_ids: tuple[str, ...] = ()  # "signal:value", by which the client names the conversation (config/clients.yaml)

    @property
    def is_complete(self) -> bool:
        return self.ending is not None


def stable_id(*names: str, prefix: str = TURN_PREFIX) -> str:
    """An id that is the same at every import, derived from the tenant, the program and its ids."""
    return prefix + hashlib.blake2b("\0".join(names).encode(errors="surrogatepass"), digest_size=ID_BYTES).hexdigest()


def seconds(value: Any) -> float:
    """Unix seconds of an ISO 8601 time, UTC unless it has a zone; 0 if it is not a time."""
    if not isinstance(value, str):
        return 0.0
    try:
        read = datetime.fromisoformat(value)
        return seconds_of(read)
    except (ValueError, OverflowError, OSError):
        return 0.0
