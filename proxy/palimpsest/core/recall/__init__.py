"""Relevance: what to look for, which passages answer, and whether memory helps at all."""
