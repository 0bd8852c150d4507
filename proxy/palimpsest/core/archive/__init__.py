"""The form in which turns are stored and found again, and the pure parts of erasing them."""
