"""Memory as tools of the Model Context Protocol, for agents that look things up on their own."""

PATH = "/mcp"
