"""The engine on SQLite: one file with its log, connections with threads of their own, and the care that they need."""
