"""Memory on another machine: the link to it, and the turns that wait for it."""
