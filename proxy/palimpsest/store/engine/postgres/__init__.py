"""The engine on PostgreSQL 15 or newer: threads with a connection each, and locks that let one writer at a tenant."""
