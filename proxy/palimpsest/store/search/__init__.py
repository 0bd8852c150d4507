"""What search reads: passages, vectors, and the scope that a request may look at."""
