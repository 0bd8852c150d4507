"""The admin API: what is remembered, and what was decided, for operators and programs."""
