"""The store: what is stored, and how it is written, read and erased."""
