"""The block that is added to a request: what fits into it, and where it stands."""
