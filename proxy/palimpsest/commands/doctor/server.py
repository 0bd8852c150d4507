"""The check of the machine that keeps the memory elsewhere: whether it answers, knows our key, and has all."""

from __future__ import annotations

from collections.abc import Mapping

from palimpsest.commands.doctor.finding import Finding, failed, ok, warning
from palimpsest.domain.errors import MemoryFault, PolicyError
from palimpsest.remote.courier import Away, Denied, waiting_room
from palimpsest.remote.link import Link
from palimpsest.settings.load import server_key
from palimpsest.settings.policy import Policy
from palimpsest.store.operation.secret import load_secret

CHECK = "memory on another machine"


async def link(policy: Policy, environment: Mapping[str, str]) -> Finding:
    """The state of the link, and how many turns wait here."""
    try:
        waits = _waiting_turns(policy, environment)
        async with Link(policy.server, server_key(policy, environment), environment) as way:
            tenant = await way.look()
    except Away as away:
        advice = "requests pass without memory until it is back; check the address, the network and that machine"
        return warning(CHECK, f"{away}; {waits}", advice)
    except Denied as denied:
        found, _, advice = str(denied).partition("; ")
        return failed(CHECK, f"{found}; {waits}", advice)
    except (MemoryFault, PolicyError) as wrong:
        return failed(CHECK, str(wrong))
    return ok(CHECK, f"kept at {policy.server.url} for {tenant or 'programs on that machine'}; {waits}")


def _waiting_turns(policy: Policy, environment: Mapping[str, str]) -> str:
    if not policy.data.is_dir():
        return "nothing waits here"
    room = waiting_room(policy.data, load_secret(policy.data, environment))
    try:
        count = room.count()
    finally:
        room.close()
    return f"{count} turns wait here" if count else "nothing waits here"
