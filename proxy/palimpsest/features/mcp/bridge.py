"""
The stdio bridge: an MCP server on standard input and output that hands every call to a running proxy.

For clients that start their servers as commands. It opens no database: what the proxy offers, it offers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx2
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp_types import CallToolRequestParams, CallToolResult, ListToolsResult, PaginatedRequestParams

from palimpsest import __version__
from palimpsest.domain.errors import PalimpsestError

CALL_SECONDS = 30.0  # of one call: the proxy answers in milliseconds, or is gone


async def bridge(url: str, headers: Mapping[str, str]) -> None:
    """Pass MCP between standard input and an endpoint, under headers that say who asks, until the input ends."""
    async with httpx2.AsyncClient(headers=dict(headers), timeout=CALL_SECONDS) as http:
        await _refuse(http, url)
        async with Client(streamable_http_client(url, http_client=http)) as client:
            await _serve(client)


async def _serve(client: Client) -> None:
    """Serve the tools of a client session over stdin and stdout."""

    async def list_tools(_context: Any, params: PaginatedRequestParams | None) -> ListToolsResult:
        return await client.list_tools(cursor=params.cursor if params else None)

    async def call_tool(_context: Any, params: CallToolRequestParams) -> CallToolResult:
        return await client.call_tool(params.name, params.arguments)

    server: Server[Any] = Server(
        "palimpsest",
        version=__version__,
        instructions=client.instructions,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )
    async with stdio_server() as (received, sent):
        await server.run(received, sent, server.create_initialization_options())


async def _refuse(http: httpx2.AsyncClient, url: str) -> None:
    """Say in words why the proxy does not answer: a client of MCP says only that it failed."""
    try:
        answer = await http.post(url, content=b"{}", headers={"content-type": "application/json"})
    except httpx2.HTTPError as failure:
        raise PalimpsestError(
            f"asking {url}: {failure or type(failure).__name__}; start palimpsest serve, or name --url"
        ) from failure
    said = answer.json() if "json" in answer.headers.get("content-type", "") else None
    body = said if isinstance(said, dict) else {}
    if "jsonrpc" not in body:
        error = body.get("error")
        why = error.get("message") if isinstance(error, dict) else error
        hint = "without mcp.enabled the provider answers there"
        raise PalimpsestError(f"asking {url}: {answer.status_code}: {why or 'it serves no tools there'}; {hint}")
