"""Facts that messages state, found by patterns alone."""
