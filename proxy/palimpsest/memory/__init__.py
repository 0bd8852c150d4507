"""The services of memory: archiving, recall and forgetting, and the supervision of their background work."""
