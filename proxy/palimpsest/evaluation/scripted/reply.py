"""The script's reply to a request, the same for every API."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field

import orjson

from palimpsest.domain import Json, ToolCall, frozen

CHARS_PER_TOKEN = 4  # rule of thumb for English; usage must be plausible, not right
PIECE_CHARS = 24  # a streamed delta: a few words, as providers send
OPAQUE_BYTES = 48  # of a signature or of encrypted content; longer ones behave alike
MODELS = ("gpt-4o", "gpt-4o-mini")


@frozen
class Reply:
    """
    One scripted answer.

    `reasoning` comes before `text`, signed, in the form of each API. A status of 400 and more is an
    error that says `text`, in the wire's shape. `body` replaces what would be rendered: garbage, recorded bytes.
    `cut_after` breaks the connection after so many pieces (events of a stream, or halves of a whole body). With
    `lockstep` each piece waits for `permit()`.
    """

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    reasoning: str = ""
    status: int = 200
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    prompt_tokens: int | None = None  # all of them, cached ones included
    cache_read_tokens: int | None = None  # of these; None: as each API says where it has no cache
    cache_write_tokens: int = 0  # likewise; only Anthropic's says so
    wait_seconds: float = 0.0  # before the first byte
    pace_seconds: float = 0.0  # before each piece
    cut_after: int | None = None
    lockstep: bool = False

    @property
    def completion_tokens(self) -> int:
        """A plausible number of tokens, never 0."""
        return len(self.text) // CHARS_PER_TOKEN + 1


@frozen
class Received:
    """A request as it reached the upstream."""

    method: str
    path: str  # with its query
    headers: Mapping[str, str]
    body: bytes

    @property
    def endpoint(self) -> str:
        """The path without its query."""
        return self.path.partition("?")[0]

    @property
    def json(self) -> Json:
        """The parsed body; empty if it is not a JSON object."""
        try:
            parsed = orjson.loads(self.body)
        except orjson.JSONDecodeError:
            return {}
        return parsed if isinstance(parsed, dict) else {}

    @property
    def model(self) -> str:
        """The requested model, or the first one."""
        return self.json.get("model") or MODELS[0]

    @property
    def tokens(self) -> int:
        """The size of the request."""
        return len(self.body) // CHARS_PER_TOKEN


Script = Callable[[Json], Reply | str]


def in_turn(*replies: Reply | str) -> Script:
    """A script that answers with each reply once, in order; a further request gets a 500 that says so."""
    rest = iter(replies)
    return lambda _: next(rest, Reply("the script is over", status=500))


def pieces(text: str) -> Iterator[str]:
    """The text as it is streamed."""
    for start in range(0, len(text), PIECE_CHARS):
        yield text[start : start + PIECE_CHARS]


def opaque(*of: object) -> str:
    """A text that is unreadable, and the same for the same input, as a provider's encrypted item."""
    return hashlib.shake_128(orjson.dumps(of)).hexdigest(OPAQUE_BYTES)
