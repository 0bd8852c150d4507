"""
The account of work that a compaction took away: what was done and how it ended, then what was named, in few lines.

    plan: [~] cover the parser; 3 of 5 steps done
    failed: pytest tests/parser: 2 failed; AssertionError: 3 != 4
    edited: src/parser.py 7x, src/lexer.py
    ran: pip install lark-parser; git checkout -b parser; psql -h localhost -p 7431 -U app
    decided: We keep the LALR grammar, because it is what the editor plug-in reads.
    values: port 7431; timeout of 30 s
    read: src/tokens.py: class TokenStream(Base); END_MARK
    assistant: calls `next_token` twice
    tool: class Lexer(Base); TOKEN_EOF; lark 0.12.0
    paths: src/tokens.py; tests/parser/test_rows.py

Open things come first, and of each kind the newest. Everything is quoted as it was said; nothing that the model still
sees is told, and no name twice.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from itertools import islice
from posixpath import commonprefix

from palimpsest.core.recall.human_text import untagged_words
from palimpsest.core.recall.updates import Numbers, numbers_of
from palimpsest.core.work.calls import (
    Act,
    Call,
    calls_of,
    changed_by,
    is_foreseen,
    is_refusal,
    only_looks,
    outcome_of,
    printed,
    run_by_user,
    shortened,
    written_edits,
)
from palimpsest.core.work.excerpts import ALIKE, DIGITS, JOINT, LINE_CHARS, Excerpt, choose_excerpts, offered
from palimpsest.core.work.names import is_file, names, placed
from palimpsest.core.work.need import LostText, name_mentions, need, words
from palimpsest.core.work.places import addresses, branch
from palimpsest.core.work.rules import rules
from palimpsest.core.work.statements import (
    SENTENCE,
    decisions,
    names_something,
    negates,
    of_here,
    rejected,
    replaced,
    values,
    without_printed,
)
from palimpsest.domain import TOOL_ROLES, Account, AccountLine, frozen

QUOTED_BREAK = "\\n"  # of a line, in a text that was quoted as JSON inside of another one
QUOTED_BREAKS = 5  # from which on it is one, and no path with a backslash
LABEL_CHARS = 3  # around the label of a line
READ, CHANGED = "read", "file"  # the labels of what is from a file: nothing changed it, or something did
DECIDED = "decided"  # ... of decisions
PATHS = "paths"  # the label of those beside which nothing was said
CLIENT = "client"  # the label of what is from a client's notices, and of the text of its commands
HEAD_CHARS = len(READ) + LABEL_CHARS + 2  # around its path
PATH_CHARS = 160  # of a file's name
FILE_ACTS = (Act.READ, Act.EDITED, Act.CREATED)
NAME_CHARS = 8  # of room that a name takes beside its own letters
WANTED_NAMES = 250  # the likeliest for their length: more tell less in the same room, and take longer
FILES, RUNS, PASSED, FAILURES = 8, 3, 3, 2  # told of each: what is older seldom matters
FILES_CHARS = 420
ROOT_CHARS = 20  # of a folder that files share, from which on it is told once
COMMAND_CHARS = 160  # of one as it is told
FILTERED_CHARS = 800  # of one that is looked at to its end: a longer one is cut all the same
SAID_CHARS = 300  # beside a call, which are about it
DECISIONS, DECISION_CHARS = 3, 160  # told in words, as names do not tell them
VALUES, VALUE_CHARS = 6, 60
LOOKED_AT = 400  # decisions, and values, the newest: each is compared with those that are told
CORRECTIONS = 64  # with which each value is compared, the newest: whoever has more pasted them
_HEREDOC = re.compile(r"<<-?\s*['\"]?(\w+)['\"]?")
_FRAME = re.compile(  # numbers as tools print files, also of quoted listings, `ls -l`, of differences and of runs
    r"^(?:(?:[+-]?[ \t]*\d{1,6}(?:→|\t|[:-](?=\s*[^\s\d])))+[+-]?[ \t]*"
    r"|[dl-][rwxsStT-]{9}[@+.]? +\d+ \S+ +\S+ +[\d.,KMG]+ +\w+ +\w+ +[\d:]+ "
    r")?(?:[+-]?(?:@@ -.*|(?:---|\+\+\+) (?:[ab]/|/dev/null$)|diff --git .*|index [0-9a-f]{6,}\.\..*"
    r"|(?:new |deleted |old )?(?:file )?mode \d{6}$)"
    r"|Chunk ID: [0-9a-f]+$|Wall time: [\d.]+ seconds$|Original token count: \d+$|Total output lines: \d+$)?",
    re.MULTILINE,
)
_ENVELOPE = re.compile(  # ids, states and counts that clients put around the results of tools
    r"^<([\w-]+)>[^<>\s]{0,80}</\1>$|^(?:</?usage>)?(?:total_tokens|tool_uses|duration_ms|agentId|output_file)\b[^\n]*$",
    re.MULTILINE,
)
PREFIX = re.compile(r"^(?:\s*<([\w-]+)>.*?</\1>)+\s*", re.DOTALL)
_TYPED = re.compile(r"<command-(?:name|args)>([^<]*)")
_COMMAND_TAGS, _RESULT_TAG = ("<command-name>", "<command-message>"), "<local-command-std"  # of Claude Code
_JSON_FIELD = re.compile(  # where a field begins that is not the first text of its list
    r'[\]}]{0,9}(?:, ?|(?<=: )\{|(?<=[\[{]))[\[{]{0,9}(?="[^"\n]{1,80}" ?:)'
)
_JSON_RECORD = re.compile(  # with the names that it stands under: its fields tell what each other is of
    rf'((?:"[^"\n]{{1,80}}" ?: ?[\[{{]{{0,2}}){{0,2}}\{{"[^{{}}\[\]\n]{{1,{LINE_CHARS}}}\}})(?= ?[,\]}}]|\s*$)'
)
_JSON_OPENS = re.compile(r'[\[{]+(?=")')
_JSON_TEXT = re.compile(r'"(?:([^"\\\n,{}\[\]]{1,80})"|(?:[^"\\\n]|\\.)*")')  # a short one, or any
_COLOURED = re.compile(r"\x1b?\[\d[\d;]*m")
_MOVES = re.compile(r"^(?:cd [^&;|\n]+(?:&&|;|\n)\s*)+")
_FILTERS = re.compile(  # at the end of a command: how much of what it prints is shown
    r"(?:\s*(?:(?:\|\s*(?:head|tail|grep)|[;&|]+\s*echo)\b(?:\"[^\"\n]*\"|'[^'\n]*'|[^|;&\n\"'])*|2>(?:&1|/dev/null)))+$"
)
_LINES = re.compile(r"(?<![&|;\\{(])\s*\n\s*")  # of a script, each a command
_VARIABLES = re.compile(  # in front of a program
    r"^(?:(?:[A-Za-z_]\w*=(?:\$\([^)]*\)|\"[^\"]*\"|'[^']*'|\S*)|sudo|env)\s+)+"
)
_PARTS = re.compile(r"&&|\|\|?|;")  # between parts of a command, which run one after another
_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")
_REDIRECTED = re.compile(r"\d?(?:>>?|<<?-?)(?:&\d|\s*[\w./'\"-]+)")
_STARTS = re.compile(
    r"^(?:(?:uv|poetry|pdm) run |npx |timeout [\d.]+[smh]? |(?:\S*/)?python[\d.]* -m )+"
)  # another program
_EVERYTHING = re.compile(r"(?:(?:^|/)\.{1,3})+$|/+$")  # at the end of a path, or all of it
_RUNS_LESS = re.compile(  # than its words say, or nothing
    r"(?<!\S)--(?:ignore(?:-glob)?|deselect|dry-run|collect-only|no-run)(?![\w-])|\bmake\b[^;&|]* -n\b"
)
_WHOLE_GIT = frozenset({"push", "pull", "fetch", "commit"})  # whatever follows: nobody pushes a part
_BY_NAME = frozenset({"install", "i", "add", "get"})  # what is installed, of which the rest is no part
_ONCE = re.compile(  # what nobody types again; nor what was fed to a command, which is not told
    r"(?:mkdir|rm|cp|mv|chmod|chown|touch|ln|sleep|kill|pkill|true|git (?:add|mv|rm|restore|reset))\b"
    r"|.*(?:<<-?\s*\S+$|--help\b|--version\b)|\w+ -c\b"
)
_LASTING = re.compile(  # what a command leaves behind, and a later one needs to know of
    r"\b(?:pip3? install|uv (?:add|pip install)|npm (?:i|install|add)\b|pnpm add|yarn add|apt(?:-get)? install"
    r"|brew install|cargo add|go get|gem install|docker (?:run|compose)|kubectl apply|export [A-Z]"
    r"|git (?:checkout|switch|branch (?!-)|commit|tag|push|merge|rebase|stash)\b(?!-))"
)


@frozen
class LostMessage:
    """A message that was lost, as it is stored: what it says, and one line for each call."""

    occurrence: int
    role: str
    text: str


@frozen
class CallOutcome:
    """One call, in which message it stands, and what came back."""

    call: Call
    at: int
    result_at: int = -1
    outcome: str = ""
    is_failure: bool = False


def account(lost: Sequence[LostMessage], seen: Sequence[str], chars: int) -> Account:
    """
    Write the account of what was lost, in at most so many characters, rules included.

    Args:
        lost: in the order in which it was said.
        seen: texts that the model still sees: no name of them is told.
    """
    texts, done = sorted_calls(lost)
    runs = runs_of(done)
    failed = open_failures(runs, texts, done)
    visible = "\n".join(seen)
    holding = rules(texts_of_user(lost, texts), visible)
    texts = _without_solved(texts, done, [one for _, one in failed])
    room = chars - sum(line.chars for line in holding)
    plans = any(call.act is Act.PLANNED for text in seen for call in calls_of(text)[1])
    from palimpsest.core.work.removals import with_removals  # a server that sees no compaction needs none

    changing = with_removals(done)
    acts = [*_acts(changing, runs, failed, texts, visible, plans)]
    seen_or_told = "\n".join((visible, *(line.text for line in acts))).lower()
    acts = [*_fitting((*acts, *_settled(texts, seen_or_told)), room)]
    room -= sum(line.chars for line in acts)
    heads = heads_of(done, texts)
    full = [one.text for one in texts]
    stood = [placed(text) for text in full]
    mentions = name_mentions(texts, stood, heads, names_seen := names(visible))
    known, changed = words(seen), changed_files(changing)
    found = {name: need(name, mentions[name], len(texts), known, changed) for name in mentions.keys() - names_seen}
    likeliest = sorted(found, key=lambda name: (-found[name] / (len(name) + NAME_CHARS), name))
    unseen = (name for name in likeliest if name not in visible)  # nor as a part of a longer name
    needs = {name: found[name] for name in islice(unseen, WANTED_NAMES)}
    told = "\n".join(line.text for line in (*acts, *holding))
    ran = (one.call.what for one in done if one.call.act is Act.RAN and not only_looks(one.call.what))
    commands = {line.strip() for command in ran for line in command.splitlines()}
    typed = {at for at, text in enumerate(texts) if _speaker(text) == "user"}
    against = {name for at in typed for said in rejected(full[at]) for name in names(said)}
    taken_back = {name: at for at in sorted(typed) for said in replaced(full[at]) for name in names(said)}
    offers = offered(full, stood, needs.keys(), heads, commands, typed)
    offers = [one for one in offers if (_holds(one, taken_back) if one.at in typed else against.isdisjoint(one.held))]
    room -= sum(len(label) + LABEL_CHARS for label in {PATHS, *map(_speaker, texts)})
    taken = choose_excerpts(offers, needs, {name: 1.0 for name in needs if name in told}, room, HEAD_CHARS)
    return Account((*acts, *_excerpt_lines(taken, texts, changed)), holding)


def _holds(excerpt: Excerpt, taken_back: Mapping[str, int]) -> bool:
    """Whether the user does not take back what a sentence of his names; in which message he does, by name."""
    return negates(excerpt.text) or not any(taken_back.get(name, -1) >= excerpt.at for name in excerpt.held)


def _without_solved(
    texts: Sequence[LostText], done: Sequence[CallOutcome], still_open: Sequence[CallOutcome]
) -> list[LostText]:
    """The messages without what failed runs printed that are no longer open: told, their errors would seem to be."""
    solved = {one.result_at for one in done if one.is_failure} - {one.result_at for one in still_open}
    return [replace(text, prose="") if at in solved else text for at, text in enumerate(texts)]


def changed_files(done: Sequence[CallOutcome]) -> frozenset[str]:
    """The files that were created or edited, and not deleted later."""
    newest = {one.call.what: one.call.act for one in done if one.call.act is not Act.READ}
    return frozenset(path for path, act in newest.items() if act in (Act.CREATED, Act.EDITED))


def heads_of(done: Sequence[CallOutcome], texts: Sequence[LostText]) -> list[str]:
    """The file that a tool looked at or changed in each message, "" for all others."""
    heads = [""] * len(texts)
    for one in done:
        if one.call.act in FILE_ACTS and 0 < len(one.call.what) <= PATH_CHARS:
            heads[one.result_at if one.result_at >= 0 else one.at] = one.call.what
            if not texts[one.at].prose:
                heads[one.at] = one.call.what
    return heads


def sorted_calls(lost: Sequence[LostMessage]) -> tuple[list[LostText], list[CallOutcome]]:
    """The messages with their calls taken out, and those calls with their outcomes."""
    texts: list[LostText] = []
    done: list[CallOutcome] = []
    waiting: list[int] = []  # calls whose results are to come, as places in `done`
    for at, message in enumerate(lost):
        if message.role == "user" and (run := run_by_user(message.text)):
            texts.append(LostText(message.occurrence, TOOL_ROLES[0], _without_markup(run[1]), run[0].text))
            done.append(_finished(CallOutcome(run[0], at), at, run[1]))
            continue
        if message.role not in TOOL_ROLES:
            prose, calls = calls_of(message.text) if message.role == "assistant" else (_typed(message.text), ())
            called = "\n".join(call.text for call in calls)
            role = CLIENT if command_of(lost, at) else message.role
            texts.append(LostText(message.occurrence, role, _without_markup(prose), _without_markup(called)))
            if message.role == "assistant":
                done += [CallOutcome(edit, at) for edit in written_edits(prose)]
            waiting = [len(done) + place for place in range(len(calls))]
            done += [CallOutcome(call, at) for call in calls]
            continue
        place = waiting.pop(0) if waiting else None
        if is_refusal(message.text):
            texts.append(LostText(message.occurrence, message.role, ""))
            continue
        result = printed(message.text)
        change = changed_by(result)
        told = result.partition("\n")[2] if change else result
        texts.append(LostText(message.occurrence, message.role, _without_markup(_lines_of_json(told))))
        if place is not None:
            one = done[place]
            if not one.call.what and change:
                one = CallOutcome(replace(change, text=one.call.text), one.at)
            done[place] = _finished(one, at, result)
    return texts, done


def texts_of_user(lost: Sequence[LostMessage], texts: Sequence[LostText]) -> Iterator[tuple[int, str]]:
    """Occurrence and text of each message of the user, as it is stored; `texts` are those of `sorted_calls`."""
    return ((one.occurrence, one.text) for one, text in zip(lost, texts, strict=True) if text.role == "user")


def _typed(text: str) -> str:
    """A user's message without what a client put in front of it between tags; all of it where nothing follows."""
    text = untagged_words(text)
    return PREFIX.sub("", text) or text


def command_of(lost: Sequence[LostMessage], at: int) -> str:
    """What was typed of a client's command whose text this user's message is, as "/review 150"; "" where it is none."""
    named_in = next((back for back in (at, at - 1) if back >= 0 and lost[back].text.startswith(_COMMAND_TAGS)), None)
    if lost[at].role != "user" or named_in is None or _RESULT_TAG in (named := lost[named_in].text):
        return ""
    behind = PREFIX.sub("", named)
    is_text = bool(behind) if named_in == at else not behind and not lost[at].text.startswith("<")
    return " ".join(" ".join(_TYPED.findall(named)).split()) if is_text else ""


def _finished(one: CallOutcome, at: int, result: str) -> CallOutcome:
    """A call with what came back in message `at`."""
    outcome, is_failure = outcome_of(result, one.call.what) if one.call.act is Act.RAN else ("", False)
    return CallOutcome(one.call, one.at, at, outcome, is_failure)


def _acts(
    done: Sequence[CallOutcome],
    runs: Mapping[str, CallOutcome],
    failed: Sequence[tuple[str, CallOutcome]],
    texts: Sequence[LostText],
    visible: str,
    shows_plan: bool,
) -> Iterator[AccountLine]:
    """Lines on what was done, open things first, without what the model still sees or a newer plan replaced."""

    def line(label: str, text: str, of: Iterable[CallOutcome]) -> AccountLine:
        places = dict.fromkeys(at for one in of for at in (one.at, one.result_at) if at >= 0)
        return AccountLine(label, text, tuple(texts[at].occurrence for at in places))

    plan = next((one for one in reversed(done) if one.call.act is Act.PLANNED), None)
    if plan is not None and plan.call.what and not shows_plan:
        yield line("plan", plan.call.what, [plan])
    for command, one in [*reversed(failed)][:FAILURES]:
        if command not in visible:
            yield line("failed", f"{command}: {one.outcome}", [one])
    changed: dict[str, tuple[Act | None, list[CallOutcome]]] = {}
    for one in done:
        if one.call.act in (Act.EDITED, Act.CREATED, Act.DELETED) and one.call.what:
            act, before = changed.pop(one.call.what, (None, []))
            if act is Act.CREATED and one.call.act is Act.DELETED:  # it is as if it had never been
                continue
            if one.call.act is Act.DELETED:
                act, before = Act.DELETED, []
            elif act is Act.DELETED:  # what was deleted and made again was there before
                act, before = Act.EDITED, []
            changed[one.call.what] = act or one.call.act, [*before, one]  # the newest stands last
    for act in (Act.DELETED, Act.CREATED, Act.EDITED):
        files = [(path, each) for path, (how, each) in reversed(changed.items()) if how is act]
        files = [(path, each) for path, each in files if path not in visible][:FILES]
        if files:
            root = _root([path for path, _ in files])
            told = ", ".join(
                f"{path[len(root) :]} {len(each)}x" if len(each) > 1 else path[len(root) :] for path, each in files
            )
            told = f"in {root} {told}" if root else told
            yield line(act.value, shortened(told, FILES_CHARS), [each[-1] for _, each in files])
    is_open = {command for command, _ in failed}
    kept = [
        (c, one) for c, one in reversed([*runs.items()]) if c not in is_open and c not in visible and not one.is_failure
    ]
    lasting = [run for run in kept if is_lasting(run[0])][:RUNS]
    lasting += [run for run in kept if run not in lasting and _is_typed_again(run[0])][:PASSED]
    if lasting:
        told = "; ".join(f"{command} → {one.outcome}" if one.outcome else command for command, one in lasting)
        yield line("ran", told, [one for _, one in lasting])
    ran = {
        at: one
        for one in done
        for at in (one.at, one.result_at)
        if one.call.act is Act.RAN and at >= 0 and not one.is_failure  # nothing listens where it failed to connect
    }
    said = [(at, text) for at, text in enumerate(texts) if at in ran or text.role == "user"]
    if (current := branch(text.called or text.prose for at, text in said if at in ran)) and current not in visible:
        yield line("branch", current, [one for at, one in ran.items() if current in texts[at].text][-1:])
    if local := addresses((text.text if at in ran else of_here(text.text) for at, text in said), visible):
        yield line("local", "; ".join(local), [one for at, one in ran.items() if local[0] in texts[at].text][-1:])


def _settled(texts: Sequence[LostText], seen: str) -> Iterator[AccountLine]:
    """
    The newest decisions and values that were stated, without those in `seen`, which is in lower case.

    Where they are too many, what names something stands before what does not.
    """

    def newest(found: Iterable[tuple[str, int]], most: int, chars: int) -> Iterator[tuple[str, int]]:
        named: dict[str, int] = {}
        alike: Counter[str] = Counter()
        brief = ((shortened(" ".join(one.split()), chars), at) for one, at in found)
        for short, at in islice((one for one in brief if one[0].lower() not in seen), LOOKED_AT):
            if not any(short in other or other in short for other in named):
                alike[form := DIGITS.sub("0", short)] += 1
                if alike[form] <= ALIKE:
                    named[short] = at
        told = sorted(named, key=names_something, reverse=True)[:most]
        return ((one, texts[at].occurrence) for one, at in named.items() if one in told)

    def newest_first(found: Callable[[LostText], list[str]]) -> Iterator[tuple[str, int]]:
        return ((one, at) for at in reversed(range(len(texts))) for one in reversed(found(texts[at])))

    corrections = [
        (at, numbers)
        for at, text in enumerate(texts)
        if text.role == "user"
        for one in SENTENCE.findall(without_printed(text))
        if negates(one) and not one.rstrip().endswith("?") and (numbers := numbers_of(one)).beside
    ][-CORRECTIONS:]
    valued = ((one, at) for one, at in newest_first(values) if not _is_corrected(one, at, corrections))
    for label, found, most, chars in (
        (DECIDED, newest_first(decisions), DECISIONS, DECISION_CHARS),
        ("values", valued, VALUES, VALUE_CHARS),
    ):
        if told := [*newest(found, most, chars)][::-1]:
            yield AccountLine(label, JOINT.join(one for one, _ in told), tuple(dict.fromkeys(at for _, at in told)))


def _is_corrected(said: str, at: int, corrections: Sequence[tuple[int, Numbers]]) -> bool:
    """Whether a user said later that it is another number, as "part size 16 MiB, not 8": message, its numbers."""
    numbers = numbers_of(said)
    return any(place > at and numbers.are_replaced_in(later) for place, later in corrections)


def runs_of(done: Sequence[CallOutcome]) -> dict[str, CallOutcome]:
    """The newest run of each command, by what it says in one line, the newest last."""
    runs: dict[str, CallOutcome] = {}
    for one in done:
        if one.call.act is Act.RAN and one.result_at >= 0:
            command = _short(one.call.what)
            runs.pop(command, None)
            runs[command] = one
    return runs


def open_failures(
    runs: Mapping[str, CallOutcome], texts: Sequence[LostText], done: Sequence[CallOutcome]
) -> list[tuple[str, CallOutcome]]:
    """
    The commands that failed, were meant to pass, and of which nothing passed later that runs all of them, nor was
    anything committed after a change of a file in which their error stands.
    """
    passed = {
        tuple(part): one.at
        for command, one in runs.items()
        if not one.is_failure and not _RUNS_LESS.search(_QUOTED.sub("", command))
        for part in _programs(command)
    }
    return [
        (command, one)
        for command, one in runs.items()
        if one.is_failure
        and not any(
            at > one.at and _runs_all(part, last) for last in _programs(command)[-1:] for part, at in passed.items()
        )
        and not _is_foreseen(one, texts)
        and not _is_committed(one, done)
    ]


def _is_committed(failed: CallOutcome, done: Sequence[CallOutcome]) -> bool:
    """Whether a file in which an error stands was changed since, and something was committed after that."""
    wrong = tuple(f"/{name}" for name in names(failed.outcome) if is_file(name) and f"{name}:" in failed.outcome)
    is_changed = False
    for one in done if wrong else ():
        if one.at > failed.at and not one.is_failure:
            is_changed |= one.call.act in (Act.CREATED, Act.EDITED) and f"/{one.call.what}".endswith(wrong)
            if is_changed and one.call.act is Act.RAN and one.outcome.startswith("[") and _commits(one.call.what):
                return True
    return False


def _commits(command: str) -> bool:
    return any(words[0] == "git" and "commit" in words[1:3] for words in _programs(command))


def is_lasting(command: str) -> bool:
    """Whether a command leaves something behind that a later one needs to know of."""
    return _LASTING.search(command) is not None


def _is_typed_again(command: str) -> bool:
    """Whether a command that passed may be needed once more: told whole, no look, no small change of files."""
    return not only_looks(command) and not _ONCE.match(command) and not command.endswith("…")


def _is_foreseen(one: CallOutcome, texts: Sequence[LostText]) -> bool:
    after = next((text.prose for text in texts[one.result_at :] if text.role == "assistant"), "")
    return is_foreseen(one.call.what, texts[one.at].prose[-SAID_CHARS:], after[:SAID_CHARS])


def _excerpt_lines(taken: Sequence[Excerpt], texts: Sequence[LostText], changed: Set[str]) -> Iterator[AccountLine]:
    """Lines with the excerpts: one for each file, then one for what each role said."""
    groups: dict[tuple[str, str], list[Excerpt]] = {}
    for excerpt in taken:
        is_path = " " not in excerpt.text and is_file(excerpt.text)
        label = "" if excerpt.head else PATHS if is_path else _speaker(texts[excerpt.at])
        groups.setdefault((excerpt.head, label), []).append(excerpt)
    for (head, role), of in sorted(groups.items(), key=lambda group: not group[0][0]):
        said = JOINT.join(excerpt.text for excerpt in of)
        places = dict.fromkeys(excerpt.at for excerpt in of)
        occurrences = tuple(texts[at].occurrence for at in places)
        label = role if not head else CHANGED if head in changed else READ
        yield AccountLine(label, f"{head}: {said}" if head else said, occurrences)


def _speaker(text: LostText) -> str:
    """The label of what a message says: its role, or that a client wrote it in the place of a user."""
    return CLIENT if text.role == "user" and text.prose.lstrip().startswith(("<", "[")) else text.role


def _fitting(lines: Iterable[AccountLine], chars: int) -> Iterator[AccountLine]:
    """Lines in their order while there is room for them."""
    room = chars
    for line in lines:
        if line.chars <= room:
            room -= line.chars
            yield line


def _without_markup(text: str) -> str:
    """A text without what tools and clients put around the lines of files and results, its breaks resolved."""
    if text.count(QUOTED_BREAK) >= QUOTED_BREAKS:
        text = text.replace(QUOTED_BREAK, "\n").replace("\\t", "\t")
    return _ENVELOPE.sub("", _FRAME.sub("", _COLOURED.sub("", text)))


def _lines_of_json(result: str) -> str:
    """A result of a tool; of JSON a line for each field or short record, without quotation marks around short texts."""
    if not result.startswith(("{", "[")):
        return result
    parts = _JSON_RECORD.split(result)  # every second one is a record
    lines = [
        "\n" + _JSON_OPENS.sub("", part[:-1]) + "\n" if at % 2 else _JSON_FIELD.sub("\n", part)
        for at, part in enumerate(parts)
    ]
    return _JSON_TEXT.sub(lambda text: text[1] or text[0], "".join(lines))


def _short(command: str) -> str:
    """A command in one line, without the change of folder in front of it and what it is fed."""
    fed = _HEREDOC.search(command)
    told = _MOVES.sub("", (command[: fed.end()] if fed else command).strip())
    if len(told) <= FILTERED_CHARS:
        told = _LINES.sub("; ", _FILTERS.sub("", told) or told)
    return shortened(told, COMMAND_CHARS)


def _root(paths: Sequence[str]) -> str:
    """The folder that several files share, with its last sign; "" where that saves little."""
    root = commonprefix(paths)
    root = root[: root.rfind("/") + 1]
    return root if len(paths) > 1 and len(root) >= ROOT_CHARS else ""


def _programs(command: str) -> list[list[str]]:
    """What each part of a command runs, if that does something: its words but variables, options and their numbers."""
    programs = []
    for part in _PARTS.split(_QUOTED.sub("", _REDIRECTED.sub("", command))):
        plain = _VARIABLES.sub("", part.strip())
        said = _STARTS.sub("", plain).split()
        words = [
            _EVERYTHING.sub("", word)
            for before, word in zip(["", *said], said, strict=False)
            if not (word.startswith("-") or (word.isdigit() and before.startswith("-")))
        ]
        if words and not only_looks(plain):
            words = [words[0].rpartition("/")[2], *filter(None, words[1:])]
            programs.append(words[:2] if words[0] == "git" and not _WHOLE_GIT.isdisjoint(words[1:2]) else words)
    return programs or [[command]]


def _runs_all(passed: Sequence[str], failed: Sequence[str]) -> bool:
    """Whether a command ran all of another one: the same, a folder around it, or fewer words that name no file."""
    if passed[0] == "make" or [*passed[:2]] == ["git", "stash"] or not _BY_NAME.isdisjoint(passed[1:3]):
        return [*passed] == [*failed]
    is_around = all(
        old == new or old.startswith((f"{new}/", f"{new}:")) for new, old in zip(passed, failed, strict=False)
    )
    names_files = any("/" in word or is_file(word) for word in passed[1:])
    return is_around and (len(passed) == len(failed) or (len(passed) < len(failed) and not names_files))
