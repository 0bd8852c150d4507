"""Settings: the policy tree, how it is read from file, environment and flags, and how it is described."""
