"""A copy of a compressed answer is decoded as it comes; what cannot be decoded is said."""

from __future__ import annotations

import gzip
import sys
import zlib
from collections.abc import Callable

import brotli  # type: ignore[import-untyped]
import pytest
from palimpsest.domain.errors import WireError
from palimpsest.wire.encoding import decoded, decoder

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

TEXT = b"words and more words " * 50
RAW = zlib.compressobj(wbits=-15)
RAW_DEFLATE = RAW.compress(TEXT) + RAW.flush()
GZIP = gzip.compress(TEXT, mtime=0)  # without the time of day, which processes that share the tests out disagree on


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("", TEXT),
        ("identity", TEXT),
        ("gzip", GZIP),
        (" X-GZIP ", GZIP),
        ("deflate", zlib.compress(TEXT)),
        ("deflate", RAW_DEFLATE),
        ("br", brotli.compress(TEXT)),
        ("zstd", zstd.compress(TEXT)),
        ("gzip, br", brotli.compress(GZIP)),
    ],
)
def test_an_encoding_is_decoded_piece_by_piece(encoding: str, body: bytes) -> None:
    decode = decoder(encoding, 1 << 20)
    assert decode is not None
    pieces = [body[:7], body[7:20], body[20:]]
    assert b"".join(map(decode, pieces)) == TEXT


def test_a_flushed_piece_is_heard_at_once() -> None:
    stream, decode = zlib.compressobj(wbits=31), decoder("gzip", 100)
    assert decode is not None
    for text in (b"data: a\n\n", b"data: b\n\n"):
        assert decode(stream.compress(text) + stream.flush(zlib.Z_SYNC_FLUSH)) == text


@pytest.mark.parametrize("encoding", ["nonsense", "gzip, nonsense"])
def test_other_encodings_are_not_heard(encoding: str) -> None:
    assert decoder(encoding, 100) is None


@pytest.mark.parametrize("encoding", ["gzip", "br", "zstd"])
def test_garbage_is_said_to_be_garbage(encoding: str) -> None:
    decode = decoder(encoding, 100)
    assert decode is not None
    with pytest.raises(WireError, match="decoding a copy"):
        decode(b"\xff" * 20)


def test_garbage_behind_a_good_start_is_said_to_be_garbage() -> None:
    decode, body = decoder("gzip", 1 << 20), gzip.compress(TEXT)
    assert decode is not None
    decode(body[:-8])
    with pytest.raises(WireError, match="decoding a copy"):
        decode(b"\0" * 8)  # where the checksum should stand


@pytest.mark.parametrize(
    ("encoding", "pack"), [("gzip", gzip.compress), ("br", brotli.compress), ("zstd", zstd.compress)]
)
def test_a_bomb_is_not_unpacked(encoding: str, pack: Callable[[bytes], bytes]) -> None:
    decode = decoder(encoding, 1000)
    assert decode is not None
    with pytest.raises(WireError, match="more than 1000 bytes"):
        decode(pack(bytes(1_000_000)))


@pytest.mark.parametrize("flush", ["br", "zstd"])
def test_a_flushed_piece_of_a_newer_encoding_is_heard_at_once(flush: str) -> None:
    decode = decoder(flush, 100)
    assert decode is not None
    packed_by_brotli, packed_by_zstd = brotli.Compressor(), zstd.ZstdCompressor()
    for text in (b"data: a\n\n", b"data: b\n\n"):
        if flush == "br":
            piece = packed_by_brotli.process(text) + packed_by_brotli.flush()
        else:
            piece = packed_by_zstd.compress(text, zstd.ZstdCompressor.FLUSH_BLOCK)
        assert decode(piece) == text


def test_a_whole_body_is_decoded_or_refused() -> None:
    assert decoded(zstd.compress(TEXT), "zstd", 1 << 20) == TEXT
    with pytest.raises(WireError, match="'nonsense' is not known"):
        decoded(TEXT, "nonsense", 1 << 20)


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("gzip", GZIP),
        ("deflate", zlib.compress(TEXT)),
        ("deflate", RAW_DEFLATE),
        ("br", brotli.compress(TEXT)),
        ("zstd", zstd.compress(TEXT)),
        ("zstd", zstd.compress(TEXT, options={zstd.CompressionParameter.checksum_flag: 1})),
        ("gzip, zstd", zstd.compress(GZIP)),
    ],
)
def test_a_body_that_breaks_off_or_goes_on_behind_its_end_is_refused_whatever_it_holds(
    encoding: str, body: bytes
) -> None:
    assert decoded(body, encoding, 1 << 20) == TEXT
    for changed in (body[:-1], body[:-4], body + b"x", body * 2):
        with pytest.raises(WireError):
            decoded(changed, encoding, 1 << 20)
