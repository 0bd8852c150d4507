"""An MCP server with many tools, as a program, and the words by which Claude Code is told of it."""

from __future__ import annotations

import sys
from collections.abc import Callable

import orjson

TOOLS = 60
DOES = (
    "It looks up one of the many things that this server knows about, and says what it is worth to whoever asks. " * 4
)
FLAGS = (
    "--mcp-config",
    orjson.dumps({"mcpServers": {"many": {"command": sys.executable, "args": [__file__]}}}).decode(),
)


def _tool(number: int) -> Callable[[str, int], str]:
    def tool(first: str, second: int = 0) -> str:
        return "done"

    tool.__name__, tool.__doc__ = f"tool_{number}", f"Tool number {number}. {DOES}"
    return tool


if __name__ == "__main__":
    from mcp.server import MCPServer

    server = MCPServer("many")
    for number in range(TOOLS):
        server.tool()(_tool(number))
    server.run("stdio")
