"""
What answers tell of the worth of memory, counted where they are archived: tokens from the provider's cache, and
passages of blocks that are quoted.
"""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from palimpsest.core.block.quotation import quoted
from palimpsest.domain import Heard, Turn
from palimpsest.ports import ArchiveCounts
from palimpsest.wire.account import account_of

log = structlog.get_logger()


def count_answer(counts: ArchiveCounts, turn: Turn, payloads: Sequence[bytes], streamed: bool, heard: Heard) -> None:
    """Count one answer; never raises. It is read on a thread of the archive, when nobody waits for it any more."""
    try:
        account = account_of(payloads, streamed)
        if account.input_tokens is not None:
            counts.add("prompt_tokens", account.input_tokens)
            counts.add("cache_read_tokens", account.cache_read_tokens or 0)
        if turn.block is not None and heard.entry is not None and not turn.is_bare:
            question = "\n".join(new.message.text for new in turn.new)
            repeated, shown = quoted(turn.block.text, heard.entry.text, question)
            counts.add("passages_shown", shown)
            counts.add("passages_quoted", repeated)
    except Exception:  # a guard: what is only counted must not keep an answer from the archive
        counts.fault("answer_counts")
        log.exception("an answer could not be counted")
