"""Consolidation of items: repeats, superseded values, eviction, and relations. Pure."""
