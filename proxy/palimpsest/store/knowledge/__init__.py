"""Facts, items and the graph as rows."""
