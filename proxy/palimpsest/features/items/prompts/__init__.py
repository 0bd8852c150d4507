"""Prompts of those who write, relate and judge items."""
