"""Files and folders that a command takes away: it removes them, or moves them somewhere else."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import takewhile
from posixpath import basename, join, normpath

from palimpsest.core.work.account import FILE_ACTS, CallOutcome
from palimpsest.core.work.calls import Act, Call
from palimpsest.core.work.names import is_file

_TAKES = re.compile(r"\b(?:rm|mv|unlink|Remove-Item|Move-Item)\s")
_FED = re.compile(r"<<-?\s*['\"]?(\w+)['\"]?([^\n]*)\n.*?(?:^\s*\1\s*$|\Z)|^\s*#[^\n]*|\\\n", re.DOTALL | re.MULTILINE)
_BEFORE = re.compile(r"(?:sudo|git|do|then|else|\w+=.*)")  # what may stand in front of these programs
_NOT_TAKEN = re.compile(r"\b(?:rm|mv|unlink|(?:Remove|Move)-Item)\b.*:|\bfatal:")  # says why it removed nothing
_SIGNS = "();<>|&\n"  # that end the words of a program


def with_removals(done: Sequence[CallOutcome]) -> Iterator[CallOutcome]:
    """The calls, and behind each command what became of the files that it removed or moved."""
    known: dict[str, None] = {}
    ran = ""
    for one in done:
        yield one
        if one.call.act in (*FILE_ACTS, Act.DELETED) and one.call.what:
            known[one.call.what] = None
        was_refused = one.result_at < 0 or (one.is_failure and _NOT_TAKEN.search(one.outcome))
        if one.call.act is not Act.RAN or was_refused:
            continue
        ran += f"{one.call.what}\n"
        for name, target in removals(one.call.what):
            here = named_by(name, known)
            if not here and is_file(name) and not name.startswith("/tmp/"):
                own = re.search(rf"(?:>|\btee |-o )\s*[\w./~'\"-]*{re.escape(name.rpartition('/')[2])}", ran)
                here = [] if own else [(name, "", "")]
            for path, before, behind in here:
                known.pop(path, None)
                yield replace(one, call=Call(Act.DELETED, path, ""))
                if target:
                    moved = f"{'' if target.startswith('/') else before}{target}{behind}"
                    known[moved] = None
                    yield replace(one, call=Call(Act.CREATED, moved, ""))


def removals(command: str) -> Iterator[tuple[str, str]]:
    """The names of what a command takes away, after its `cd`, each with where that is moved to, or ""."""
    if not _TAKES.search(command):
        return
    plain = _FED.sub(r"\2", command)
    lexer = shlex.shlex(plain.replace("\\", "/") if "-Item" in plain else plain, posix=True, punctuation_chars=_SIGNS)
    lexer.whitespace, lexer.commenters = " \t\r", ""
    folder, said, before = "", list[str](), ""
    try:
        tokens = [*lexer, ";"]
    except ValueError:  # a quotation mark that nothing closes
        return
    for token in tokens:
        if set(token) - set(_SIGNS) or set(token) <= set("<>"):
            said.append(token)
            continue
        words = [*takewhile(lambda word: word[:1] not in ("<", ">"), said)]
        while words and _BEFORE.fullmatch(words[0]):
            words.pop(0)
        names = [
            name for word in words[1:] for name in word.split(",") if name and not (name[0] == "-" or name.isdigit())
        ]
        program = words[0].lower() if words and before != "||" and "--cached" not in words else ""
        if program == "cd":
            folder = join(folder, names[0]) if names and "$" not in names[0] else ""
        elif program in ("rm", "unlink", "remove-item") and "$" not in "".join(names):
            yield from ((normpath(join(folder, name)), "") for name in names)
        elif program in ("mv", "move-item") and len(names) > 1 and "$" not in "".join(names):
            *sources, target = names
            is_folder = len(sources) > 1 or target[-1] in "/." or (is_file(sources[0]) and not is_file(target))
            for name in sources:
                moved = join(target, basename(name.rstrip("/"))) if is_folder else target
                yield normpath(join(folder, name)), normpath(join(folder, moved))
        said, before = [], token.strip()


def named_by(name: str, paths: Iterable[str]) -> list[tuple[str, str, str]]:
    """
    The paths that a name in a command stands for, or that lie below it: each with what is before and behind the name.

    A name may be relative to where nobody tells: of the paths that end alike, those nearest to a root are meant.
    """
    plain = re.escape(name.removeprefix("~/")).replace(r"\*", "[^/]*")
    pattern = re.compile(rf"(|{'' if name.startswith('/') else '(?:~?/|[A-Za-z]:/)(?:.*/)?'}){plain}(|/.*)")
    found = [(path, match[1], match[2]) for path in paths if (match := pattern.fullmatch(path.replace("\\", "/")))]
    nearest = min((before.count("/") for _, before, _ in found), default=0)
    return [one for one in found if one[1].count("/") == nearest]
