"""Recall: the index that is kept up to date, the search, and what may refine it."""
