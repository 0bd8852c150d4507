"""Portability: export, import, backups, and the check of a database."""
