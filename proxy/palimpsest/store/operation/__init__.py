"""Rows of the operation: keys, switches, policies, tasks, usage."""
