"""The wires that clients speak: bodies and streams parsed, extended byte by byte, and composed."""
