"""
The erasure registry: every table, and what it holds of what people said.

Erasing removes the rows of `WORDS`, reads the columns named there to know what must not be left on the disk, and looks
for it afterwards. A table that is not declared here fails the tests: whoever adds one decides what becomes of it.
"""

from __future__ import annotations

from collections.abc import Mapping

WORDS: Mapping[str, tuple[str, ...]] = {
    "content": ("text", "rest"),
    "block": ("text",),
    "turn": ("explain", "model"),
    "memory": ("tags",),
    "memory_text": ("tokens",),  # a view on its shadow tables: the index itself is read as bytes
    "term": ("term",),
    "conversation": ("user_id", "scope"),
    "head": ("state",),  # names of tools and of the client; its listing holds fingerprints
    "tenant": ("name",),  # a keyed hash, or a name that the operator chose
    "item": ("text", "question", "topic"),
    "node": ("name",),
    "consolidation_step": ("why",),  # the slot whose value was superseded
    "proxy_key": ("name", "tenant", "users", "scopes"),  # what the operator wrote; it stays until the key is deleted
    "switch": ("tenant", "reason"),  # the same
    "fact": ("user_id", "scope", "who", "subject", "slot", "value"),
}
"""Tables with words of a conversation or names of its people, and the columns that hold them."""

DERIVED = frozenset({"vector", "unindexed", "forgotten", "item_vector", "edge", "edge_evidence"})
"""Tables with numbers that follow from words: their rows go with those, or name ids of rows that are gone."""

FINGERPRINTS = frozenset(
    {
        "occurrence",
        "listing",
        "link",
        "erased",
        "erased_scope",
        "retired",
        "retired_scope",
        "quarantine",
        "fact_forgotten",
        "item_source",
    }
)
"""Tables with keyed hashes of messages, and their places. What an erased message leaves stands here."""

PLAIN = frozenset(
    {
        "task",
        "erasure",
        "retirement",
        "change",
        "policy",
        "assist_usage",
        "cost",
        "probe",
        "item_progress",
        "consolidation",
    }
)
"""Tables with nothing of a conversation in them."""

FULL_TEXT = ("memory_text",)  # their shadow tables, NAME_data and so on, are theirs
