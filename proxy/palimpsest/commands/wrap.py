"""
`palimpsest wrap`: a command run with memory, through a proxy of its own or one that is running.

A proxy that runs at the configured address is used and left running. Otherwise one is started for this command alone,
and ends with it; where that address is taken, on a free port. Its log is a file in the data folder: the terminal is
the command's.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from pydantic import ValidationError

from palimpsest.commands.child_process import Child
from palimpsest.commands.own_address import address, leads_here, try_listening
from palimpsest.commands.probe import Occupant, as_running, base_url_of_client, look, policy_at
from palimpsest.domain import Api, Json
from palimpsest.domain.errors import MemoryFault, PolicyError
from palimpsest.settings import load
from palimpsest.settings.load import SERVER_KEY_ENV, WRAPPED_AT_ENV, WRAPPED_BY_ENV
from palimpsest.settings.policy import ListenPolicy, Policy, UpstreamPolicy
from palimpsest.store.data_dir import make_folder
from palimpsest.upstream.routing import has_version, serving

LOG_FILE = "wrap.log"
LOG_MODE = 0o600
LOG_BYTES = 1_000_000  # then it begins anew: weeks of starts and stops
SHOWN_LINES = 5  # of the log, where the proxy does not start
START_SECONDS = 30.0  # a start takes one; a machine that is busy more
STOP_SECONDS = 10.0  # beyond what the policy grants to streams: what was heard last is written then
LOOK_SECONDS = 0.02  # between looks for a proxy that starts

NOT_FOUND, NOT_EXECUTABLE = 127, 126  # what shells return

NO_TENANT = (
    "{0} is logged in with an account whose token changes within hours and names nobody, so nothing is remembered; "
    "on a machine of your own use: palimpsest wrap --config personal -- {0}"
)

WITHOUT_SERVER = "until it is back, requests pass without memory, and what is said waits here for it"

NO_PROXY = ("NO_PROXY", "no_proxy")  # a proxy of the network does not reach this machine's loopback

BY_LITELLM = ""
"""In place of a host: requests are translated there, and what only the provider knows is refused."""


def repository() -> str:
    """The name of the working directory's repository, which is its folder's; outside of any, of that directory."""
    here = Path.cwd()
    mark = next((mark for folder in (here, *here.parents) if (mark := folder / ".git").exists()), here / ".git")
    led = mark.read_text().removeprefix("gitdir:").strip() if mark.is_file() else ""  # another worktree, a submodule
    return Path(led.partition("/.git/worktrees/")[0] if "/.git/worktrees/" in led else mark.parent).name


def wrap(policy: Policy, command: Sequence[str], environment: Mapping[str, str], project: str = "") -> int:
    """
    Run a command with memory.

    Args:
        policy: of the proxy; if it has the default upstreams, the user's take their place (`base_url_of_client`).
        project: that all of its requests belong to; "": to none that is named here.

    Returns:
        The command's exit status, as a shell would return it.

    Raises:
        PolicyError: a setting is wrong, and the proxy would not start.
        MemoryFault: it did not start.
    """
    program = shutil.which(command[0], path=environment.get("PATH"))
    if program is None:
        return _refused(command[0])
    table = load.read_yaml(load.shipped("wrap.yaml"))
    child = Child()
    name = Path(program).name
    own = None
    if WRAPPED_AT_ENV not in environment:
        own = with_own_upstreams(policy, environment)
        theirs = as_running(own, environment)
        if theirs is not own and look(theirs) is Occupant.OURS:
            to = ", ".join(upstream.url or upstream.litellm for upstream in theirs.upstreams)
            _say(f"using the proxy that runs at {address(own.listen)}, whose requests go to {to}")
            own = theirs
    if own is not None and own.server.url:
        check_server(own, environment)
    elif own is not None and has_subscription_login(table, name, environment) and not own.tenants.static:
        _say(NO_TENANT.format(name))
    with child.signalled(), _around(own, environment) as base:
        if own is not None:  # the address of a surrounding `wrap` names it already
            project = project or _project_in(environment, own.listen)
        url = f"{base.partition('/@')[0]}/@{quote(project, safe='')}" if project else base
        environment = {name: value for name, value in environment.items() if name != SERVER_KEY_ENV}
        told = own
        if name in table["providers"]:  # what it serves with may be another's configuration
            at = urlsplit(url)
            told = policy_at(ListenPolicy(host=at.hostname, port=at.port), environment) or own
        words = [program, *arguments(table, name, url, environment, told), *command[1:]]
        first_party = first_party_variables(table["first_party"], own.upstreams if own else (), environment)
        return child.run(words, {**environment, **first_party, **variables(table["variables"], url, environment)})


def _project_in(environment: Mapping[str, str], listen: ListenPolicy) -> str:
    """The project that an address of the proxy among the user's names; "": none does."""
    urls = (environment.get(name, "") for name in ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL"))
    paths = (urlsplit(url).path for url in urls if leads_here(url, listen))
    return next((unquote(path[2:].partition("/")[0]) for path in paths if path.startswith("/@")), "")


def check_server(policy: Policy, environment: Mapping[str, str]) -> None:
    """
    Say so if the machine that keeps the memory is away. Raises `PolicyError`: it does not keep memory for this key.
    """
    from palimpsest.remote.courier import Away, Denied
    from palimpsest.remote.link import tenant_at

    try:
        tenant_at(policy, environment)
    except Denied as denied:
        raise PolicyError(f"--server: {denied}") from denied
    except Away as away:
        _say(f"{away}; {WITHOUT_SERVER}")


def with_own_upstreams(policy: Policy, environment: Mapping[str, str]) -> Policy:
    """A policy with the providers that the user's variables name, unless it sets upstreams itself."""
    if policy.upstreams != Policy().upstreams:
        return policy
    named = ((upstream, *base_url_of_client(upstream.wire, policy, environment)) for upstream in policy.upstreams)
    upstreams = tuple(_upstream_at(url, variable, upstream) if url else upstream for upstream, variable, url in named)
    return policy.model_copy(update={"upstreams": upstreams})


def variables(table: Mapping[str, str], url: str, environment: Mapping[str, str]) -> dict[str, str]:
    """
    The variables that are added to the command's environment. `table`: names to texts in which `{url}` stands for the
    proxy's address. What the user has set stays, unless it is an address, which has become the proxy's upstream.
    """
    set_anew = {name: _with_url(text, url) for name, text in table.items()}
    set_anew = {name: text for name, text in set_anew.items() if text.startswith(url) or not environment.get(name)}
    host = url.partition("://")[2].rpartition(":")[0].strip("[]")
    own = environment.get("no_proxy") or environment.get("NO_PROXY")  # most programs read only one, this one first
    set_anew |= dict.fromkeys(NO_PROXY, ",".join(filter(None, (own, host))))
    return set_anew | {WRAPPED_AT_ENV: url}


def arguments(
    table: Json, name: str, url: str, environment: Mapping[str, str], policy: Policy | None = None
) -> list[str]:
    """
    The arguments that are inserted after the name of a command that reads no variables.

    Args:
        table: `config/wrap.yaml`.
        name: of the command, without its folder.
        policy: of the proxy, with its upstreams; None: not known.
    """
    credential = ""
    if client := table["credentials"].get(name):
        has_key = environment.get(client["variable"]) and not _login(client, environment)
        credential = client["key" if has_key else "login"]
    is_openai = policy is not None and all(upstream.is_openai for upstream in serving(policy.upstreams, Api.OPENAI))
    compacts = is_openai or (policy is not None and policy.memory.answers_compactions)
    provider = table["providers"].get(name, {}).get("compacts" if compacts else "other", "")
    texts = (_with_url(text, url) for text in table["arguments"].get(name, ()))
    return [text.replace("{credential}", credential).replace("{provider}", provider) for text in texts]


def has_subscription_login(table: Json, name: str, environment: Mapping[str, str]) -> bool:
    """Whether a command has a login that is no API key: it changes within hours, and names no tenant."""
    client = table["credentials"].get(name)
    file = client and _login(client, environment)
    if not file:
        return False
    try:
        return bool(json.loads(file.read_bytes()).get(client["account"]))
    except (OSError, ValueError, AttributeError):
        return False


def _login(client: Json, environment: Mapping[str, str]) -> Path | None:
    return next((path for login in client["logins"] if (path := _path(login, environment)).is_file()), None)


def _path(text: str, environment: Mapping[str, str]) -> Path:
    """A path in which `~` stands for the home folder, and a leading `$NAME` for the value of that variable."""
    first, *rest = Path(text).parts
    start = environment.get("HOME", "") if first == "~" else environment.get(first.removeprefix("$"), "")
    return Path(start or os.devnull, *rest)


def _with_url(text: str, url: str) -> str:
    return text.replace("{url}", url)


def _upstream_at(url: str, variable: str, upstream: UpstreamPolicy) -> UpstreamPolicy:
    path = url.partition("://")[2].partition("/")[2]
    if upstream.api is Api.OPENAI and path and not (url.endswith("/v1") or has_version(url)):
        raise PolicyError(
            f"environment: {variable}: must have a version in its path or no path, for requests go to /v1/... below it"
        )
    try:
        return UpstreamPolicy.model_validate(upstream.model_dump(exclude={"logins"}) | {"url": url})
    except ValidationError as error:
        text = error.errors()[0]["msg"].removeprefix("Value error, ")
        raise PolicyError(f"environment: {variable}: {text}") from error


def _refused(name: str) -> int:
    is_there = Path(name).is_file()
    _say(f"{name}: {'is not executable' if is_there else 'command not found'}")
    return NOT_EXECUTABLE if is_there else NOT_FOUND


# --- the proxy -----------------------------------------------------------------------------------


def _around(policy: Policy | None, environment: Mapping[str, str]) -> AbstractContextManager[str]:
    """The URL of a proxy with this policy; None: of the one that a surrounding `wrap` has started."""
    return nullcontext(environment[WRAPPED_AT_ENV]) if policy is None else _proxy(policy, environment)


@contextmanager
def _proxy(policy: Policy, environment: Mapping[str, str]) -> Iterator[str]:
    """The URL of a live proxy: one that is running already, or one that runs as long as this context."""
    found = look(policy) if policy.listen.port else Occupant.NOBODY
    if found is Occupant.OURS:
        yield address(policy.listen)
        return
    listen = _place(policy.listen, found)
    listen = listen.model_copy(update={"drain_seconds": 0})  # nobody but the command sends requests, and it has ended
    policy = policy.model_copy(update={"listen": listen})
    make_folder(policy.data)
    log = policy.data / LOG_FILE
    process = _start(policy, environment, log)
    try:
        _await(process, policy, log)
        yield address(policy.listen)
        if process.poll() is not None:
            _say(f"the proxy ended before the command; see {log}")
    finally:
        _stop(process, policy.listen.shutdown_seconds + STOP_SECONDS)


def _place(listen: ListenPolicy, found: Occupant) -> ListenPolicy:
    """The policy's address if it is free, or else a free port."""
    anywhere = listen.model_copy(update={"port": 0})
    try:
        if found is Occupant.NOBODY:
            return listen.model_copy(update={"port": try_listening(listen)})
        reason: object = found
    except OSError as cause:
        reason = (cause.strerror or str(cause)).lower()
    try:
        elsewhere = listen.model_copy(update={"port": try_listening(anywhere)})
    except OSError as cause:
        raise PolicyError(f"listen.host: {listen.host}: cannot listen there: {cause.strerror}; try --host") from cause
    hint = "; to use that one, give wrap its --data, --upstream and --config" if found is Occupant.ANOTHER else ""
    _say(f"{address(listen)} is taken: {reason}; this command uses {address(elsewhere)}{hint}")
    return elsewhere


def _start(policy: Policy, environment: Mapping[str, str], log: Path) -> subprocess.Popen[bytes]:
    is_long = log.exists() and log.stat().st_size > LOG_BYTES
    opening = os.O_WRONLY | os.O_CREAT | os.O_APPEND | (os.O_TRUNC if is_long else 0)
    with os.fdopen(os.open(log, opening, LOG_MODE), "ab") as stream:
        return subprocess.Popen(
            [sys.executable, "-m", "palimpsest", "serve", "--handed-over"],
            env={**environment, **load.hand_over(policy), WRAPPED_BY_ENV: str(os.getpid())},
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
            start_new_session=True,  # Ctrl-C is for the command
        )


def _await(process: subprocess.Popen[bytes], policy: Policy, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while look(policy) is not Occupant.WRAPPED:
        if process.poll() is not None:
            said = " ".join(log.read_text(errors="replace").splitlines()[-SHOWN_LINES:])
            raise MemoryFault(f"starting the proxy at {address(policy.listen)}: it exited: {said or f'see {log}'}")
        if time.monotonic() > deadline:
            raise MemoryFault(f"starting the proxy at {address(policy.listen)}: no answer yet; see {log}")
        time.sleep(LOOK_SECONDS)


def _stop(process: subprocess.Popen[bytes], timeout_seconds: float) -> None:
    process.terminate()
    try:
        process.wait(timeout_seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _say(text: str) -> None:
    sys.stderr.write(f"palimpsest: {text}\n")


def hosts(wire: str, upstreams: Iterable[UpstreamPolicy]) -> set[str]:
    """The provider hosts that may receive requests of an API."""
    taking = [upstream for upstream in upstreams if upstream.wire in (wire, "any")]
    return {BY_LITELLM if upstream.litellm else urlsplit(upstream.url).hostname or "" for upstream in taking}


def first_party_variables(
    table: Iterable[Json], upstreams: Iterable[UpstreamPolicy], environment: Mapping[str, str]
) -> dict[str, str]:
    """
    The variables to be added for these upstreams.

    Args:
        table: `first_party` of `config/wrap.yaml`. Of each wire the first row counts whose host is that of all
            upstreams; a row without one fits all that pass requests on as they come.
        environment: what is set there stays, and so does a switch that is set to nothing.
    """
    upstreams = tuple(upstreams)
    chosen: dict[str, Mapping[str, str]] = {}
    for row in table:
        if _fits(row.get("host"), hosts(row["wire"], upstreams)):
            chosen.setdefault(row["wire"], row["variables"])
    return {name: text for row in chosen.values() for name, text in row.items() if name not in environment}


def _fits(host: str | None, served: set[str]) -> bool:
    return bool(served) and (BY_LITELLM not in served if host is None else served == {host})
