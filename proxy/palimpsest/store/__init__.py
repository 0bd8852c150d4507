"""SQLite: what is stored, how it is written and read, and how it is erased."""
