"""Base URLs that lead to this machine, in shell files, clients' settings and variables, and who answers there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from http.client import HTTPException
from pathlib import Path
from urllib.parse import urlsplit

from palimpsest.commands.own_address import address
from palimpsest.commands.probe import ask_json
from palimpsest.domain.frozen import frozen
from palimpsest.settings.policy import ListenPolicy

# `~` is the home folder and `.` the current one. `$NAME|` stands before a path whose first folder a variable replaces.
FILES = (
    *("~/.profile", "~/.bash_profile", "~/.bash_login", "~/.bashrc"),
    *(f"$ZDOTDIR|~/{name}" for name in (".zshenv", ".zprofile", ".zshrc", ".zlogin")),
    *("$XDG_CONFIG_HOME|~/.config/fish/config.fish", "$XDG_CONFIG_HOME|~/.config/fish/conf.d/*.fish"),
    *("$XDG_CONFIG_HOME|~/.config/environment.d/*.conf", "~/.env", "./.env"),
    *("~/.claude/settings.json", "~/.claude/settings.local.json"),
    *("./.claude/settings.json", "./.claude/settings.local.json"),
    *("$CODEX_HOME|~/.codex/config.toml", "./.codex/config.toml"),
    *(f"$XDG_CONFIG_HOME|~/.config/opencode/opencode.{ending}" for ending in ("json", "jsonc")),
    *("./opencode.json", "./opencode.jsonc", "~/.aider.conf.yml", "./.aider.conf.yml"),
    *("~/.continue/config.yaml", "~/.continue/config.json", "~/.cline/data/settings/providers.json"),
)

# What of such a path the variable stands for; $ZDOTDIR for the home folder itself.
DEFAULTS = {"$XDG_CONFIG_HOME": ".config/", "$CODEX_HOME": ".codex/"}

MAX_BYTES = 1_000_000  # longer files are no settings that a person keeps

# A name that ends as clients call an address, and an address of this machine: `export OPENAI_BASE_URL=http://...`,
# `set -gx NAME http://...`, `"baseURL": "http://..."`, `api-base: http://...`.
SETTING = re.compile(
    r"""(?P<name>[\w-]*(?:base[_-]?url|api[_-]?base|api[_-]?base[_-]?url|api[_-]?url))["']?(?:\s*[:=]\s*|\s+)["']?"""
    r"""(?P<url>https?://(?:localhost|127(?:\.\d+){3}|0\.0\.0\.0|\[::1?\])(?::\d+)?(?![\w.@-])[^\s"'`;,)}]*)""",
    re.IGNORECASE,
)
COMMENTS = ("#", "//", ": #")


class Listener(StrEnum):
    """Who answers at an address."""

    NOBODY = "nobody"
    PROXY = "a palimpsest"
    OTHER = "another program"


@frozen
class BaseUrl:
    """A setting that names an address of this machine. Without a `file` it is a variable of the environment."""

    name: str
    url: str
    file: Path | None = None
    line: int = 0  # from 1

    @property
    def place(self) -> str:
        """The file and line where it is set."""
        return f"{self.file}:{self.line}" if self.file else "the environment"

    @property
    def port(self) -> int:
        split = urlsplit(self.url)
        try:
            return split.port or (443 if split.scheme == "https" else 80)
        except ValueError:  # none that there is: nobody answers there
            return 0


@frozen
class Search:
    """What was found, and which files could not be read."""

    base_urls: tuple[BaseUrl, ...] = ()
    unread: tuple[Path, ...] = ()


def search(environment: Mapping[str, str], folder: Path) -> Search:
    """All base URLs of this machine that somebody has set: variables, and files of `HOME` and of a project's folder."""
    found = [
        BaseUrl(name, match["url"])
        for name, value in sorted(environment.items())
        if (match := SETTING.fullmatch(f"{name}={value}"))
    ]
    unread = []
    for file in files(environment, folder):
        try:
            if file.stat().st_size <= MAX_BYTES:
                found += settings_in(file, file.read_text(encoding="utf-8", errors="replace"))
        except OSError:
            unread.append(file)
    return Search(tuple(found), tuple(unread))


def files(environment: Mapping[str, str], folder: Path) -> list[Path]:
    """The files on this machine that may hold a base URL; each once."""
    home = Path(environment.get("HOME") or Path.home())
    paths = []
    for text in FILES:
        first, _, rest = text.partition("/")
        variable, _, first = first.rpartition("|")
        start = folder if first == "." else home
        if own := environment.get(variable.removeprefix("$")):
            start, rest = Path(own), rest.removeprefix(DEFAULTS.get(variable, ""))
        paths += sorted(start.glob(rest))
    return [path for path in dict.fromkeys(paths) if path.is_file()]


def settings_in(file: Path, text: str) -> Iterator[BaseUrl]:
    """The base URLs that one file sets, from above, comments left out."""
    for number, line in enumerate(text.splitlines(), 1):
        if not line.lstrip().startswith(COMMENTS):
            for match in SETTING.finditer(line):
                yield BaseUrl(match["name"], match["url"], file, number)


def listener(base_url: BaseUrl) -> Listener:
    """What answers at the address of a base URL."""
    host = urlsplit(base_url.url).hostname or ""
    try:
        answer = ask_json(address(ListenPolicy(host=host, port=base_url.port)), "/healthz")
    except ConnectionRefusedError:
        return Listener.NOBODY
    except (OSError, HTTPException, ValueError):
        return Listener.OTHER
    return Listener.PROXY if "palimpsest" in answer else Listener.OTHER
