"""Recording turns: from a request and its answer, as they pass, to the transaction that writes them."""
