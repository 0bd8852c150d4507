"""Files that conversations are moved in: our own export format, and those of other programs."""
