"""
Items of a list that a request names by their numbers alone: "address 3 and 5", "fix 51-54", "go with option 2".

Who lists what may be done numbers it, and the answer says the numbers. Where a compaction took the list away, they say
nothing any more, and no word or meaning leads from them to the items.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from palimpsest.core.work.calls import shortened

REQUEST_CHARS = 300  # a longer request says itself what its numbers are of
LEAST_LISTED = 3  # items that make a list
MOST_NAMED = 12  # numbers of one request: more are data
ITEM_CHARS = 240

_NAMED = re.compile(  # a number, or two and all between, with nothing behind it that it could count or measure
    r"(?<![\w.,:$/-])#?(\d{1,3})(?: ?[-\u2013] ?(\d{1,3}))?(?![.,:]\d)(?=\s*(?:$|[.,;:!?)\n]|\w{1,3} #?\d))"
)
_ITEM = re.compile(r"^[ \t>*#-]*\(?#?(\d{1,3})[.):] *\S.*$", re.MULTILINE)


def named_numbers(request: str) -> frozenset[int]:
    """The numbers that a request names, those between the two of a range among them; none in a long request."""
    named: set[int] = set()
    for first, last in _NAMED.findall(request) if len(request) <= REQUEST_CHARS else ():
        named.update(range(int(first), int(last or first) + 1))
    return frozenset(named) if len(named) <= MOST_NAMED else frozenset()


def items_of(answer: str, numbers: frozenset[int]) -> Sequence[str]:
    """The items of a list in an answer that have these numbers, each in one line; none where not all of them are."""
    items = [(int(item[1]), shortened(item[0].strip(), ITEM_CHARS)) for item in _ITEM.finditer(answer)]
    listed = {number for number, _ in items}
    is_it = numbers and numbers <= listed and len(listed) >= LEAST_LISTED
    return [text for number, text in items if number in numbers] if is_it else []
