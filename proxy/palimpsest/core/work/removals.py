"""Files and folders that a command takes away: it removes them, or moves them somewhere else."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from posixpath import basename, join, normpath

from palimpsest.core.work.names import is_file

_TAKES = re.compile(r"\b(?:rm|mv|unlink|Remove-Item|Move-Item)\s")
_CMDLET = re.compile(r"\b(?:Remove|Move)-Item\s")
_FED = re.compile(r"<<-?\s*['\"]?(\w+)['\"]?([^\n]*)\n.*?(?:^\s*\1\s*$|\Z)", re.DOTALL | re.MULTILINE)
_COMMENT = re.compile(r"^\s*#.*$|\\\n", re.MULTILINE)
_REMOVES, _MOVES = frozenset({"rm", "unlink", "remove-item"}), frozenset({"mv", "move-item"})
_BEFORE = frozenset({"sudo", "git", "do", "then", "else", "time"})  # in front of these programs
_SIGNS = "();<>|&\n"  # that end the words of a program


def removals(command: str) -> Iterator[tuple[str, str]]:
    """The names of what a command takes away, after its `cd`, each with where that is moved to, or ""."""
    if not _TAKES.search(command):
        return
    plain = _COMMENT.sub("", _FED.sub(r"\2", command))
    plain = plain.replace("\\", "/") if _CMDLET.search(plain) else plain
    lexer = shlex.shlex(plain, posix=True, punctuation_chars=_SIGNS)
    lexer.whitespace, lexer.commenters = " \t\r", ""
    folder, said, before = "", list[str](), ""
    try:
        tokens = [*lexer, ";"]
    except ValueError:  # a quotation mark that nothing closes
        return
    for token in tokens:
        if not (set(token) <= set(_SIGNS) and set(token) - set("<>")):
            said.append(token)
            continue
        words = [*takewhile(lambda word: word[:1] not in ("<", ">"), said)]
        while words and (words[0] in _BEFORE or "=" in words[0]):
            words = words[1:]
        if words[:1] == ["cd"]:
            folder = join(folder, words[1]) if len(words) > 1 and "$" not in words[1] else ""
        elif words and before != "||":  # what follows that runs only where the rest failed
            for source, target in _taken(words):
                yield normpath(join(folder, source)), target and normpath(join(folder, target))
        said, before = [], token.strip()


def _taken(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    names = [name for word in words[1:] for name in word.split(",") if name and not name.startswith("-")]
    names = [name for name in names if not name.isdigit()]  # "2" of "2>/dev/null"
    if "--cached" in words or any("$" in name for name in names):
        return
    if words[0].lower() in _REMOVES:
        yield from ((name, "") for name in names)
    elif words[0].lower() in _MOVES and len(names) > 1:
        *sources, target = names
        is_folder = len(sources) > 1 or target.endswith(("/", ".")) or (is_file(sources[0]) and not is_file(target))
        for source in sources:
            yield source, join(target, basename(source.rstrip("/"))) if is_folder else target


def named_by(name: str, paths: Iterable[str]) -> list[tuple[str, str, str]]:
    """
    The paths that a name in a command stands for, or that lie below it: each with what is before and behind the name.

    A name may be relative to where nobody tells: of the paths that end alike, those nearest to a root are meant.
    """
    plain = re.escape(name.removeprefix("~/")).replace(r"\*", "[^/]*").replace(r"\?", "[^/]")
    pattern = re.compile(rf"(|{'' if name.startswith('/') else '(?:~?/|[A-Za-z]:/)(?:.*/)?'}){plain}(|/.*)")
    found = [(path, match[1], match[2]) for path in paths if (match := pattern.fullmatch(path.replace("\\", "/")))]
    nearest = min((before.count("/") for _, before, _ in found), default=0)
    return [one for one in found if one[1].count("/") == nearest]
