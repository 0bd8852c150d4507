"""Erasure as statements: what is meant, what is taken, and what must not be left."""
