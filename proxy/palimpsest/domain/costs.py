"""What a request cost: what memory added, what the provider counted, and what became of the prefix cache."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from palimpsest.domain.blocks import Added
from palimpsest.domain.frozen import frozen

AssistRole = Literal["controller", "selector", "writer", "consolidator"]
"""Plans what to look for; chooses among what was found; writes memory entries; tidies what is written."""


class Rebuild(StrEnum):
    """Why a provider read a part of a prompt anew that its prefix cache could have held."""

    NONE = "none"  # it did not
    FIRST = "first"  # nothing of the conversation was sent before, or the request stands beside one
    CLIENT = "after-change:client"  # the client compacted or edited, or changed model, instructions or tools
    OURS = "after-change:ours"  # memory added something in front of what was sent before, or took it away
    IDLE = "after-idle"  # the cache had expired
    UNEXPECTED = "unexpected"  # none of these


@frozen
class Usage:
    """Tokens of one request as its provider counted them; None where it does not say."""

    input_tokens: int | None = None  # all of the prompt, cached ones included
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None


@frozen
class Cost:
    """
    The cost of one request.

    `change` is who changed what the request before had sent, `CLIENT` or `OURS`, whether or not that cost anything;
    None: nobody did.
    """

    added: Added
    change: Rebuild | None = None
    usage: Usage = Usage()
    rebuild: Rebuild | None = None  # None: it cannot be told from what the provider says
    rebuilt_tokens: int | None = None  # that it read anew; None likewise
