"""The command line: `palimpsest COMMAND`, and what its commands are made of."""
