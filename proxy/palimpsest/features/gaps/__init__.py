"""Gaps: what memory loses, measured by questions that it asks itself."""
