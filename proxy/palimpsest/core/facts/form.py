"""A form of statement: a pattern, and what a fact of it is about."""

from __future__ import annotations

import re
from collections.abc import Mapping

from palimpsest.domain import PROJECT_SUBJECT, USER_SUBJECT, FactCategory, frozen

# The share of facts that were right on conversations, rounded down (tests/core/facts/labels.tsv). Nobody there asked
# for something to be remembered, so notes have less than the others.
CONFIDENCE: Mapping[FactCategory, float] = {
    FactCategory.IDENTITY: 0.97,
    FactCategory.PREFERENCE: 0.95,
    FactCategory.INSTRUCTION: 0.97,
    FactCategory.DECISION: 0.95,
    FactCategory.NOTE: 0.90,
    FactCategory.SETTING: 0.97,
}
OWN = frozenset({FactCategory.IDENTITY, FactCategory.PREFERENCE})  # of the user


@frozen
class Form:
    """
    One form of statement. The group `value` is the fact's value; further groups are values of slots of their names.

    `slot` and `subject` are named by the groups of these names where they are empty. `is_presupposed`: the words say it
    wherever they stand, in a question too ("how old is my sister Ada?").
    """

    pattern: re.Pattern[str]
    category: FactCategory
    subject: str
    slot: str
    is_single: bool
    is_presupposed: bool


def many(
    category: FactCategory, slot: str, pattern: str, subject: str | None = None, *, is_presupposed: bool = False
) -> Form:
    """A form whose slot holds any number of values; the subject is the user or the project, unless it is named."""
    if subject is None:
        subject = USER_SUBJECT if category in OWN else PROJECT_SUBJECT
    return Form(re.compile(pattern), category, subject, slot, False, is_presupposed)


def one(category: FactCategory, slot: str, pattern: str, *, is_presupposed: bool = False) -> Form:
    """A form whose slot holds one value at a time, which a newer one supersedes."""
    subject = USER_SUBJECT if category in OWN else PROJECT_SUBJECT
    return Form(re.compile(pattern), category, subject, slot, True, is_presupposed)
