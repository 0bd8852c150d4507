"""Turns as rows: requests, answers, messages, where conversations stand, and what is read back of them."""
