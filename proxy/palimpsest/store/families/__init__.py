"""Families of tables: what is derived from messages, and goes with them."""
