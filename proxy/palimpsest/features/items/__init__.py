"""Items: shorter forms of memory, their consolidation and the graph, as the papers that they name describe them."""
