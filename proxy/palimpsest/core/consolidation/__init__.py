"""Consolidation of items: repeats, values that were replaced, what gives way for room, and relations. Pure."""
