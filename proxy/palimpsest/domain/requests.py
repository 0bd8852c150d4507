"""Requests and answers as their senders mean them: messages, fingerprints, insertions; the same for every wire."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any

from palimpsest.domain.frozen import frozen

Json = dict[str, Any]


class Api(StrEnum):
    """The API that a client speaks, by the name that `upstreams.wire` has for it."""

    OPENAI = "openai"
    ANTHROPIC = "anthropic"


RawHeaders = Sequence[tuple[bytes, bytes]]
"""Headers as they stand on the wire: repeated names and their order kept. A client's names are in lower case."""

REQUEST_HEADER = b"x-palimpsest-request"
"""The id of a request: inside the proxy among the headers of the request, and on the answer to it."""


@frozen
class ToolCall:
    """One call an assistant message makes; `arguments` is the JSON text as sent."""

    id: str
    name: str
    arguments: str


TOOL_ROLES = ("tool", "function")
"""Of messages that say what a tool returned."""


@frozen
class Message:
    """
    One message, read but not changed.

    `text` is its text parts joined by newlines, blocks of ours taken out. `raw` is the JSON value as sent.
    """

    role: str
    text: str
    raw: Json
    name: str = ""
    calls: tuple[ToolCall, ...] = ()
    answers_call: str = ""  # the id of the call that this tool message answers
    media: tuple[str, ...] = ()  # URLs, or "sha256:<hex>;<bytes>" of inlined data
    opaque: tuple[str, ...] = ()  # "sha256:..." of what a provider made of a history, as a rule for itself to read
    refers: tuple[str, ...] = ()  # ids of parts that are not sent: the provider has kept them

    @property
    def is_instruction(self) -> bool:
        """System and developer messages stand outside the history: clients rewrite them at will."""
        return self.role in ("system", "developer")


@frozen
class Layout:
    """
    Where the elements of its list stand in a body: from `first` to `last`, with what stands between them.

    Each is an object, from `starts` to `stops`, counted from `first` on. `outside` is the body as parsed, without its
    list. Made by `wire.layout`.
    """

    body: bytes = field(repr=False)
    first: int
    last: int
    starts: Sequence[int]
    stops: Sequence[int]
    outside: Json
    elements: Sequence[Any] = field(repr=False)


@dataclass(frozen=True)
class Chat:
    """One request, whatever its wire. `raw` is the parsed body, never changed in place; `body` the client's bytes."""

    messages: Sequence[Message]
    model: str
    body: bytes
    raw: Json
    user: str = ""
    tool_names: tuple[str, ...] = ()
    stream: bool = False
    max_reply_tokens: int | None = None
    places: Sequence[int] = ()  # of each message in the body's own list, -1 outside of it; (): they are the same
    held: bool = False  # the provider holds the history, and the request sends only what is new
    follows: str = ""  # id of the answer that such a request continues, where it names one
    compacts: bool = False  # it asks the provider to compact the history, and can mean nothing else
    layout: Layout | None = field(default=None, compare=False, repr=False)  # None: not known

    @cached_property
    def history(self) -> Sequence[Message]:
        """The messages without instructions: what lineage compares."""
        return tuple(m for m in self.messages if not m.is_instruction)


@frozen
class Completion:
    """What was heard of one answer: its message (None: nothing readable), and the prompt tokens that it was billed."""

    message: Message | None = None
    prompt_tokens: int | None = None
    id: str = ""  # by which later requests may name it
    part_ids: tuple[str, ...] = ()  # by which they may stand for its parts, where the provider keeps them


@frozen
class Fingerprint:
    """
    Two keyed 63-bit hashes of one normalised message.

    `full`: role, squeezed text, tool names and arguments. `opening`: role and the first characters only, for clients
    that glue reminders to a message and take them off again, or cut it in its middle.
    """

    full: int
    opening: int


@frozen
class Insertion:
    """
    Text to add to a request.

    `role` empty: into the message at index `at`, before what it says. Otherwise a message of its own, of that role,
    in front of index `at`.
    """

    at: int
    text: str
    role: str = ""


@frozen
class TooLong:
    """
    A provider's refusal of a prompt for its length.

    `window_tokens` is the window that it names and `prompt_tokens` the prompt as the provider counted it, None where it
    names none; `is_of_model` False: whoever refused counted bytes and knows of no model.
    """

    window_tokens: int | None = None
    is_of_model: bool = True
    prompt_tokens: int | None = None


@frozen
class ProxyKey:
    """A key that was made while the proxy ran. The key itself is known to its caller alone."""

    id: str
    shown: str  # its first characters
    name: str  # for people
    tenant: str
    users: tuple[str, ...] = ()  # whom requests may name; () anybody
    scopes: tuple[str, ...] = ()  # the same of projects
    read_only: bool = False  # recalls, and archives nothing
    created_at: float = 0.0
    expires_at: float | None = None  # Unix seconds; None: never
    revoked_at: float | None = None
    may_name_user: bool = True
    may_name_conversation: bool = True
