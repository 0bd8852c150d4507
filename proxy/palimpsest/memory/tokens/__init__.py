"""Tokens: the size of a prompt, and the input windows of models."""
