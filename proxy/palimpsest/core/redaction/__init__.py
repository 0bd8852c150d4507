"""Credentials in texts, found and replaced before anything is stored."""
