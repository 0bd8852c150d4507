"""Content encodings: the decoded copy of a compressed body. What is forwarded stays as it came."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

import brotli  # type: ignore[import-untyped]

from palimpsest.domain.errors import WireError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd


class TooLarge(WireError):
    """A body holds more than anybody wants to read."""


Decode = Callable[[bytes], bytes]
"""The next piece decoded. Raises `WireError` when it cannot be."""

_GZIP_HEADER, _ZLIB_HEADER, _NO_HEADER = 16 + zlib.MAX_WBITS, zlib.MAX_WBITS, -zlib.MAX_WBITS


def decoder(content_encoding: str, limit_bytes: int) -> Decode | None:
    """
    A function that decodes one body; None: the encoding is not known.

    Args:
        content_encoding: value of the header, "" where there is none; several are undone from the last to the first.
        limit_bytes: decoded, of any one piece: a bomb is no answer.

    Returns:
        `bytes` where nothing is to be done, None for encodings that nobody knows.
    """
    names = _names(content_encoding)
    if not all(name in _UNPACK for name in names):
        return None
    if not names:
        return bytes
    return partial(_undo, _unpackers(names, limit_bytes))


def decoded(body: bytes, content_encoding: str, limit_bytes: int) -> bytes:
    """
    Decode a whole body.

    Raises:
        TooLarge: it is larger than the limit.
        WireError: nobody knows its encoding, it is not in it, it breaks off, or something stands behind its end.
            Readers differ on the last two: some take what they have.
    """
    names = _names(content_encoding)
    if not all(name in _UNPACK for name in names):
        raise WireError(f"decoding the request body: content-encoding {content_encoding!r} is not known")
    unpackers = _unpackers(names, limit_bytes)
    data = _undo(unpackers, body)
    if not all(unpacker.is_whole for unpacker in unpackers):
        raise WireError("decoding the request body: it is truncated, or has bytes after its end")
    return data


def _names(content_encoding: str) -> list[str]:
    names = (name.strip().lower() for name in content_encoding.split(","))
    return [name for name in names if name not in ("", "identity")]


def _unpackers(names: Sequence[str], limit_bytes: int) -> list[_Unpacker]:
    """What undoes these encodings, in the order of its work."""
    return [_UNPACK[name](limit_bytes) for name in reversed(names)]


def _undo(unpackers: Sequence[_Unpacker], data: bytes) -> bytes:
    """Apply each unpacker in turn; raises WireError on damaged data."""
    for unpack in unpackers:
        try:
            data = unpack(data)
        except (zlib.error, brotli.error, zstd.ZstdError, EOFError) as cause:
            raise WireError(f"decoding a copy: {cause}") from cause
    return data


class _Unpacker(Protocol):
    """Undoes one encoding of one body, piece by piece."""

    def __call__(self, data: bytes) -> bytes:
        """The next piece decoded. Raises what its library raises, and `TooLarge`."""

    @property
    def is_whole(self) -> bool:
        """Whether the body ended where its encoding says, and nothing came behind that."""


class _Gzip:
    def __init__(self, limit_bytes: int, header: int = _GZIP_HEADER) -> None:
        self._limit_bytes = limit_bytes
        self._stream = zlib.decompressobj(header)

    def __call__(self, data: bytes) -> bytes:
        decoded = self._stream.decompress(data, self._limit_bytes)
        if self._stream.unconsumed_tail:
            raise _too_large(self._limit_bytes)
        return decoded

    @property
    def is_whole(self) -> bool:
        return self._stream.eof and not self._stream.unused_data


class _Deflate(_Gzip):
    """With the header of zlib, or with none, which is what some take it for."""

    def __init__(self, limit_bytes: int) -> None:
        super().__init__(limit_bytes, _ZLIB_HEADER)
        self._is_first = True

    def __call__(self, data: bytes) -> bytes:
        is_first, self._is_first = self._is_first, False
        try:
            return super().__call__(data)
        except zlib.error:
            if not is_first:
                raise
            self._stream = zlib.decompressobj(_NO_HEADER)
            return super().__call__(data)


class _Brotli:
    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._stream = brotli.Decompressor()

    def __call__(self, data: bytes) -> bytes:
        decoded: bytes = self._stream.process(data, output_buffer_limit=self._limit_bytes)
        if len(decoded) >= self._limit_bytes:  # it stops there, and says nothing of what it still holds
            raise _too_large(self._limit_bytes)
        return decoded

    @property
    def is_whole(self) -> bool:
        return bool(self._stream.is_finished())  # it refuses by itself what comes behind


class _Zstandard:
    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._stream = zstd.ZstdDecompressor()

    def __call__(self, data: bytes) -> bytes:
        decoded = self._stream.decompress(data, max_length=self._limit_bytes)
        if not (self._stream.needs_input or self._stream.eof):
            raise _too_large(self._limit_bytes)
        return decoded

    @property
    def is_whole(self) -> bool:
        return self._stream.eof and not self._stream.unused_data


def _too_large(limit_bytes: int) -> TooLarge:
    return TooLarge(f"decoding a copy: one piece holds more than {limit_bytes} bytes")


_UNPACK: dict[str, Callable[[int], _Unpacker]] = {
    "gzip": _Gzip,
    "x-gzip": _Gzip,
    "deflate": _Deflate,
    "br": _Brotli,
    "zstd": _Zstandard,
}
