"""
Protocols, no code: what a service needs of things that come in several kinds.

The database comes in one: services name its classes (`store/`), and so do those that are built on it. "Nothing found"
is an empty value; "could not look" raises `MemoryFault`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Literal, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from palimpsest.domain import (
    Api,
    AssistRole,
    Chat,
    Completion,
    Ending,
    Insertion,
    Json,
    Query,
    RawHeaders,
    Recalled,
    TooLong,
)
from palimpsest.domain.frozen import frozen

if TYPE_CHECKING:
    from palimpsest.core.caller.received import ReceivedRequest
    from palimpsest.wire.layout import KnownBody

T = TypeVar("T")

Vectors = npt.NDArray[np.float32]


class Embedder(Protocol):
    """Turns texts into unit vectors. `ready` is False while the model is missing; then `embed` raises `MemoryFault`."""

    @property
    def ready(self) -> bool: ...

    @property
    def name(self) -> str:
        """Stored with each vector; vectors of another name are rebuilt."""

    @property
    def dimensions(self) -> int:
        """Of each vector, a multiple of 64."""

    async def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Forms of one question, shape (n, dimensions). On the hot path: milliseconds."""

    async def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Shape (n, dimensions), in the background, at low priority."""


class Retriever(Protocol):
    """Finds what is stored that answers a question; implemented by `memory.recall`."""

    async def recall(self, query: Query, limit: int) -> Recalled:
        """Best candidates first, visible and excluded ones left out."""


Clock = Callable[[], float]


class Listener(Protocol):
    """
    Listens to one answer without changing it.

    Call `feed` with every chunk as the upstream sent it and forward at once as many of its leading bytes as it returns;
    from the first byte that it holds back, everything waits for `finish`. So hold back nothing but the end: a stream's
    terminal event, or the chunk that completes `content-length`. (The end of a body without either waits anyway.)
    Call `finish` exactly once, however the answer ended; it hands over what was heard synchronously, so a cancelled
    caller need not await `committed`.
    """

    def feed(self, data: bytes) -> int:
        """How many leading bytes of `data` may be forwarded now; the terminal event waits for the commit."""

    def finish(self, ending: Ending) -> None:
        """Hand over what was heard."""

    async def committed(self) -> Mapping[str, str | int]:
        """
        Wait until what `finish` handed over is committed, or that takes too long: what the log says of the answer.
        """


class Wire(Protocol):
    """One API that clients speak; implemented by the modules `wire.chat`, `wire.responses`, `wire.messages`."""

    API: Api
    LISTED: str  # the body's key for its list of messages
    FOLDS: bool  # several elements of that list may make one message

    def parse(self, body: bytes, known: KnownBody | None = None, raw: Json | None = None) -> Chat:
        """
        Read a request.

        Args:
            known: what of this very body was read before.
            raw: the JSON object that it is; None: it is read here.

        Raises:
            WireError: it is none that we understand; pass it on untouched.
        """

    def render(self, chat: Chat, insertions: Sequence[Insertion]) -> bytes:
        """
        The body with text added to its messages, else the client's bytes. Raises `WireError`: its meaning is in doubt.
        """

    def reply(self, payloads: Sequence[bytes], streamed: bool) -> Completion:
        """Read the payloads of an answer, events if `streamed`, else the pieces of one JSON body; never raises."""


Body = bytes | AsyncIterator[bytes]
"""A request's body: whole, or piece by piece as it arrives."""


class UpstreamAnswer(Protocol):
    """
    An upstream's answer that has begun: status and headers are here, the body comes chunk by chunk.

    Iterate for the chunks, as soon as there are any; `UpstreamUnreachable` is raised where the upstream breaks off.
    Await `aclose` in every case: what was not read to its end is given up, and the provider is told.
    """

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> RawHeaders: ...

    def __aiter__(self) -> AsyncIterator[bytes]: ...

    async def aclose(self) -> None: ...


class Sender(Protocol):
    """Sends requests to all upstreams; implemented by `upstream.dispatcher`."""

    async def send(self, model: str, method: str, target: str, headers: RawHeaders, body: Body) -> UpstreamAnswer:
        """
        Choose the upstream of a request, and ask it.

        Args:
            model: that the request names; "" where it names none, or nobody need know.
            target: path and query exactly as the client sent them, from the `/` on.
            headers: the client's.

        Raises:
            NotServed: no upstream is for this request.
            UpstreamUnreachable: there is no answer.
        """


@frozen
class Prepared:
    """
    A request as memory has prepared it.

    `body` goes upstream; `headers` are added to whatever answer the client gets. `model` chooses the upstream, "" where
    none can be read. `listen` is called exactly once, when status and headers of the answer arrive, and its listener's
    `finish` too; status 0: no upstream answered, because none could be reached or the client went before. `log_fields`
    are for the log: names and numbers of ours, nobody's words.

    `bare` is the request without what memory adds, where that is not what the client sent: compaction items of ours are
    written out in both. `answer` is the proxy's own answer, content type and body: then nothing goes upstream. With
    `opens_with` the answer is to begin with a compaction of that reference.

    `without` is there where something was added, or may be left out: await it where the upstream refuses `body` for its
    length. What it returns takes the place of this, with the request as the client sent it where its `body` is empty;
    `listen` of this is then not called. None: there is nothing else to send, and the refusal is the answer. So is
    `compacts` with a request for a compaction that the upstream is to answer: await it where the upstream has none.
    """

    body: bytes
    headers: tuple[tuple[bytes, bytes], ...] = ()
    model: str = ""
    listen: Callable[[int, RawHeaders], Listener] | None = None
    log_fields: dict[str, str | int | float] = field(default_factory=dict)
    without: Callable[[TooLong], Awaitable[Prepared | None]] | None = None
    bare: bytes | None = None
    answer: tuple[str, bytes] | None = None
    opens_with: str = ""
    compacts: Callable[[], Awaitable[Prepared | None]] | None = None


class Preparer(Protocol):
    """Prepares requests before they go upstream; implemented by the pipeline."""

    async def prepare(
        self, request: ReceivedRequest, wire: Wire, arrived: float | None = None, turn: str = ""
    ) -> Prepared:
        """
        What to forward instead, what to add to the answer, and who listens to it. Whatever fails, it goes on.

        Args:
            request: without a body where that is larger than memory reads; it is forwarded as it was sent.
            arrived: when the request was there, by the event loop's clock: the deadline runs from then. None: now.
            turn: its id; "": a new one.

        Raises:
            CompactionRefused: the client sent a compaction item of ours that it cannot go on from.
        """

    async def to_be_counted(self, request: ReceivedRequest, wire: Wire) -> Prepared:
        """What to have counted of a request that is only to be counted. Raises `CompactionRefused`: as `prepare`."""

    def listener_for(self, method: str, path: str) -> Callable[[int, RawHeaders], Listener] | None:
        """Who listens to the answer to a request that memory does not act on; None: nobody."""


@frozen
class Passage:
    """A request that went to its provider elsewhere, without what memory here would add."""

    turn: str  # its id
    headers: RawHeaders
    body: bytes
    wire: Wire
    at: float  # Unix seconds
    tenant: str = ""  # whose it is, where no credential tells
    key: bytes = b""  # hash of the proxy key that its caller showed; empty: none
    is_bare: bool = False  # what was added to it was taken out again, as it made it too long


class TurnTaker(Preparer, Protocol):
    """Also takes turns of requests that another proxy sent; implemented by the pipeline."""

    async def take(self, passage: Passage) -> Callable[[int, RawHeaders], Listener] | None:
        """
        Have such a request archived, once however often it is taken. Call `written` behind the end of its answer.

        Returns:
            Who listens to its answer; None: it is not to be archived.

        Raises:
            MemoryFault: that cannot be done now.
            WireError: it can never be read.
        """

    async def wait_until_written(self, turn: str) -> bool:
        """Wait a while until the answer to a turn is on the disk; False: it is not yet."""


SpanKind = Literal["server", "client", "internal"]
AttributeValue = str | bool | int | float | Sequence[str] | None
Attributes = Mapping[str, AttributeValue]
"""Of a span, by names of OpenTelemetry's conventions; None: not known."""


class Span(Protocol):
    """One operation of a request that may be traced. Call `end` in every case; later calls do nothing."""

    @property
    def traceparent(self) -> str:
        """W3C trace context with this span as the parent; "" where nothing is traced."""

    @property
    def is_recording(self) -> bool:
        """Whether anything is kept of it: some traces are only passed on."""

    def set(self, attributes: Attributes) -> None: ...

    def rename(self, name: str) -> None: ...

    def fail(self, kind: str) -> None:
        """Mark as failed; `kind` is `error.type`."""

    def end(self, at_ns: int | None = None) -> None:
        """End, at these Unix nanoseconds or now."""


class Tracer(Protocol):
    """Makes spans; implemented in `palimpsest.telemetry.tracing`. Await `close` in the end."""

    @property
    def is_on(self) -> bool:
        """Whether requests are traced: only then need anything be prepared for it."""

    @property
    def captures_content(self) -> bool:
        """Whether the operator wants messages in spans."""

    def span(self, kind: SpanKind, name: str, parent: str, attributes: Attributes) -> Span:
        """Begin a span below a W3C trace context; "" begins a trace."""

    def complete(self, work: Callable[[], None], size_bytes: int) -> None:
        """Complete a span with what takes time; where there is much to be read, on a thread of the tracer's."""

    async def close(self) -> None: ...


@frozen
class Prompt:
    """
    One question to a language model that helps memory.

    `instructions` are ours. `text` is what they are about: quoted messages and other data, which reach the model as
    data, delimited and escaped, with the instruction that nothing in it is an order. `schema` is the JSON schema of the
    answer, an object; its `maxLength`, `maxItems` and `enum` are what keeps an answer within what was offered.
    `most_tokens` bounds the answer.
    """

    name: str
    instructions: str
    text: str
    schema: Json
    most_tokens: int = 1000


def object_schema(**properties: Json) -> Json:
    """The JSON schema of an object that has all of these properties, and no others."""
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}


class Assistant(Protocol):
    """A language model that helps memory in one role; implemented by `assist.model`."""

    async def answer(self, prompt: Prompt, tenant: str) -> Json:
        """What the model says, as the prompt's schema has it; raises `AssistFault` where there is no such answer."""


class Assistants(Protocol):
    """The models that the policy names; implemented by `assist.assistants`."""

    def of(self, role: AssistRole) -> Assistant | None:
        """The model in a role, as the policy in force names it; None: what works without a model does the work."""


class AssistCounts(Protocol):
    """The counters of models that help memory; implemented by `metrics.Metrics`."""

    def assisted(self, role: AssistRole, outcome: str, seconds: float) -> None:
        """Count a call that ended so: `answered`, or an `AssistFailure`."""

    def assist_used(self, role: AssistRole, prompt_tokens: int, completion_tokens: int, dollars: float) -> None:
        """Count what a provider will charge for."""


class LookupCounts(Protocol):
    """The counters of look-ups; implemented by `metrics.Metrics`."""

    def fault(self, where: str) -> None:
        """Count a fault of memory; the request went on."""

    def observe(self, stage: str, seconds: float) -> None:
        """Record the duration of a stage: `memory`, `recall`, `embed_query`, `journal`, `index`, `facts`."""


class ArchiveCounts(LookupCounts, Protocol):
    """The counters of writing and indexing; implemented by `metrics.Metrics`."""

    def gauge(self, name: str, value: float, *labels: str) -> None:
        """Set a state; names and labels are those of `metrics.GAUGES`."""

    def add(self, name: str, amount: float, *labels: str) -> None:
        """Count so many more; names and labels are those of `metrics.COUNTERS`."""


class Counts(ArchiveCounts, AssistCounts, Protocol):
    """The counters that services report to; implemented by `metrics.Metrics`."""
