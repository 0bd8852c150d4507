"""Reading a request and deciding on it."""
