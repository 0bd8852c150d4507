"""
The extraction of facts from messages, by patterns alone.

A fact is proposed only where its words carry it without a reader: what users say of themselves in the first person,
what they decide, what they ask to be remembered or to hold from now on (`statements`), and a value under a name in what
they paste or a tool returns (`assignments`). Nothing is concluded. The extractor has a version: facts are a view of the
archive, and a better extractor makes them again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from palimpsest.core.facts.form import CONFIDENCE
from palimpsest.core.facts.statements import stated
from palimpsest.core.redaction.redaction import redact
from palimpsest.domain import PROJECT_SUBJECT, TOOL_ROLES, FactCategory, FactProposal

MOST_TEXT_CHARS = 20_000  # of a message that is read; what is longer is a log
MOST_SETTINGS = 40  # of one message; more of them are a dump of an environment
MOST_VALUE_CHARS = 120
MOST_LEVELS = 6  # of nested keys

_ASSIGNMENT = re.compile(
    r"^(?:export |set )?(?P<slot>[A-Z][A-Z0-9_]{2,60})="
    r"(?P<value>[^\s'\"$`{(<]\S{0,120}|\"[^\"\n$`]{1,120}\"|'[^'\n$`]{1,120}')[ \t]*$",
    re.MULTILINE,
)
_PASSING = re.compile(  # of a moment, or of the machine
    r"(?:^|_)(?:ENV|EXIT|STATUS|RC|RET|CODE|RESULT|PID|TIME|COUNT|PWD|OLDPWD|SHLVL|TERM|LINES|COLUMNS|RANDOM|SECONDS)$"
    r"|^(?:DIR|PATH|TMP|TEMP|HOME|FILE|LINE|NAME|USER|SHELL|LANG|EXIT_?\w*|[A-Z]_?\d*)$"
)
_SECRET = re.compile(
    r"KEY|TOKEN|SECRET|PASS|PWD|CRED|AUTH|PRIVATE|SALT|CERT|COOKIE|SESSION|SIGN|DSN|(?:^|_)PIN(?:_|$)", re.IGNORECASE
)
_HIDDEN = re.compile(
    r"\*\*\*|\u2026|\.\.\.$|masked|redacted|withheld|[<>{}$]|^(?:your|my|changeme|example|xxx|todo|none|null)\b"
    r"|://[^/\s]*@",
    re.IGNORECASE,
)

_FENCED = re.compile(r"```(?P<kind>\w*)[ \t]*\n?(?P<body>.*?)(?:\n[ \t]*```|```|\Z)", re.DOTALL)
_KINDS = frozenset(("json", "yaml", "yml", "toml", "ini", "env", "dotenv", "conf", "properties"))
_SECTION = re.compile(r"\[\[?(?P<path>[\w.\"-]{1,80})\]\]?[ \t]*(?:#.*)?$")
_LEAF = re.compile(
    r"(?P<indent>[ \t]*)(?P<dash>- )?(?P<quote>\"?)(?P<key>[A-Za-z_][\w.-]{0,60})(?P=quote)[ \t]*(?P<sign>[:=])"
    r"(?:[ \t]+(?P<value>\S.*?))?,?[ \t]*$"
)
_FILLING = re.compile(r"[ \t]*(?:[\[\]{}]*,?|#.*|//.*|-{3}|- .*|\"[^\"]*\",?|[\w.\"'-]+,)[ \t]*$")
_OPENING = re.compile(r"[\[{|>]-?$")
_LEAVES = frozenset(
    [
        *("port", "host", "hostname", "database", "dbname", "db_name", "bucket", "region", "namespace", "timezone"),
        *("time_zone", "default_branch", "base_branch", "base_url", "api_url", "endpoint", "db_host", "db_port"),
    ]
)


def assigned(text: str) -> Iterator[FactProposal]:
    """The settings that a text assigns."""
    if len(text) > MOST_TEXT_CHARS:
        return
    found = [(match["slot"], match.span("value"), match.span()) for match in _ASSIGNMENT.finditer(text) if "=" in text]
    found = [one for one in found if not _PASSING.search(one[0])]
    bodies = [match.span("body") for match in _FENCED.finditer(text) if match["kind"] in _KINDS]
    if "```" not in text:
        bodies = [(0, len(text))]
    found += [leaf for start, stop in bodies for leaf in _leaves(text, start, stop)]
    if len(found) > MOST_SETTINGS:
        return
    for slot, (first, last), (start, stop) in found:
        value = text[first:last].strip().strip("\"'")
        if not value or len(value) > MOST_VALUE_CHARS or _SECRET.search(slot) or _HIDDEN.search(value):
            continue
        setting = FactCategory.SETTING
        yield FactProposal(PROJECT_SUBJECT, slot, value, setting, start, stop, True, CONFIDENCE[setting])


def _leaves(text: str, start: int, stop: int) -> Iterator[tuple[str, tuple[int, int], tuple[int, int]]]:
    """Path, place of the value and place of the line of each known leaf, where every line is one of a document."""
    found: list[tuple[str, tuple[int, int], tuple[int, int]]] = []
    section = ""
    above: list[tuple[int, str]] = []  # indentation and key
    at = start
    for line in text[start:stop].split("\n"):
        body = line.rstrip()
        if (heading := _SECTION.match(body)) is not None:
            section, above = heading["path"].replace('"', ""), []
        elif (leaf := _LEAF.match(body)) is not None:
            indent, value = len(leaf["indent"]) + 2 * bool(leaf["dash"]), leaf["value"]
            while above and above[-1][0] >= indent:
                above.pop()
            if value is None or _OPENING.match(value):
                above.append((indent, leaf["key"]))
            elif leaf["key"].lower() in _LEAVES and len(above) < MOST_LEVELS:
                path = ".".join([*([section] if section else []), *(key for _, key in above), leaf["key"]])
                first, last = leaf.span("value")
                commented = value.find(" #")
                last = first + commented if commented > 0 else last
                found.append((path, (at + first, at + last), (at + len(leaf["indent"]), at + len(body))))
        elif _FILLING.match(body) is None:
            return
        at += len(line) + 1
    yield from found


VERSION = 6  # of the patterns and of what is stored beside a fact; facts of another version are made again


def proposals(text: str, role: str) -> tuple[FactProposal, ...]:
    """
    The facts that a message states, in the order in which they stand there.

    Those of one statement share its place; apart from them no two overlap.

    Args:
        text: readable text of the message. What redaction would take from it is no value of a fact.
        role: of the message. Of what an assistant says nothing is taken: it may be wrong, and repeats what it was told.
    """
    if role == "user":
        found = [*stated(text), *assigned(text)]
    elif role in TOOL_ROLES:
        found = [*assigned(text)]
    else:
        return ()
    cleaned = redact(text) if found else text
    if cleaned != text:
        found = [one for one in found if one.value in cleaned]
    kept: list[FactProposal] = []
    for one in sorted(found, key=lambda one: (one.start, one.stop)):
        if not kept or one.start >= kept[-1].stop or (one.start, one.stop) == (kept[-1].start, kept[-1].stop):
            kept.append(one)
    return tuple(kept)
