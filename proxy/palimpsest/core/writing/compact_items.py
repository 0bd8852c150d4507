"""
LightMem-SLM's writer without a model: after each turn a few short items of what the user told, to be used again.

"Lightweight LLM Agent Memory with Small Language Models", section 3.4 and appendix 10.3: a small model takes what is
reusable out of the current interaction, never a transcript, and says it in few words. Here it is what sounds like a
statement about the user's affairs (`utterance.informativeness`), names something, or is a lasting wish, without what
only opens or fills a sentence. Merging, conflicts and the bound of capacity belong to whoever stores items.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from palimpsest.core.archive.chunking import query_terms
from palimpsest.core.recall.utterance import QUESTION_MARKS, informativeness, read_utterance
from palimpsest.core.recall.wishes import is_lasting_wish
from palimpsest.core.writing.clauses import Clause, clauses
from palimpsest.core.writing.cues import Kind, cues
from palimpsest.core.writing.entries import Count, cost, share
from palimpsest.core.writing.information import TermStatistics
from palimpsest.core.writing.lightmem3 import turns
from palimpsest.domain import Item, SourceMessage

ITEMS_A_TURN = 2  # "one or more short semantic memory summaries"
LEAST_TELLING = -1.0  # log-odds; what names nothing must tell so surely
LEAST_TERMS = 3  # of meaning: "I agree" is nothing to use again
ASSISTANT_SHARE = 0.3  # what the assistant says counts less: it is told to the user, not by him

_FILLER = re.compile(
    r"(?:^|(?<=[,.;:!?] ))(?:oh|well|yeah|yes|yep|so|and|but|also|actually|honestly|anyway|wow|hey|thanks|i mean"
    r"|you know|by the way)\b[,!.]? *|\b(?:really|just|actually|basically|literally|kind of|sort of|very)\b ",
    re.IGNORECASE,
)


def write(
    segment: Sequence[SourceMessage], budget_tokens: int, count: Count, statistics: TermStatistics
) -> tuple[Item, ...]:
    """At most two items a turn, the surest of all turns first as long as the budget lasts; see `entries.Write`."""
    found: list[tuple[float, Clause, Item]] = []
    spoken = clauses(segment)
    for turn in turns(segment):
        rated = [(_worth(clause, segment, statistics), clause) for clause in spoken if clause.message in turn]
        best = sorted((pair for pair in rated if pair[0] > 0), key=lambda pair: (-pair[0], pair[1].sentence))
        found += [(worth, clause, _item(clause, segment)) for worth, clause in best[:ITEMS_A_TURN]]
    room = budget_tokens
    kept = []
    for _, clause, item in sorted(found, key=lambda row: -row[0]):
        spent = cost(item, count)
        if spent <= room:
            room -= spent
            kept.append((clause.message, clause.start, item))
    return tuple(item for *_, item in sorted(kept, key=lambda row: row[:2]))


def compacted(text: str) -> str:
    """A clause without what only opens or fills it."""
    return _FILLER.sub("", text).strip()


def _worth(clause: Clause, segment: Sequence[SourceMessage], statistics: TermStatistics) -> float:
    """Bits that are worth keeping; 0: none."""
    meaning = query_terms(clause.text)
    if len(meaning) < LEAST_TERMS or clause.text.endswith(QUESTION_MARKS) or read_utterance(clause.text).is_small_talk:
        return 0.0
    named = {cue.kind for cue in cues(clause.text)}
    is_own = clause.role == "user"
    if not (named - {Kind.WHAT}) and informativeness(clause.text) < LEAST_TELLING and not is_lasting_wish(clause.text):
        return 0.0
    return statistics.information(meaning) * (1.0 if is_own else ASSISTANT_SHARE) * share(segment[clause.message])


def _item(clause: Clause, segment: Sequence[SourceMessage]) -> Item:
    text = compacted(clause.text)
    return Item(f"{clause.speaker}: {text}" if clause.speaker else text, (clause.span(segment),))
