"""
Calls of tools, read by the shape of arguments and results: which file, which command, which plan, and how it ended.

Clients name their tools as they like, and those of the Model Context Protocol are named by anybody. What they are for
is told by their arguments: a path beside old and new text is an edit, a path alone is a look, a list of steps with
states is a plan. A tool's name decides only where its arguments leave it open.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import islice
from typing import Any

import orjson

from palimpsest.domain.frozen import frozen

OUTCOME_CHARS = 140  # of how it ended: one line of an error
RESULT_CHARS = 20_000  # of a result that is looked at, from either end: errors stand there
PLAN_STEPS = 12  # told of one plan
STEP_CHARS = 100
REFUSAL_CHARS = 400  # a longer result tells something
MACHINE_MESSAGES = 4  # at least, that begin or end alike

PATHS = frozenset(
    """path file_path filepath file filename target_file notebook_path relative_workspace_path absolute_path
    old_path new_path""".split()  # noqa: SIM905 - a list is no easier to read
)
LOCATIONS = frozenset("uri target source destination".split())  # noqa: SIM905 - of files, and of much else
COMMANDS = frozenset("command cmd commands shell_command script".split())  # noqa: SIM905
CHANGES = frozenset(
    """old_string new_string old_str new_str content contents file_text patch diff edits insert_text replacement
    new_source code_edit changes search replace""".split()  # noqa: SIM905
)
PRINTED = ("stdout", "output", "stderr")  # in the order in which they are read
PLANS = frozenset("todos plan items tasks steps todo_list".split())  # noqa: SIM905
STEP = ("content", "step", "title", "text", "description", "task", "name")

_CALL = re.compile(r"^([\w.:/-]{1,80})\((\{.*\})\)$", re.MULTILINE)
_EDITS = re.compile(r"(?i)edit|replace|patch|insert|update|apply|modif")
_CREATES = re.compile(r"(?i)write|create|save|new_?file")
_DELETES = re.compile(r"(?i)delete|remove")
_SHELL = re.compile(r"(?i)bash|shell|exec|terminal|command|run")
_READS = re.compile(r"(?i)read|view|open|cat|show|get")
_PATH = re.compile(r"`?((?:[~.]{0,2}/(?:[\w.@+ -]+/)*|(?:[\w.@+-]+/)*)[\w.@+-]+)`?\s*(?:\n|$)")
_FENCED = re.compile(r"```(?:bash|sh|shell|zsh|console)?\n(.*?)(?:\n```|\Z)|`([^`\n]+)`", re.DOTALL)
_PATCHED = re.compile(r"^(?:\*\*\* (Update|Add|Delete) File: |\+\+\+ b?/?())(.+)$", re.MULTILINE)
_WRITTEN = re.compile(  # a file's name, then what is searched for in it and replaced, or a unified diff of it
    r"^(?:[#* \t]*`?((?=[\w@+-]*[./])[\w.@+/-]+)`?[*:]*\n+(?:[`~<][^\n]{0,30}\n)?<{5,9} ?(?:SEARCH|ORIGINAL|HEAD)\b"
    r"|\+\+\+ (?:b/)?([^\s]+)(?:\t.*)?\n@@ )",
    re.MULTILINE,
)
_RUN = re.compile(r"I ran this command:\n\n(.+?)\n\nAnd got this output:\n\n(.*)", re.DOTALL)
_CHANGED = re.compile(  # what a tool answers that changed a file
    r"(?:The file |File )?(?:has been |was )?(?P<how>[Cc]reated|[Ww]rote|[Dd]eleted|[Uu]pdated|[Ee]dited|Applied edit)?"
    r"(?: successfully)?(?: to| at)?:? ?`?(?P<path>[\w.@~+-]*/[\w.@~+/-]*\w)`?"
    r"(?: (?:has been|was) (?P<then>created|deleted|updated|edited))?"
)
_STEP = re.compile(r"^[ \t]*(?:[-*]|\d+\.)\s*\[(.)\]\s*(.+)$", re.MULTILINE)
_STATE = re.compile(r"^(?:pending|in[_-]progress|completed|cancelled|high|medium|low)$", re.MULTILINE)  # of a step
_EXIT = re.compile(r"\b(?i:exit(?:ed)?(?: with)?(?:[ _]?code|[ _]?status)?|returncode)\W{1,4}(\d+)")
_TESTS = re.compile(
    r"(?<![\d:.])\b\d+ (?i:tests? )?(?i:failed|passed|(?<=\b1 )error|errors|failures|passing|failing)\b(?!:)"  # no port
    r"|\bTests run: \d+(?:, (?:Failures|Errors): \d+)+"
)
_FAILURES = re.compile(r"(?i)^[1-9].*(?:fail|error)|(?:failures|errors): [1-9]")
_ERROR = re.compile(
    r"^.*?(\b\w*(?:Error|Exception):|(?:^(?:E +)?|: )[\w.]*(?:Error|Exception)$|\b[Ee]rror(?: \w{1,8})?:"
    r"|\bError response from\b|\b[Ee]rror at\b|^SQLSTATE\[|\berror\[|^[^\w\n]*(?:error|ERROR)\b"
    r"|\bFAIL(?:ED|URE)?\b|\*\*\* \["
    r"|\bfatal:|\bpanic:|\bTraceback|\b[Nn]o such file|\bcommand not found|\bnot found$|\b[Pp]ermission denied"
    r"|\bcannot (?:use|find|open|access|import|stat|read|write|connect|create|load|resolve)\b|\bundefined:).*$",
    re.MULTILINE,
)
_LOOKS = re.compile(  # what it prints is what it was asked to show, errors in source code among it
    r"(?:(?:(?:cd|export|source) |[A-Za-z_]\w*=)[^&;|\n]+(?:&&|;|\n)\s*)*"
    r"(?:sudo (?:-\S+ )*)?(?:ssh (?:-\S+ )*[\w.][\w.@-]* (?![^\n]*(?:;|&&))[\"']?(?:sudo (?:-\S+ )*)?)?"
    r"(?:for\b|if\b|echo|printf|which|type|command|env|[a-z]*grep|rg|ag|sed|g?awk|cat|bat|head|tail|find|fd|ls|tree|wc"
    r"|diff|jq|yq|stat|file|du|sort|uniq|nl|strings|ss|lsof|ps|journalctl(?! --(?:vacuum|rotate))|dmesg|z?less|zcat|xxd"
    r"|hexdump|Get-Content|Select-String"
    r"|(?:sqlite3|duckdb) [^;|&\n\"']*(?:[\"'](?i:select|explain|pragma)|[\"' ]\.(?:schema|tables))"
    r"|(?:docker(?:-compose)?|podman|kubectl|oc|heroku|fly|gh|pm2|vercel|aws)"
    r" (?:-\S+ (?:(?!compose |service )[\w./][\w./-]* )?|compose |service )*logs(?![./])|systemctl (?:--?\S+ )*status"
    r"|git (?:-\S+ (?:[^\s-]\S* )?)*(?:diff|show|log|reflog(?! expire)|status|branch|grep|blame|remote|rev-parse"
    r"|worktree list)|kubectl (?:-\S+ (?:[^\s-]\S* )?)*(?:get|describe)|docker (?:ps|images|inspect)"
    r"|gh \w+ (?:diff|view|list)|gh api)\b"
)
_SAYS = re.compile(r"^([\w.+-]+)(?:\[\d+\])?: \S.*\Z", re.MULTILINE)  # a program, and the last that it says
_PROGRAMS = re.compile(r"(?:^|[;&|(]|\bsudo)\s*(?:[A-Za-z_]\w*=\S+\s+)*(?:[\w.+-]*/)*([\w.+-]+)")  # that a command runs
_COMPLAINS = re.compile(  # of a command that failed: where nothing else tells the reason
    r"^.*\b([Ff]ail(?:ed|s|ure)?|not found|denied|refused|[Cc]annot|[Cc]ould not|[Uu]nable to|timed out|[Ii]nvalid"
    r"|mismatch|[Mm]issing)\b.*$",
    re.MULTILINE,
)
_SUCCEEDS = re.compile(  # what programs say under their own names of what went well
    r"(?i)\b(?:ok|success(?:ful(?:ly)?)?|succeeded|complete[d]?|done|passed|finished|up.to.date|upgraded|sent|received"
    r"|deployed|started|running|listening|ready|created|updated|wrote|written|saved|installed|synced|built|uploaded)\b"
)
_UNLESS = re.compile(  # "no server running", "3 not sent": and in these nothing went well
    r"(?i)\b(?:not|no|nothing|never|another|already|but|before|while|unexpected|0)\b|n['\u2019]t\b"
)
_GAVE_UP = re.compile(r"^.*\b[Cc]onnection refused\b.*\Z", re.MULTILINE)  # the last line: before, it was tried again
_IN_CODE = re.compile(r"[\w\])][({](?:\w+: ?)?[\"'`][^\"'`]*$")  # in front of words in a text that a call is given
_SPEAKS = re.compile(r"[^\W\d_]{3}")
_NO_ERROR = re.compile(  # a line that only says how it ended, or that a program wrote at another level
    rf"{_EXIT.pattern}|{_TESTS.pattern}|\(none\)$|\b(?:WARN(?:ING)?|INFO|DEBUG)\b"
)
_CHATTY = frozenset({"make", "ninja", "git", "go"})  # they announce what they do in the form of an error
_LEFT = re.compile(  # what a command says that it left behind
    r"^(?:Successfully installed .+|go: (?:added|upgraded) .+|\+ [\w@/.-]+(?:@|==)[\w.^~-]+"
    r"|\[[\w./-]+ [0-9a-f]{7,40}\] .+)$",
    re.MULTILINE,
)
_TRACE = "Traceback"
_REFUSES = re.compile(  # what clients answer in the name of a tool that they did not call, or not with these arguments
    r"(?i).{0,120}(?:exceeds? (?:the )?maximum (?:allowed )?|has not been read yet"
    r"|(?:has been|was) modified since|doesn't want to (?:proceed|take)|user rejected|was rejected by|requires approval"
    r"|haven't granted|string to replace (?:was )?not found|no such tool|invalid (?:tool )?(?:arguments|parameters))"
)
_REFUSED = "<tool_use_error>"  # however much of the call it repeats
_FORESEEN = re.compile(
    r"(?i)\bas (?:expected|intended|it should|designed)\b|\bexpected(?: to)? (?:fail|error)\w*"
    r"|\b(?:should|must) (?:now |still )?(?:fail|error|be (?:refused|rejected))\b"
    r"|\b(?:correctly|properly|rightly) (?:fail|refuse|reject|error)\w*|\bon purpose\b|\bdeliberate(?:ly)?\b"
)
_TOLERATES = re.compile(r"\|\| ?(?:true|:|echo)\b|^\s*! ")  # a command that may fail
_ARGUMENT = re.compile(r"^[\w.]*(?:Error|Exception)\b.*$", re.MULTILINE)


class Act(StrEnum):
    """What a call did."""

    CREATED = "created"
    EDITED = "edited"
    DELETED = "deleted"
    READ = "read"
    RAN = "ran"
    PLANNED = "planned"
    OTHER = "used"


@frozen
class Call:
    """
    A call of a tool: `what` is the path, the command or the plan that it is about, one line; "" where none is told.

    `text` is all that it says, escapes of JSON resolved.
    """

    act: Act
    what: str
    text: str


def calls_of(readable: str) -> tuple[str, tuple[Call, ...]]:
    """Split a message, as `wire.message.readable` has it stored, into what it says and the calls that it makes."""
    found = [*_CALL.finditer(readable)] if readable.endswith(")") else []
    calls: list[Call] = []
    for call in found:
        try:  # what was redacted in it may have broken it, or it is nested too deep
            made = [*_calls_of(call[1], orjson.loads(call[2]))]
        except (orjson.JSONDecodeError, RecursionError):
            made = [Call(Act.OTHER, "", f"{call[1]} {call[2]}")]
        calls += made
    return (readable[: found[0].start()].rstrip() if found else readable), tuple(calls)


def is_look(readable: str) -> bool:
    """Whether a message does nothing but look: it reads files or runs what only shows something, and says no word."""
    prose, calls = calls_of(readable)
    return (
        not prose
        and bool(calls)
        and all(one.act is Act.READ or (one.act is Act.RAN and only_looks(one.what)) for one in calls)
    )


def written_edits(prose: str) -> tuple[Call, ...]:
    """The edits of files that a text itself holds, as models write them that have no tools."""
    found = dict.fromkeys(match[1] or match[2] for match in _WRITTEN.finditer(prose))
    return tuple(Call(Act.EDITED, path, "") for path in found)


def is_machine(said: Sequence[str]) -> bool:
    """
    Whether a user's messages are what a program returns: most begin, or end, with the same line.

    Agents that call no tools run what their model writes, and send back what came of it in the user's name.
    """
    texts = [text.strip() for text in said if text.strip()]
    edges = [(text.split("\n", 1)[0], text.rsplit("\n", 1)[1]) for text in texts if "\n" in text]
    alike = max((Counter(line).most_common(1)[0][1] for line in zip(*edges, strict=True)), default=0)
    return alike >= MACHINE_MESSAGES and 2 * alike > len(texts)


def printed(result: str) -> str:
    """What a tool printed, taken out of the JSON in which some clients and servers send it beside an exit code."""
    if not result.startswith("{"):
        return result
    try:
        fields = orjson.loads(result)
    except orjson.JSONDecodeError:
        return result
    told = [fields[name] for name in PRINTED if isinstance(fields.get(name), str)]
    codes = [found[0] for found in _EXIT.finditer(result) if found[1] != "0"]
    return "\n".join([*codes[:1], *told]) if told else result


def run_by_user(text: str) -> tuple[Call, str] | None:
    """The command that a user's message says was run, and its output, as aider sends them; None where it says none."""
    match = _RUN.match(text)
    return (Call(Act.RAN, match[1], match[1]), match[2]) if match else None


def is_refusal(result: str) -> bool:
    """Whether a result only says that the call was not carried out: what it names is about the call."""
    return result.startswith(_REFUSED) or (len(result) <= REFUSAL_CHARS and _REFUSES.match(result) is not None)


def is_foreseen(command: str, before: str, after: str) -> bool:
    """
    Whether a failure was provoked: the command allows for it, or what the model said before or after it says so.

    Args:
        before: what the model said with the call.
        after: what it said next.
    """
    return any(map(_FORESEEN.search, (before, after))) or _TOLERATES.search(command) is not None


def changed_by(result: str) -> Call | None:
    """The change of a file that a result tells of, where the arguments of its call do not; None where it tells none."""
    match = _CHANGED.match(result)
    how = (match["how"] or match["then"] or "").lower() if match else ""
    if match is None or not how:
        return None
    act = {"created": Act.CREATED, "wrote": Act.CREATED, "deleted": Act.DELETED}.get(how, Act.EDITED)
    return Call(act, match["path"], "")


def outcome_of(result: str, command: str = "") -> tuple[str, bool]:
    """
    How a command ended, in one line, as far as its result tells, and whether it failed.

    Tests that passed and failed, an exit code other than 0, the first line of an error, or what was installed or
    committed; "" where it tells nothing of it, and where the command only shows something.
    """
    if only_looks(command):
        return "", False
    looked_at = result if len(result) <= RESULT_CHARS else result[: RESULT_CHARS // 2] + result[-RESULT_CHARS // 2 :]
    code = next((match[1] for match in _EXIT.finditer(looked_at)), "")
    tests = [match[0] for match in _TESTS.finditer(looked_at)][-2:]
    has_failures = any(_FAILURES.search(one) for one in tests)
    error = _first(_ERROR, looked_at) or _complaint(looked_at, command)
    if error is not None and _TRACE in error[0]:
        error = max(_ARGUMENT.finditer(looked_at), key=re.Match.start, default=error)
    failed = has_failures or (code not in ("", "0")) or (code != "0" and not tests and error is not None)
    said = [*(f"exit {code}" for _ in [0] if code not in ("", "0")), *tests]
    if failed:
        error = error or _first(_COMPLAINS, looked_at)
        said.append(error[0] if error is not None else _last_lines(looked_at))
    if not failed and (left := [*_LEFT.finditer(looked_at)]):
        said.append(left[-1][0])
    return shortened("; ".join(filter(None, said)), OUTCOME_CHARS), failed


def _first(pattern: re.Pattern[str], result: str) -> re.Match[str] | None:
    """The first line of this form that says more than how the command ended, and is no source code."""
    lines = (line for line in pattern.finditer(result) if not _NO_ERROR.search(line[0]))
    return next((line for line in lines if not _IN_CODE.search(result, line.start(), line.start(1))), None)


def _complaint(result: str, command: str) -> re.Match[str] | None:
    """
    The last line, where a program of the command says it under its own name, and not that all went well: so Unix
    programs say, in any language, what failed.
    """
    said = result.rstrip()
    line = _SAYS.search(said)
    if line is None or line[1] not in {*_PROGRAMS.findall(command)} - _CHATTY:
        return _GAVE_UP.search(said)
    went_well = _SUCCEEDS.search(line[0]) and not _UNLESS.search(line[0])
    return line if _COMPLAINS.search(line[0]) or not went_well else None


def _last_lines(result: str) -> str:
    """The last two lines that say more than how the command ended."""
    lines = (line.strip() for line in reversed(result.splitlines()))
    told = islice((line for line in lines if _SPEAKS.search(line) and not _NO_ERROR.search(line)), 2)
    return "; ".join(reversed([*told]))


def only_looks(command: str) -> bool:
    """Whether a command shows something and does nothing: it is typed again in a moment."""
    return _LOOKS.match(command) is not None


def shortened(text: str, chars: int) -> str:
    """One line of at most so many characters."""
    line = " ".join(text.split())
    return line if len(line) <= chars else f"{line[: chars - 1].rstrip()}…"


def _calls_of(tool: str, arguments: Any) -> Iterator[Call]:
    """The calls of files and commands in one tool call: a patch may change several files."""
    fields = arguments if isinstance(arguments, Mapping) else {"": arguments}
    text = "\n".join(_texts(arguments))
    if (plan := _plan(fields, text)) is not None and not _SHELL.search(tool):
        yield Call(Act.PLANNED, plan, _STATE.sub("", text))
        return
    patched = [(match[1] or "Update", match[3].strip()) for match in _PATCHED.finditer(text)]
    if patched:
        acts = {"Add": Act.CREATED, "Delete": Act.DELETED}
        for at, (how, path) in enumerate(dict.fromkeys(patched)):
            yield Call(acts.get(how, Act.EDITED), path, text if not at else "")
        return
    path, command = _path(fields), _command(tool, fields, text)
    if fields.keys() & PATHS and command.isidentifier():  # of an editor, as "view" or "str_replace"
        tool, command = command, ""
    yield Call(Act.RAN, command, text) if command else Call(_act(tool, fields, path), path, text)


def _act(tool: str, fields: Mapping[str, Any], path: str) -> Act:
    """What a tool does with a file, by its name and its fields."""
    if not path:
        return Act.OTHER
    if _DELETES.search(tool):
        return Act.DELETED
    if _EDITS.search(tool) or fields.keys() & {"old_string", "old_str", "diff", "patch", "edits"}:
        return Act.EDITED
    if _CREATES.search(tool) or fields.keys() & CHANGES:
        return Act.CREATED
    return Act.READ if _READS.search(tool) or len(fields) <= 3 else Act.OTHER  # a path, an offset, a limit


def _path(fields: Mapping[str, Any]) -> str:
    """The path that a call is about: under a name for paths, or where a text begins with nothing else."""
    for name, value in fields.items():
        is_path = name in PATHS or (name in LOCATIONS and isinstance(value, str) and "/" in value)
        if is_path and isinstance(value, str) and value.strip() and "\n" not in value:
            return value.strip()
    for value in fields.values():
        if isinstance(value, str) and ("/" in value[:200] or "." in value[:200]) and (found := _PATH.match(value)):
            return found[1] if "/" in found[1] or "." in found[1] else ""
    return ""


def _command(tool: str, fields: Mapping[str, Any], text: str) -> str:
    """The shell command that a tool call runs; "" where it runs none."""
    for name in COMMANDS & fields.keys():
        value = fields[name]
        if isinstance(value, str) and value.strip():
            return value.strip()
        if isinstance(value, Sequence) and value and all(isinstance(part, str) for part in value):
            return str(value[-1] if len(value) > 1 and value[-2] in ("-c", "-lc") else " ".join(value))
    if _SHELL.search(tool) and (fenced := _FENCED.search(text)):
        return (fenced[1] or fenced[2] or "").strip()
    return ""


def _plan(fields: Mapping[str, Any], text: str) -> str | None:
    """The steps of a plan with their states, in one line; "" where all are done; None where it is no plan."""
    for name in PLANS & fields.keys():
        steps = fields[name]
        if isinstance(steps, list) and steps and all(isinstance(step, Mapping) for step in steps):
            told = [
                (str(step.get("status", "")), next((str(step[f]) for f in STEP if step.get(f)), "")) for step in steps
            ]
            return _steps([(_state_mark(status), what) for status, what in told if what])
    boxes = _STEP.findall(text)
    return _steps([(mark.strip(), what) for mark, what in boxes]) if len(boxes) > 1 else None


def _state_mark(status: str) -> str:
    return {"completed": "x", "done": "x", "in_progress": "~", "in-progress": "~"}.get(status.lower(), "")


def _steps(steps: Sequence[tuple[str, str]]) -> str:
    """The open steps of a plan as text, and how many are done; "" where none is open."""
    is_done = [mark.lower() in ("x", "✓", "✔") for mark, _ in steps]
    left = [(mark, what) for (mark, what), done in zip(steps, is_done, strict=True) if not done][:PLAN_STEPS]
    told = [f"[{'~' if mark else ' '}] {shortened(what, STEP_CHARS)}" for mark, what in left]
    return "; ".join([*told, f"{sum(is_done)} of {len(steps)} steps done"]) if told else ""


def _texts(value: Any) -> Iterator[str]:
    """Every text and number of a JSON value, in order, without the names of its fields."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)
    elif value is not None and not isinstance(value, bool):
        yield str(value)
