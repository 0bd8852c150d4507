"""
What answers tell of the worth of memory, counted where they are archived: tokens of prompts and of the provider's
cache, and passages of blocks that are quoted.

Each is read on a thread of the archive, when nobody waits for it any more.
"""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from palimpsest.core.block.quotation import quoted
from palimpsest.domain import Heard, Turn, Usage
from palimpsest.domain.ports import ArchiveCounts
from palimpsest.wire.account import account_of

log = structlog.get_logger()


def count_usage(counts: ArchiveCounts, payloads: Sequence[bytes], streamed: bool) -> Usage:
    """Count the tokens of one answer and its prompt, as the provider does; never raises."""
    try:
        account = account_of(payloads, streamed)
        usage = Usage(
            account.input_tokens, account.output_tokens, account.cache_read_tokens, account.cache_write_tokens
        )
        counts.add("prompt_tokens", usage.input_tokens or 0)
        counts.add("cache_read_tokens", usage.cache_read_tokens or 0)
        counts.add("cache_write_tokens", usage.cache_write_tokens or 0)
    except Exception:  # a guard: what is only counted must not keep an answer from the archive
        _failed(counts)
        return Usage()
    return usage


def count_quotations(counts: ArchiveCounts, turn: Turn, heard: Heard) -> None:
    """Count the passages that a request was shown, and those that its answer quotes; never raises."""
    if turn.block is None or heard.entry is None or turn.is_bare:
        return
    try:
        question = "\n".join(new.message.text for new in turn.new)
        repeated, shown = quoted(turn.block.text, heard.entry.text, question)
        counts.add("passages_shown", shown)
        counts.add("passages_quoted", repeated)
    except Exception:  # a guard, as above
        _failed(counts)


def _failed(counts: ArchiveCounts) -> None:
    counts.fault("answer_counts")
    log.exception("an answer could not be counted")
