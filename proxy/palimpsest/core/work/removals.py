"""Files and folders that a command removes or moves, and those that git restores."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice, takewhile
from posixpath import basename, join, normpath

from palimpsest.core.work.account import FILE_ACTS, CallOutcome
from palimpsest.core.work.calls import Act, Call
from palimpsest.core.work.names import is_file

MOST_NAMES = 200  # of all commands, from the newest on: each is compared with all paths, and more are a clean-up
MOST_STARS = 3  # of a name: each more takes many times as long to compare
EVERYTHING = "."  # that git restores

_CHANGES_FILES = re.compile(r"\b(?:rm|mv|unlink|Remove-Item|Move-Item)\s|\bgit (?:checkout|restore|stash|reset)\b")
_HEREDOC_OR_COMMENT = re.compile(
    r"(?<!<)<<-?[ \t]*['\"]?(\w{1,40})['\"]?([^\n]{0,300})\n.*?(?:^[ \t]*\1[ \t\r]*$|\Z)|^[ \t]*#[^\n]*|\\\n",
    re.DOTALL | re.MULTILINE,
)
_WRITES = re.compile(r"(?:>|\btee |-o )\s*([^\s;&|<>()]+)")
_PREFIX = re.compile(r"(?:sudo|git|do|then|else|[{!]|\w+=.*)")  # what may stand in front of these programs
_REFUSAL = re.compile(r"\b(?:rm|mv|unlink|(?:Remove|Move)-Item)\b.*:|\bfatal:")  # why nothing was removed
_OPERATORS = "();<>|&\n"  # of the shell, that end the words of a program
_EXPANDED = re.compile(r"[$`{]")  # in a name that the shell makes another one of
_REMOVING, _MOVING = ("rm", "unlink", "remove-item"), ("mv", "move-item")
_KEEPS_FILES = re.compile(r"--(?:cached|dry-run|staged|target-directory=.*)")  # or says elsewhere where they go


def with_removals(done: Sequence[CallOutcome]) -> list[CallOutcome]:
    """The calls, and behind each command what became of the files that it removed or moved and git did not restore."""
    found: list[CallOutcome] = []
    known: dict[str, None] = {}
    removed: dict[str, list[CallOutcome]] = {}  # by path: what is told of its removal
    written = ""  # where commands wrote what they printed, a line each
    named = _named(done)
    for at, one in enumerate(done):
        found.append(one)
        if one.call.act in (*FILE_ACTS, Act.DELETED) and one.call.what:
            known[one.call.what] = None
            removed.pop(one.call.what, None)
        if not _has_run(one):
            continue
        written += "\n".join(["", *_WRITES.findall(one.call.what)])
        for name, target in named.get(at, ()):
            if target == name:
                restored = [*removed] if name == EVERYTHING else [path for path, *_ in named_by(name, removed)]
                undone = {id(told) for path in restored for told in removed.pop(path)}
                found = [told for told in found if id(told) not in undone]
                known.update(dict.fromkeys(restored))
                continue
            here = named_by(name, known)
            if not here and is_file(name) and not name.startswith("/tmp/"):
                here = [] if name.rpartition("/")[2] in written else [(name, "", "")]
            for path, before, behind in here:
                known.pop(path, None)
                removed[path] = [replace(one, call=Call(Act.DELETED, path, ""))]
                if target:
                    moved = f"{'' if target.startswith('/') else before}{target}{behind}"
                    known[moved] = None
                    removed[path].append(replace(one, call=Call(Act.CREATED, moved, "")))
                found += removed[path]
    return found


def _named(done: Sequence[CallOutcome]) -> dict[int, list[tuple[str, str]]]:
    """The `removals` of the newest calls, by their place."""
    named: dict[int, list[tuple[str, str]]] = {}
    room = MOST_NAMES
    for at, one in reversed([*enumerate(done)]):
        if room and _has_run(one):
            named[at] = [*islice(removals(one.call.what, one.is_failure), room)]
            room -= len(named[at])
    return named


def _has_run(one: CallOutcome) -> bool:
    """Whether a call ran a command that did not refuse to remove anything."""
    was_refused = one.result_at < 0 or (one.is_failure and _REFUSAL.search(one.outcome))
    return one.call.act is Act.RAN and not was_refused


def removals(command: str, is_failure: bool = False) -> Iterator[tuple[str, str]]:
    """
    The names of what a command removes, moves or restores, in its folder: each with "", with its new name, with itself.

    Of a command that failed, what stands behind `&&` may not have run, unless only such programs stand before it.
    """
    for folder, is_git, words in _programs(command, is_failure) if _CHANGES_FILES.search(command) else ():
        program = words[0].lower()
        if any(map(_KEEPS_FILES.fullmatch, words)) or (is_git and "-n" in words):
            continue
        if program in _MOVING and "-t" in words:
            at = words.index("-t")
            words = [*words[:at], *words[at + 2 :], *(f"{target}/" for target in words[at + 1 : at + 2])]
        names = _names(words)
        plain = [name for name in names if not _EXPANDED.search(name)]
        sources, new_name = plain, ""
        if program in _MOVING:
            *sources, new_name = plain if len(plain) == len(names) > 1 else [""]
        elif is_git and program in ("stash", "reset"):
            is_stash = program == "stash" and (names or ["push"])[0] in ("push", "save")
            sources = [EVERYTHING] if is_stash or "--hard" in words else []
        elif program not in _REMOVING and not (is_git and program in ("checkout", "restore")):
            continue
        is_folder = len(sources) > 1 or new_name[-1:] in ("/", ".")
        for name in sources:
            path = normpath(join(folder, name))
            if program not in (*_MOVING, *_REMOVING):
                yield (EVERYTHING,) * 2 if name == EVERYTHING else (path, path)
            elif name.count("*") <= MOST_STARS and set(path) - set("*./"):
                into = is_folder or (is_file(name) and not is_file(new_name))
                moved = join(new_name, basename(name.rstrip("/"))) if into else new_name
                yield path, normpath(join(folder, moved)) if program in _MOVING else ""


def _programs(command: str, is_failure: bool) -> Iterator[tuple[str, bool, list[str]]]:
    """What a command runs for sure in a folder that it tells: that folder, whether git runs it, and the words."""
    plain = _HEREDOC_OR_COMMENT.sub(r"\2", command)
    plain = plain.replace("\\", "/") if "-Item" in plain else plain
    lexer = shlex.shlex(plain, posix=True, punctuation_chars=_OPERATORS)
    lexer.whitespace, lexer.commenters, lexer.whitespace_split = " \t\r", "", True
    folder: str | None = ""  # None: nobody tells which
    around: list[str | None] = []  # the folders outside of parentheses
    part, before = list[str](), ""
    try:
        tokens = [*lexer, ";"]
    except ValueError:  # a quotation mark that nothing closes
        return
    for token in tokens:
        if set(token) - set(_OPERATORS) or set(token) <= set("<>"):
            part.append(token)
            continue
        words = [*takewhile(lambda word: word[:1] not in ("<", ">", "#"), part)]
        while words and _PREFIX.fullmatch(words[0]):
            words.pop(0)
        program = words[0].lower() if words else ""
        if program == "cd":
            to = next(iter(_names(words)), "$")
            is_told = not _EXPANDED.search(to) and (folder is not None or to[0] in "/~")
            folder = join(folder or "", to) if is_told else None
        elif words and folder is not None and "||" not in before and not (is_failure and "&&" in before):
            yield folder, "git" in part, words
        for sign in token:
            if sign == "(":
                around.append(folder)
            elif sign == ")" and around:
                folder = around.pop()
        if not part:
            before += token
        elif token != "&&" or program not in ("cd", *_MOVING, *_REMOVING):
            before = token
        part = []


def _names(words: Sequence[str]) -> list[str]:
    """What a program is given, without options, and numbers, which are those of streams."""
    given = [name for word in words[1:] for name in (word.split(",") if "-Item" in words[0] else [word])]
    return [name for name in given if name and name[0] != "-" and not name.isdigit()]


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
