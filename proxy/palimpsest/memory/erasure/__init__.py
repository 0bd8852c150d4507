"""Erasure: what is forgotten on request, retired, or goes for its age."""
