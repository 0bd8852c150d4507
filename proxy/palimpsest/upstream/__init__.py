"""Providers: how a request reaches one, and how its answer comes back."""
