"""
Who calls a tool, and how far memory may look for them.
"""

from __future__ import annotations

from palimpsest.domain import Reach, Speaker
from palimpsest.domain.errors import ToolError
from palimpsest.settings.policy import Policy

SPEAKER = "palimpsest.speaker"
"""Key of the ASGI scope under which the endpoint of the tools says who asks."""

NO_REACH = (
    "memory may look no further than one conversation here (memory.reach): name the conversation, or send "
    "x-palimpsest-user with reach user, or set reach to tenant"
)


def reach_of(speaker: Speaker, policy: Policy) -> Reach:
    """
    How far a speaker's tools look.

    Raises:
        ToolError: no further than one conversation.
    """
    reach = speaker.reach(policy.memory.reach)
    if reach is Reach.CONVERSATION:
        raise ToolError(NO_REACH)
    return reach
