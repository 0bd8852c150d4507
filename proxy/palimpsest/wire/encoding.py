"""
Content encodings: the decoded copy of a compressed body. What is forwarded stays as it came.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable
from functools import partial

import brotli  # type: ignore[import-untyped]

from palimpsest.errors import WireError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd


class TooLarge(WireError):
    """A body holds more than anybody wants to read."""


Decode = Callable[[bytes], bytes]
"""The next piece decoded. Raises `WireError` when it cannot be."""

_ANY_HEADER = 32 + zlib.MAX_WBITS  # gzip or zlib, by what stands there
_NO_HEADER = -zlib.MAX_WBITS  # what some servers mean by deflate


def decoder(content_encoding: str, limit_bytes: int) -> Decode | None:
    """
    How to decode one body.

    Args:
        content_encoding: value of the header, "" where there is none; several are undone from the last to the first.
        limit_bytes: decoded, of any one piece: a bomb is no answer.

    Returns:
        `bytes` where nothing is to be done, None for encodings that nobody knows.
    """
    names = [name.strip().lower() for name in content_encoding.split(",")]
    names = [name for name in names if name not in ("", "identity")]
    if not all(name in _UNPACK for name in names):
        return None
    if not names:
        return bytes
    return partial(_undo, [_UNPACK[name](limit_bytes) for name in reversed(names)])


def decoded(body: bytes, content_encoding: str, limit_bytes: int) -> bytes:
    """
    A whole body, decoded.

    Raises:
        TooLarge: it is larger than the limit.
        WireError: nobody knows its encoding, or it is not in it.
    """
    decode = decoder(content_encoding, limit_bytes)
    if decode is None:
        raise WireError(f"decoding the request body: content-encoding {content_encoding!r} is not known")
    return decode(body)


def _undo(decoders: list[Decode], data: bytes) -> bytes:
    for decode in decoders:
        try:
            data = decode(data)
        except (zlib.error, brotli.error, zstd.ZstdError, EOFError) as cause:
            raise WireError(f"decoding a copy: {cause}") from cause
    return data


class _Inflate:
    """gzip and deflate."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._stream = zlib.decompressobj(_ANY_HEADER)
        self._is_first = True

    def __call__(self, data: bytes) -> bytes:
        decoded = self._inflate(data)
        if self._stream.unconsumed_tail:
            raise _too_large(self._limit_bytes)
        return decoded

    def _inflate(self, data: bytes) -> bytes:
        is_first, self._is_first = self._is_first, False
        try:
            return self._stream.decompress(data, self._limit_bytes)
        except zlib.error:
            if not is_first:
                raise
            self._stream = zlib.decompressobj(_NO_HEADER)
            return self._stream.decompress(data, self._limit_bytes)


class _Brotli:
    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._stream = brotli.Decompressor()

    def __call__(self, data: bytes) -> bytes:
        decoded: bytes = self._stream.process(data, output_buffer_limit=self._limit_bytes)
        if len(decoded) >= self._limit_bytes:  # it stops there, and says nothing of what it still holds
            raise _too_large(self._limit_bytes)
        return decoded


class _Zstandard:
    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._stream = zstd.ZstdDecompressor()

    def __call__(self, data: bytes) -> bytes:
        decoded = self._stream.decompress(data, max_length=self._limit_bytes)
        if not (self._stream.needs_input or self._stream.eof):
            raise _too_large(self._limit_bytes)
        return decoded


def _too_large(limit_bytes: int) -> TooLarge:
    return TooLarge(f"decoding a copy: one piece holds more than {limit_bytes} bytes")


_UNPACK: dict[str, Callable[[int], Decode]] = {
    "gzip": _Inflate,
    "x-gzip": _Inflate,
    "deflate": _Inflate,
    "br": _Brotli,
    "zstd": _Zstandard,
}
