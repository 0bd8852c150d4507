"""Tools for agents: what is common to those of all features, by the SDK of the Model Context Protocol."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

from mcp.server.mcpserver import Context
from mcp_types import CallToolResult, TextContent, ToolAnnotations

from palimpsest.domain import Reach, Speaker
from palimpsest.domain.errors import MemoryFault, PolicyError, ToolError
from palimpsest.settings.policy import Policy

SPEAKER = "palimpsest.speaker"
"""Key of the ASGI scope under which the endpoint of the tools says who asks."""

NO_REACH = (
    "memory may look no further than one conversation here (memory.reach): name the conversation, or send "
    "x-palimpsest-user with reach user, or set reach to tenant"
)


def reach_of(speaker: Speaker, policy: Policy) -> Reach:
    """The farthest reach of a speaker's tools. Raises `ToolError`: no further than one conversation."""
    reach = speaker.reach(policy.memory.reach)
    if reach is Reach.CONVERSATION:
        raise ToolError(NO_REACH)
    return reach


READS = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
ERASES = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False)
NOTES = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
UNAVAILABLE = "memory cannot be looked up now; go on without it, or try again"

Asked = Callable[[Speaker], Awaitable[CallToolResult]]

Toolset = Mapping[str, tuple[Callable[..., Any], str, ToolAnnotations]]
"""Functions by the name of the tool, each with a title; their docstrings are what agents read."""


async def run_tool(context: Context, asked: Asked) -> CallToolResult:
    """Run a tool for the caller; a fault becomes a result that tells it."""
    request = context.request_context.request
    speaker = cast(Speaker, request.scope[SPEAKER]) if request is not None else Speaker("")
    try:
        return await asked(speaker)
    except (ToolError, PolicyError) as wrong:
        return failed(str(wrong))
    except MemoryFault:
        return failed(UNAVAILABLE)


def text_result(text: str) -> CallToolResult:
    """A tool result with a text alone: a client that shows its model structured content, too, would say it twice."""
    return CallToolResult(content=[TextContent(type="text", text=text)])


def failed(why: str) -> CallToolResult:
    """A tool result that says why there is no answer."""
    return CallToolResult(content=[TextContent(type="text", text=why)], is_error=True)
