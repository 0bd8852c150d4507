"""
The roles in which a language model may help memory.
"""

from __future__ import annotations

from typing import Literal, get_args

AssistRole = Literal["controller", "selector", "writer", "consolidator"]
"""Plans what to look for; chooses among what was found; writes memory entries; tidies what is written."""

ASSIST_ROLES: tuple[AssistRole, ...] = get_args(AssistRole)
