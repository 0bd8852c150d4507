"""
The elements of a large JSON list, one at a time: account exports are one list of some hundred megabytes.

Only brackets and strings are looked at, to find where an element ends; what stands between is for its reader to judge.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

CHUNK_BYTES = 1 << 20
_TOKENS = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[\[\]{}]|"', re.S)  # the last alternative: a string that is cut off


def elements(stream: BinaryIO) -> Iterator[bytes]:
    """
    The objects in the list that a stream holds, or those that stand in it one behind the other.

    What is cut off at the end comes last, as it is.
    """
    data, scanned, depth, start, base = b"", 0, 0, -1, -1
    while True:
        chunk = stream.read(CHUNK_BYTES)
        if base < 0:
            data += chunk
            begun = data.lstrip(b"\xef\xbb\xbf \t\r\n")
            if not begun and chunk:
                continue
            base = int(begun.startswith(b"["))  # depth at which an element begins
        else:
            data += chunk
        for token in _TOKENS.finditer(data, scanned):
            sign = token[0]
            if sign == b'"':  # the rest of the string is still to come
                scanned = token.start()
                break
            scanned = token.end()
            if sign in b"[{":
                if depth == base and sign == b"{":
                    start = token.start()
                depth += 1
            elif sign in b"]}":
                depth = max(depth - 1, 0)
                if depth == base and start >= 0:
                    yield data[start : token.end()]
                    start = -1
        else:
            scanned = max(scanned, len(data) if start < 0 and depth <= base else scanned)
        keep = start if start >= 0 else scanned
        data, scanned, start = data[keep:], scanned - keep, 0 if start >= 0 else -1
        if not chunk:
            if start == 0:
                yield data
            return
