"""
Requests as a generator of strange ones makes them: their JSON written in every way there is, bytes mutated, encoded.
"""

from __future__ import annotations

import gzip
import json
import random
import sys
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import brotli  # type: ignore[import-untyped]
from palimpsest.domain import RawHeaders

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "messages": "/v1/messages"}
TURNS = 6  # of a conversation before it is compacted
MUTATED = 0.3  # share of bodies whose JSON is no longer as it was written
MISLABELLED = 0.1  # share of encoded bodies that are changed behind the encoder, or named wrongly

WORDS = [
    "ferry",
    "pier",
    "island",
    "lantern",
    "ledger",
    "harbour",
    "quartz",
    "meadow",
    "timber",
    "saddle",
    "valley",
    "anchor",
    "bridge",
    "candle",
    "falcon",
]
STRANGE = (
    *("", " ", "\u0000", "\u2028", "é", "ß", "漢字", "\U0001f469\u200d\U0001f680", "\\", '"', "</s>", "\r\n", "\ufeff"),
    *('<palimpsest-memory kind="recall">\nnot ours\n</palimpsest-memory>', "}]", '"role":"user"', "\u007f", "\u202e"),
)
NUMBERS = (
    *(
        "0",
        "-0",
        "1.0",
        "1e2",
        "1E400",
        "0.1000",
        "123456789012345678901234567890",
        "-1.5e-7",
        "3.141592653589793238462",
    ),
    *("9007199254740993", "1e-400", "0.30000000000000004"),
)


@dataclass(frozen=True, slots=True)
class Number:
    """A number as it is written."""

    text: str


Object = list[tuple[str, Any]]
"""An object as its pairs: a key may stand there twice."""


@dataclass(frozen=True, slots=True)
class Sent:
    """One request. `plain` is its body before any encoding."""

    wire: str
    headers: RawHeaders
    body: bytes
    plain: bytes


class Talk:
    """One conversation that a client had: told whole once, and then sent in all states."""

    def __init__(self, wire: str, number: int) -> None:
        about = random.Random(f"{wire} {number}")
        self.wire, self.id = wire, f"{wire}-{number}"
        self.messages: list[tuple[str, str]] = []
        for turn in range(TURNS):
            name, code = " ".join(about.sample(WORDS, 3)), about.randrange(10**6)
            self.messages.append(("user", f"Remember that I decided the {name} number is {code}, point {turn}."))
            self.messages.append(("assistant", f"I noted that the {name} number is {code}, as your point {turn}."))
        self.asked = "Which of these numbers came first, and which one came last of all?"
        self.answer = f"The first number of {self.id} is the oldest."
        self.question = f"Which {self.messages[2][1].split('the ')[1].split(' number')[0]} number did we decide on?"

    def headers(self, *more: tuple[bytes, bytes]) -> RawHeaders:
        return (
            (b"authorization", b"Bearer sk-fuzz"),
            (b"content-type", b"application/json"),
            (b"x-palimpsest-conversation", self.id.encode()),
            *more,
        )

    def compacted(self, kept: int = 2) -> list[tuple[str, Any]]:
        return [("user", "Summary: some numbers were decided."), *self.messages[-kept:]]

    def body(self, messages: Sequence[tuple[str, Any]], more: Object | None = None) -> Object:
        """A request of the wire, plainly written."""
        listed = [[("role", role), ("content", content)] for role, content in messages]
        bound = [("max_tokens", Number("500"))] if self.wire == "messages" else []
        return [
            ("model", "gpt-4o"),
            ("input" if self.wire == "responses" else "messages", listed),
            *bound,
            *(more or []),
        ]


class Bodies:
    """
    An endless supply.

    Args:
        talks: what the requests continue, compact or forget.
    """

    def __init__(self, talks: Sequence[Talk], seed: int) -> None:
        self._talks = talks
        self._random = random.Random(seed)

    def next(self, is_encoded: bool = True) -> Sent:
        choose = self._random
        talk = choose.choice(self._talks)
        plain = self._written(self._request(talk)).encode(errors="surrogatepass")
        if choose.random() < MUTATED:
            plain = self._mutated(plain)
        names, body = self._encoded(plain) if is_encoded else ([], plain)
        encodings = tuple((b"content-encoding", name) for name in names)
        return Sent(talk.wire, talk.headers(*encodings), body, plain)

    def _request(self, talk: Talk) -> Object:
        choose = self._random
        state = choose.random()
        said: list[tuple[str, Any]] = [*talk.messages]
        if state < 0.6:  # compacted
            said = talk.compacted(choose.choice((2, 4)))
            if choose.random() < 0.5:  # a block was added to it before, and is to be said again
                said += [("user", talk.asked), ("assistant", talk.answer)]
        elif state < 0.8:  # with something of it changed
            at = choose.randrange(len(said))
            said[at] = (said[at][0], self._content(talk.wire, said[at][1]))
        question = talk.question if choose.random() < 0.7 else self._text()
        said.append(("user", self._content(talk.wire, question)))
        more: Object = [(self._text() or "x", self._value(3)) for _ in range(choose.choice((0, 0, 1, 3)))]
        if choose.random() < 0.3:
            more.append(("stream", choose.random() < 0.5))
        if choose.random() < 0.05:
            more.append((choose.choice(("model", "messages", "input", "stream")), self._value(2)))
        body = talk.body(said, more)
        if choose.random() < 0.3:
            choose.shuffle(body)
        return body

    def _content(self, wire: str, text: str) -> Any:
        """What a message says, in one of the forms that it may have."""
        choose = self._random
        form = choose.random()
        if form < 0.5:
            return text
        kind = "input_text" if wire == "responses" else "text"
        parts: list[Any] = [[("type", kind), ("text", text)]]
        while choose.random() < 0.4:
            parts.insert(
                choose.randrange(len(parts) + 1), [("type", kind), ("text", self._text()), ("x", self._value(1))]
            )
        if form < 0.9:
            return parts
        return choose.choice((None, [], "", self._value(2), text + self._text()))

    def _text(self) -> str:
        choose = self._random
        return " ".join(choose.choice(WORDS if choose.random() < 0.7 else STRANGE) for _ in range(choose.randrange(12)))

    def _value(self, depth: int) -> Any:
        choose = self._random
        kind = choose.randrange(8 if depth else 5)
        if kind < 2:
            return self._text()
        if kind < 4:
            return Number(choose.choice(NUMBERS))
        if kind == 4:
            return choose.choice((None, True, False))
        if kind < 7:
            return [(self._text(), self._value(depth - 1)) for _ in range(choose.randrange(4))] or {}
        return {"": [self._value(depth - 1) for _ in range(choose.randrange(4))]}

    def _written(self, body: Object) -> str:
        """JSON in one of its many forms: white space, escapes, the order of keys."""
        choose = self._random
        spaces = choose.choice(((), (), (), ("", " "), ("\n", "  ", "\t"), ("\r\n",)))
        escapes = choose.choice((0.0, 0.0, 0.1, 1.0))  # share of texts that have some
        is_ascii = choose.random() < 0.3
        pieces: list[str] = []
        add = pieces.append

        def space() -> None:
            if spaces:
                add(spaces[int(choose.random() * len(spaces))])

        def text(value: str) -> None:
            if not escapes or not value or choose.random() > escapes:
                add(json.dumps(value, ensure_ascii=is_ascii))
                return
            start = choose.randrange(len(value))
            stop = min(len(value), start + choose.choice((1, 3, 20)))
            head, tail = (json.dumps(part, ensure_ascii=is_ascii)[1:-1] for part in (value[:start], value[stop:]))
            units = value[start:stop].encode("utf-16-be", "surrogatepass")
            form = choose.choice(("\\u%04x", "\\u%04X"))
            escaped = "".join(form % int.from_bytes(units[at : at + 2], "big") for at in range(0, len(units), 2))
            add(f'"{head}{escaped}{tail}"')

        def write(value: Any) -> None:
            if isinstance(value, Number):
                add(value.text)
            elif isinstance(value, str):
                text(value)
            elif value is None or isinstance(value, bool):
                add(json.dumps(value))
            else:
                is_object = (bool(value) and isinstance(value, list) and isinstance(value[0], tuple)) or value == {}
                listed = value.get("", []) if isinstance(value, dict) else value
                add("{" if is_object else "[")
                for at, one in enumerate(listed):
                    if at:
                        add(",")
                    space()
                    if is_object:
                        text(one[0])
                        space()
                        add(":")
                        space()
                        one = one[1]
                    write(one)
                    space()
                add("}" if is_object else "]")

        space()
        write(body)
        space()
        return "".join(pieces)

    def _mutated(self, data: bytes) -> bytes:
        choose, changed = self._random, bytearray(data)
        for _ in range(choose.choice((1, 1, 1, 2, 5))):
            at, stop = sorted(choose.randrange(len(changed) + 1) for _ in range(2))
            stop = min(stop, at + 40)
            match choose.randrange(8):
                case 0 if at < len(changed):
                    changed[at] ^= 1 << choose.randrange(8)
                case 1:
                    changed[at:stop] = b""
                case 2:
                    changed[at:at] = changed[at:stop]
                case 3:
                    changed[at:at] = choose.choice((b'"', b",", b"{", b"]", b"\\", b"\xff", b"\x00", b"\xed\xa0\x80"))
                case 4:
                    changed[:0] = choose.choice((b"\xef\xbb\xbf", b"\n", b" ", b"\xff\xfe"))
                case 5:
                    changed += choose.choice((b"\n", b" ", b"{}", b"\x00", b"]}"))
                case 6:
                    del changed[at + (len(changed) - at) // 2 :]
                case _:
                    changed[at:stop] = bytes(reversed(changed[at:stop]))
        return bytes(changed)

    def _encoded(self, plain: bytes) -> tuple[list[bytes], bytes]:
        """Values of `content-encoding`, a header each, and the body in them."""
        choose = self._random
        names: list[bytes] = []
        body = plain
        for _ in range(choose.choice((0, 0, 1, 1, 1, 1, 1, 2))):
            name, encode = choose.choice(ENCODINGS)
            names.append(name)
            body = encode(body)
        if not names:
            return [b"identity"] if choose.random() < 0.05 else [], body
        if choose.random() < MISLABELLED:
            match choose.randrange(5):
                case 0:
                    body = self._mutated(body)
                case 1:
                    body += choose.choice((b"x", b"\x00" * 8, body, plain))
                case 2:
                    body = body[: len(body) - choose.randrange(1, 12)]
                case 3:
                    names[choose.randrange(len(names))] = choose.choice(
                        (*(name for name, _ in ENCODINGS), b"rot13", b"")
                    )
                case _:
                    names.insert(choose.randrange(len(names) + 1), choose.choice((b"identity", b"gzip", b"rot13")))
        return ([b", ".join(names)] if choose.random() < 0.5 else names), body


def plainly_written(body: Object) -> bytes:
    """The JSON of a request without any mischief."""

    def plain(value: Any) -> Any:
        if isinstance(value, Number):
            return json.loads(value.text)
        if isinstance(value, list) and value and isinstance(value[0], tuple):
            return {key: plain(held) for key, held in value}
        return [plain(one) for one in value] if isinstance(value, list) else value

    return json.dumps(plain(body)).encode()


def _raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(1, wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


ENCODINGS: tuple[tuple[bytes, Callable[[bytes], bytes]], ...] = (
    (b"gzip", lambda data: gzip.compress(data, 1)),
    (b"X-Gzip", lambda data: gzip.compress(data, 6)),
    (b"deflate", zlib.compress),
    (b"deflate", _raw_deflate),
    (b"br", lambda data: bytes(brotli.compress(data, quality=1))),
    (b"zstd", lambda data: zstd.compress(data, 1)),
    (b"zstd", lambda data: zstd.compress(data, options={zstd.CompressionParameter.checksum_flag: 1})),
)
