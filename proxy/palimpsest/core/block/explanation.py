"""
Explanations: the decision on one request as JSON, stored with its turn for `palimpsest explain`.

Texts of memories are not repeated here: they are looked up by id, so that forgetting a memory forgets it everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from palimpsest.domain import Added, Block, BlockKind, Candidate, Diagnosis, Json, Note, Plan, Recalled

if TYPE_CHECKING:
    from palimpsest.core.facts.choice import FactChoice

UNCLEANED = "candidates"  # the largest part: ids, numbers and reasons of ours, nothing that anybody else wrote
CANDIDATES = 40  # a block holds some forty short messages
REMINDER = "somebody asked for it"
CUT_CANDIDATES = 8  # of those that are not in it: the nearest misses; each takes 300 bytes of every turn that recalls


def explanation(
    diagnosis: Diagnosis,
    note: Note | None,
    recalled: Recalled | None,
    block: Block | None,
    cut: Mapping[int, str],
    added: Added | None = None,
    fact_choice: FactChoice | None = None,
) -> Json:
    """
    What `explain` shows of one turn.

    Args:
        cut: memory id to the reason why it was not packed; a candidate that is not in it was.
        added: what all blocks of the request cost.
        fact_choice: of facts; None where they were not looked up.
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
        "kind": block.kind.value if block else diagnosis.kind.value if diagnosis.kind else None,
    }
    if added is not None:
        told["added"] = {"tokens": added.tokens, "share": round(added.share, 4)}
    if diagnosis.budget is not None and diagnosis.query is not None:
        told["budget"] = {"chars": diagnosis.budget.chars, "passage_chars": diagnosis.budget.passage_chars}
        told["query"] = {"text": diagnosis.query.text, "least_help": round(diagnosis.query.least_help, 4)}
        if recalled is not None and recalled.plan is not None:
            told["query"]["plan"] = _plan_json(recalled.plan)  # of the same words, and so erased with them
    if recalled is not None:
        told["gate"] = {"admitted": recalled.admitted, "reason": recalled.reason, "helps": round(recalled.helps, 4)}
        told["lexical_only"] = recalled.lexical_only
        if recalled.unindexed and not recalled.lexical_only:
            told["unindexed"] = {"passages": recalled.unindexed, "of": recalled.eligible}
        told["elapsed_ms"] = {"recall": round(recalled.elapsed_ms, 2)}
        told[UNCLEANED] = [
            {
                "memory": candidate.memory.id,
                "occurrence": candidate.memory.occurrence,
                "start": candidate.memory.start,
                "stop": candidate.memory.stop,
                "score": round(candidate.score, 4),
                "probability": round(candidate.probability, 4),
                "signals": {name: [rank, round(score, 4)] for name, (rank, score) in candidate.signals.items()},
                "packed": _is_packed(candidate, block, cut),
                "why": cut.get(candidate.memory.id, REMINDER if candidate.is_reminder else ""),
            }
            for candidate in _listed_candidates(recalled.candidates, block, cut)
        ]
    if fact_choice is not None:
        told["facts"] = {
            "told": [{"fact": id, "why": why} for id, why in zip(fact_choice.ids, fact_choice.reasons, strict=True)],
            "left_out": dict(fact_choice.left_out),
        }
    if block is not None:
        told["block"] = {"chars": len(block.text), "tokens": block.tokens, "occurrences": list(block.occurrences)}
    return told


def passage_of(candidate: Mapping[str, Any], text: str) -> str:
    """The passage that a candidate of an explanation is, of its message's text; all of that where it is no passage."""
    return text[candidate.get("start", 0) : candidate.get("stop") or None]


def _plan_json(plan: Plan) -> Json:
    """The plan of a look-up as JSON."""
    return {"questions": list(plan.questions), "periods": [list(one) for one in plan.periods], "teller": plan.teller}


def _listed_candidates(candidates: Sequence[Candidate], block: Block | None, cut: Mapping[int, str]) -> list[Candidate]:
    """The candidates that were packed, and the best of the others, in their order."""
    best = candidates[:CANDIDATES]
    misses = [candidate.memory.id for candidate in best if not _is_packed(candidate, block, cut)][CUT_CANDIDATES:]
    return [candidate for candidate in best if candidate.memory.id not in misses]


def _is_packed(candidate: Candidate, block: Block | None, cut: Mapping[int, str]) -> bool:
    return block is not None and block.kind is not BlockKind.FACTS and candidate.memory.id not in cut
