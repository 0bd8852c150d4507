"""
The extraction of facts from messages, by patterns alone.

A fact is proposed only where its words carry it without a reader: what users say of themselves in the first person,
what they decide, what they ask to be remembered or to hold from now on (`statements`), and a value under a name in what
they paste or a tool returns (`assignments`). Nothing is concluded. The extractor has a version: facts are a view of the
archive, and a better extractor makes them again.
"""

from __future__ import annotations

from palimpsest.core.facts.assignments import assigned
from palimpsest.core.facts.statements import stated
from palimpsest.core.redaction.redaction import redact
from palimpsest.domain import FactProposal

VERSION = 6  # of the patterns and of what is stored beside a fact; facts of another version are made again

TOOL_ROLES = frozenset({"tool", "function"})


def proposals(text: str, role: str) -> tuple[FactProposal, ...]:
    """
    The facts that a message states, in the order in which they stand there.

    Those of one statement share its place; apart from them no two overlap.

    Args:
        text: readable text of the message. What redaction would take from it is no value of a fact.
        role: of the message. Of what an assistant says nothing is taken: it may be wrong, and repeats what it was told.
    """
    if role == "user":
        found = [*stated(text), *assigned(text)]
    elif role in TOOL_ROLES:
        found = [*assigned(text)]
    else:
        return ()
    cleaned = redact(text) if found else text
    if cleaned != text:
        found = [one for one in found if one.value in cleaned]
    kept: list[FactProposal] = []
    for one in sorted(found, key=lambda one: (one.start, one.stop)):
        if not kept or one.start >= kept[-1].stop or (one.start, one.stop) == (kept[-1].start, kept[-1].stop):
            kept.append(one)
    return tuple(kept)
