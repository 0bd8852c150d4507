"""Knowledge: facts, items and their consolidation, derived from what is archived."""
