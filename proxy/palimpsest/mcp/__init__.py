"""Memory as tools of the Model Context Protocol, for agents that look things up on their own."""

PATH = "/mcp"
NOT_INSTALLED = "MCP is not installed: pip install 'palimpsest-proxy[mcp]'"
