"""
The engine below the store: what one database does in its own way, behind names that all of them have.

Every statement of `store/` is written once, in standard SQL and the few functions that `dialect.py` lists. SQLite runs
them here; nothing outside this folder names it.
"""
