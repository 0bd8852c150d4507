"""
Why was this said, or not said? The decision of one request as JSON, stored with its turn for `palimpsest explain`.

Texts of memories are not repeated here: they are looked up by id, so that forgetting a memory forgets it everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping

from proxy.domain import Added, Block, Diagnosis, Json, Note, Recalled

CANDIDATES = 40  # a block holds some forty short messages; the rest was cut and says little


def explanation(
    diagnosis: Diagnosis,
    note: Note | None,
    recalled: Recalled | None,
    block: Block | None,
    cut: Mapping[int, str],
    added: Added | None = None,
) -> Json:
    """
    What `explain` shows of one turn.

    Args:
        cut: memory id to the reason why it was not packed; a candidate that is not in it was.
        added: what all blocks of the request cost.
    """
    lineage, now = diagnosis.lineage, diagnosis.pressure
    told: Json = {
        "event": lineage.event.value,
        "role": lineage.role.value,
        "evidence": list(lineage.evidence),
        "pressure": {
            "prompt_tokens": now.prompt_tokens,
            "window_tokens": now.window_tokens,
            "ratio": round(now.ratio, 4),
            "tier": now.tier.value,
        },
        "note": note.value if note else None,
        "kind": diagnosis.kind.value if diagnosis.kind else None,
    }
    if added is not None:
        told["added"] = {"tokens": added.tokens, "share": round(added.share, 4)}
    if diagnosis.budget is not None and diagnosis.query is not None:
        told["budget"] = {"chars": diagnosis.budget.chars, "passage_chars": diagnosis.budget.passage_chars}
        told["query"] = {"text": diagnosis.query.text}
    if recalled is not None:
        told["gate"] = {"admitted": recalled.admitted, "reason": recalled.reason, "helps": round(recalled.helps, 4)}
        told["lexical_only"] = recalled.lexical_only
        told["elapsed_ms"] = {"recall": round(recalled.elapsed_ms, 2)}
        told["candidates"] = [
            {
                "memory": candidate.memory.id,
                "occurrence": candidate.memory.occurrence,
                "position": candidate.memory.position,
                "score": round(candidate.score, 4),
                "probability": round(candidate.probability, 4),
                "signals": {name: [rank, round(score, 4)] for name, (rank, score) in candidate.signals.items()},
                "packed": block is not None and candidate.memory.id not in cut,
                "why": cut.get(candidate.memory.id, ""),
            }
            for candidate in recalled.candidates[:CANDIDATES]
        ]
    if block is not None:
        told["block"] = {"chars": len(block.text), "tokens": block.tokens, "occurrences": list(block.occurrences)}
    return told
