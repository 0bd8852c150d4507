"""Facts: found in messages or added by programs; listed, pinned and forgotten."""
