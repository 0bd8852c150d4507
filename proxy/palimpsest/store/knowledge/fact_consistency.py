"""
The consistency of facts: each has a source that is there, is kept for whom it was said to, and stands where it should.

Marks of forgotten facts are hashes of messages that may be gone, so nothing can be told of them.
"""

from __future__ import annotations

from collections.abc import Iterator

from palimpsest.domain import FactCategory, HeadFlag
from palimpsest.store.engine import Ask, Transaction
from palimpsest.store.families.blocks import erase_blocks
from palimpsest.store.families.facts import NEWER, move_facts, remove_facts
from palimpsest.store.families.family import Erased
from palimpsest.store.knowledge.fact_extraction import EXTRACTION, start_over

CATEGORIES = ", ".join(f"'{category}'" for category in FactCategory)

WITHOUT_SOURCE = """
SELECT id FROM fact WHERE occurrence IS NULL AND (conversation IS NOT NULL OR tool = '')
"""
MISPLACED = """
SELECT fact.id FROM fact JOIN occurrence ON occurrence.id = fact.occurrence
JOIN conversation ON conversation.id = occurrence.conversation JOIN content ON content.id = occurrence.content
WHERE (fact.conversation, fact.tenant) IS DISTINCT FROM (conversation.id, conversation.tenant)
    OR start < 0 OR stop <= start OR stop > length(text)
"""
OF_ERASED = f"""
SELECT fact.id FROM fact JOIN occurrence ON occurrence.id = fact.occurrence WHERE flags & {HeadFlag.ERASED} <> 0
"""
UNREADABLE = f"SELECT id FROM fact WHERE category NOT IN ({CATEGORIES})"
TWICE = """
SELECT id FROM fact WHERE occurrence IS NOT NULL
    AND id NOT IN (SELECT min(id) FROM fact WHERE occurrence IS NOT NULL GROUP BY tenant, public, occurrence)
"""
GOES = {
    "facts have no source": WITHOUT_SOURCE,
    "facts lie outside of their messages, or belong to another": MISPLACED,
    "facts of erased messages are still there": OF_ERASED,
    "facts are of no known category": UNREADABLE,
    "facts are stored twice": TWICE,
}
"""Rows of facts that a repair removes; those that messages state are extracted again."""

OWNED = f"""
(SELECT user_id FROM conversation WHERE id = fact.conversation),
(SELECT scope FROM conversation WHERE id = fact.conversation),
(SELECT CASE WHEN flags & {HeadFlag.RETIRED} = 0 THEN 0 ELSE 1 END FROM occurrence WHERE id = fact.occurrence)
"""
OF_OTHERS = (
    f"SELECT id FROM fact WHERE occurrence IS NOT NULL AND (user_id, scope, retirement) IS DISTINCT FROM ({OWNED})"
)
WRONGLY_STANDING = f"SELECT id FROM fact WHERE (superseded <> 0) <> {NEWER}"
# A message that is not there at all may have come with a request that was refused.
TELLING_NOTHING = f"""
SELECT DISTINCT block.occurrence FROM block JOIN conversation ON conversation.id = block.conversation
INNER JOIN arrays(block.facts) AS told ON true
WHERE block.facts <> '[]' AND CASE WHEN CAST(item(told.value, 1) AS BIGINT) <> 0 THEN
    EXISTS (SELECT 1 FROM occurrence WHERE id = CAST(item(told.value, 1) AS BIGINT) AND flags & {HeadFlag.ERASED} <> 0)
ELSE NOT EXISTS (SELECT 1 FROM fact
    WHERE fact.tenant = conversation.tenant AND public = item(told.value, 0)) END
"""
AHEAD = f"""
SELECT 1 FROM task WHERE name = '{EXTRACTION}'
    AND next > coalesce((SELECT seq FROM last_id WHERE name = 'occurrence'), 0)
"""
WRONG = GOES | {
    "facts have another user or project than their messages, or are hidden": OF_OTHERS,
    "facts are wrongly marked as superseded or current": WRONGLY_STANDING,
    "blocks contain facts that were erased or forgotten": TELLING_NOTHING,
    "extraction of facts is beyond the end of the journal": AHEAD,
}


def wrong_facts(ask: Ask) -> Iterator[tuple[int, str]]:
    """Find inconsistencies of facts: a count and a description of each."""
    for words, sql in WRONG.items():
        yield len(ask(sql)), words


def repair_facts(transaction: Transaction) -> None:
    """Remove facts without a source, and have those of messages extracted again."""
    rows = {row[0] for sql in GOES.values() for row in transaction.read(sql)}
    remove_facts(transaction, sorted(rows))
    others = (row[0] for row in transaction.read(OF_OTHERS))
    move_facts(transaction, others, f"(user_id, scope, retirement) = ({OWNED})")
    transaction.write("UPDATE fact SET superseded = 1 - superseded WHERE id = ?", transaction.read(WRONGLY_STANDING))
    erase_blocks(transaction, [row[0] for row in transaction.read(TELLING_NOTHING)], Erased())
    if transaction.read("SELECT 1 FROM task WHERE name = ?", (EXTRACTION,)):
        start_over(transaction)
