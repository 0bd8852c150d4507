"""Features: what a policy may switch on, each a folder with its service, HTTP operations, commands and tools."""
