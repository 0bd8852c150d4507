"""`palimpsest mcp`: the memory tools on standard input and output, for clients that start their servers as commands."""

from __future__ import annotations

import argparse
import asyncio
import os
from collections.abc import Mapping

from palimpsest.console.arguments import DONE, PROVIDER_KEYS, Command, policy_flags, quiet_policy
from palimpsest.domain.errors import PolicyError
from palimpsest.features.mcp import PATH
from palimpsest.settings.load import URL_ENV

KEY_VARIABLES = ("PALIMPSEST_API_KEY", *PROVIDER_KEYS)


def add_commands(command: Command) -> None:
    parser = command("mcp", _mcp, "Serve the memory tools of a running proxy on standard input and output.")
    parser.add_argument(
        "--url", help=f"address of the proxy; the default is {URL_ENV}, or the configured one (http://HOST:PORT{PATH})"
    )
    parser.add_argument(
        "--key-env",
        metavar="NAME",
        help=f"variable with the key whose memory is used; the default is the first of {', '.join(KEY_VARIABLES)}",
    )
    parser.add_argument("--user", default="", metavar="NAME", help="user whose memory is used (x-palimpsest-user)")
    parser.add_argument("--scope", default="", metavar="NAME", help="project to look in (x-palimpsest-scope)")
    policy_flags(parser)


def _mcp(given: argparse.Namespace) -> int:
    from palimpsest.features.mcp.bridge import bridge

    policy = quiet_policy(given)
    url = given.url or os.environ.get(URL_ENV) or f"http://{policy.listen.host}:{policy.listen.port}"
    asyncio.run(bridge(url if url.endswith(PATH) else url.rstrip("/") + PATH, headers(given, os.environ)))
    return DONE


def headers(given: argparse.Namespace, environment: Mapping[str, str]) -> dict[str, str]:
    """
    The headers that tell the proxy who asks. Raises `PolicyError`: the variable that should hold the key is not set.
    """
    names = (given.key_env,) if given.key_env else KEY_VARIABLES
    key = next((environment[name] for name in names if environment.get(name)), "")
    if given.key_env and not key:
        raise PolicyError(f"--key-env: {given.key_env} is not set")
    named = {
        "authorization": f"Bearer {key}" if key else "",
        "x-palimpsest-user": given.user,
        "x-palimpsest-scope": given.scope,
    }
    return {name: value for name, value in named.items() if value}
