"""
How is a compressed answer overheard? A copy is decoded; what is forwarded stays as it came.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable

from proxy.errors import WireError

Decode = Callable[[bytes], bytes]
"""The next piece decoded. Raises `WireError` when it cannot be."""

_ANY_HEADER = 32 + zlib.MAX_WBITS  # gzip or zlib, by what stands there
_NO_HEADER = -zlib.MAX_WBITS  # what some servers mean by deflate


def decoder(content_encoding: str, limit_bytes: int) -> Decode | None:
    """
    How to decode one body.

    Args:
        content_encoding: value of the header, "" where there is none.
        limit_bytes: decoded, of any one piece: a bomb is no answer.

    Returns:
        None for encodings that need more than the standard library (br, zstd): such an answer is not heard.
    """
    match content_encoding.strip().lower():
        case "" | "identity":
            return bytes
        case "gzip" | "x-gzip" | "deflate":
            return _Inflate(limit_bytes)
        case _:
            return None


class _Inflate:
    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._stream = zlib.decompressobj(_ANY_HEADER)
        self._is_first = True

    def __call__(self, data: bytes) -> bytes:
        try:
            decoded = self._inflate(data)
        except zlib.error as cause:
            raise WireError(f"decoding a copy of the answer: {cause}") from cause
        if self._stream.unconsumed_tail:
            raise WireError(f"decoding a copy of the answer: one piece holds more than {self._limit_bytes} bytes")
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
