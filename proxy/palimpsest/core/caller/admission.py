"""The reach of memory for one request: what the policy allows, or less by the caller or a list of names."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase

from palimpsest.domain import Chat, Mode, Speaker
from palimpsest.settings.policy import MemoryPolicy

HEADER = "x-palimpsest-memory"
_WIDEST_FIRST = (Mode.ON, Mode.READ_ONLY, Mode.OFF)


def mode_of(headers: Mapping[str, str], policy: MemoryPolicy, *, is_read_only: bool = False) -> Mode:
    """The mode of a request: a header may restrict what policy and key allow; an unknown value switches memory off."""
    widest = max(policy.mode, Mode.READ_ONLY, key=_WIDEST_FIRST.index) if is_read_only else policy.mode
    user_agent = headers.get("user-agent", "")
    if policy.mode is Mode.OFF or any(fnmatchcase(user_agent, pattern) for pattern in policy.off_for_clients):
        return Mode.OFF
    if is_unknown_mode(headers):
        return Mode.OFF
    return max(widest, Mode(_wanted_mode(headers) or widest), key=_WIDEST_FIRST.index)


def is_unknown_mode(headers: Mapping[str, str]) -> bool:
    """
    Whether the mode header holds an unknown word, such as `offf`.

    Memory is off then: who sends the header most likely restricts it, and what is archived by mistake cannot be told
    from the rest. The request goes on: the provider would have answered it.
    """
    return bool(_wanted_mode(headers)) and _wanted_mode(headers) not in set(Mode)


def _wanted_mode(headers: Mapping[str, str]) -> str:
    return headers.get(HEADER, "").strip().lower()


def is_excluded(chat: Chat, speaker: Speaker, policy: MemoryPolicy) -> bool:
    """Whether the policy keeps memory off for the model that is asked, or for this tenant."""
    return any(fnmatchcase(chat.model, pattern) for pattern in policy.off_for_models) or any(
        fnmatchcase(speaker.tenant, pattern) for pattern in policy.off_for_tenants
    )
