"""
The erasure registry: every table, and what it holds of what people said; what is derived says so in its family.

Erasing removes the rows of `WORDS`, reads the columns named there to know what must not be left on the disk, and looks
for it afterwards. A table that is not declared here fails the tests: whoever adds one decides what becomes of it.
"""

from __future__ import annotations

from collections.abc import Mapping

from palimpsest.store.families.registry import FAMILIES

WORDS: Mapping[str, tuple[str, ...]] = {
    "content": ("text", "rest"),
    "turn": ("explain", "model"),
    "conversation": ("user_id", "scope"),
    "head": ("state",),  # names of tools and of the client; its listing holds fingerprints
    "tenant": ("name",),  # a keyed hash, or a name that the operator chose
    "proxy_key": ("name", "tenant", "users", "scopes"),  # what the operator wrote; it stays until the key is deleted
    "switch": ("tenant", "reason"),  # the same
    "model_note": ("model",),  # names that clients gave, without whose; a month after their last use they are gone
    **{table: columns for family in FAMILIES for table, columns in family.words.items()},
}
"""Tables with words of a conversation or names of its people, and the columns that hold them."""

DERIVED = frozenset[str]().union(*(family.numbers for family in FAMILIES))
"""Tables with numbers that follow from words: their rows go with those, or name ids of rows that are gone."""

FINGERPRINTS = frozenset(
    {
        *("occurrence", "listing", "link", "erased", "erased_scope", "retired", "retired_scope", "quarantine"),
        *("fact_forgotten", "item_source"),
    }
)
"""Tables with keyed hashes of messages, and their places. What an erased message leaves stands here."""

PLAIN = frozenset(
    {
        *("task", "erasure", "secret_mark", "retirement", "change", "policy", "assist_usage", "cost", "probe"),
        *("ended_session", "item_progress", "consolidation"),
    }
)
"""Tables with nothing of a conversation in them."""

FULL_TEXT = ("memory_text",)  # their shadow tables, NAME_data and so on, are theirs
