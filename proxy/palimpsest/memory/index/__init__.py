"""Search: the passages of a scope in memory, and their full text."""
