r"""
Benchmark: months of a person's sessions with chat applications and agents, through the running proxy.

Each life is a text file in order of time. A line `== STYLE[:FOLDER] DATE` begins a session of a new conversation, which
remembers nothing of the others by itself. Behind it stand turns: `U:` what the user says, `N:` what an answer needs of
earlier sessions or of what was compacted (words, divided by ` ; `), `T:` a tool call with its JSON and, behind `=>`,
its result, `A:` the answer; `!compact` and a text: the client replaces the session so far by this summary. `\n` is a
new line. A need is met where all its words reach the model.

Beside it stand the newest texts that are not visible, and what BM25 finds of them, in each request. Each turn waits
until the one before it is indexed, as if a person typed it. All sessions have the date of the run.
"""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from palimpsest.domain import Json, ToolCall
from palimpsest.evaluation import running
from palimpsest.evaluation.bench_implied import BASELINE_CHARS, CHARS_A_TOKEN, OURS, by_bm25, newest
from palimpsest.evaluation.datasets import DatasetError
from palimpsest.evaluation.report import Report, Table, progress
from palimpsest.evaluation.running import RunningProxy
from palimpsest.evaluation.scripted import Reply

MODEL = "gpt-4o"  # that requests ask for: its window is large
REACH = {"PALIMPSEST_MEMORY__REACH": "tenant"}  # as `personal` has it: all conversations are one person's
SUMMARY = "This session is continued from an earlier one, which is summarized below:\n{text}"
SYSTEM = {  # by whether tools are used: what a client says of itself, which is not under test
    False: "You are a helpful assistant.",
    True: "You are an agent with tools.\nWorking directory: /home/me/{folder}",
}


@dataclass(slots=True)
class Turn:
    """What a user says, what its answer needs, the tool calls before it (name, arguments, result), and the answer."""

    user: str
    needs: tuple[str, ...] = ()
    tools: list[tuple[str, str, str]] = field(default_factory=list)
    answer: str = "Done."

    def replies(self, name: str) -> Iterator[Reply]:
        """What the model answers to the user and to each result; `name` makes the ids of calls its own."""
        for at, (tool, arguments, _) in enumerate(self.tools):
            yield Reply(calls=(ToolCall(f"call-{name}-{at}", tool, arguments),))
        yield Reply(self.answer)


@dataclass(frozen=True, slots=True)
class Session:
    """One conversation. A text among the turns is the summary that replaces what stands before it."""

    folder: str
    turns: list[Turn | str]


@dataclass(slots=True)
class Score:
    """What one system told in a life."""

    met: int = 0  # needs
    idle_told: int = 0  # turns that need nothing, in which something new was told
    chars: int = 0  # that were new


@dataclass(slots=True)
class Life:
    """The scores of one file, by system, and the needs that ours did not meet: request, words."""

    name: str
    scores: Mapping[str, Score]
    turns: int = 0
    needed: int = 0
    missed: list[tuple[str, str]] = field(default_factory=list)

    @property
    def idle(self) -> int:
        """Turns that need nothing."""
        return self.turns - self.needed

    def judge(self, turn: Turn, visible: Mapping[str, str], told: Mapping[str, str]) -> None:
        """Count a turn: what is visible to the model with each system, and what that has newly told."""
        self.turns += 1
        self.needed += bool(turn.needs)
        for system, score in self.scores.items():
            score.chars += len(told[system])
            score.idle_told += bool(told[system]) and not turn.needs
            is_met = all(words.lower() in visible[system].lower() for words in turn.needs)
            score.met += is_met and bool(turn.needs)
            if system == OURS and not is_met:
                self.missed.append((turn.user, "; ".join(turn.needs)))


def add_arguments(parser: ArgumentParser) -> None:
    """Add the flags of this benchmark."""
    parser.add_argument("--chars", type=int, default=BASELINE_CHARS, metavar="N", help="of a baseline's text")
    parser.add_argument("--show", action="store_true", help="list the needs that were missed")


async def run(given: Namespace) -> Report:
    """Run the benchmark on the files that the arguments name, and report it."""
    lives = []
    for path in given.data:
        sessions = read_sessions(path)[: given.limit or None]
        async with running.opened(MODEL, REACH) as proxy:
            lives.append(await live(proxy, path.stem, sessions, given.chars))
    return report(lives, given.show)


def read_sessions(path: Path) -> list[Session]:
    """
    The sessions of a file.

    Raises:
        DatasetError: it holds something else.
    """
    sessions: list[Session] = []
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, ValueError) as cause:
        raise DatasetError(f"reading {path}: {cause}") from cause
    for number, line in enumerate(lines, start=1):
        try:
            if line.strip():
                _read_line(sessions, line)
        except (ValueError, IndexError) as cause:
            text = f"reading {path}, line {number}: {cause}; expected a session's head, and turns behind it"
            raise DatasetError(text) from cause
    return sessions


def _read_line(sessions: list[Session], line: str) -> None:
    """Add what one line says to the sessions so far."""
    kind, _, said = line.partition(" ")
    said = said.replace("\\n", "\n").strip()
    if kind == "==":
        sessions.append(Session(said.split()[0].partition(":")[2], []))
        return
    turns = sessions[-1].turns
    newest_turn = turns[-1] if turns and isinstance(turns[-1], Turn) else None
    if kind == "U:":
        turns.append(Turn(said))
    elif kind == "!compact":
        turns.append(said)
    elif newest_turn is None:
        raise ValueError("no user's message stands before this line")
    elif kind == "N:":
        newest_turn.needs = tuple(words.strip() for words in said.split(" ; "))
    elif kind == "A:":
        newest_turn.answer = said
    elif kind == "T:":
        name, _, rest = line.partition(" ")[2].partition(" ")
        _, stop = json.JSONDecoder().raw_decode(rest)
        result = rest[stop:].removeprefix(" =>").strip().replace("\\n", "\n")
        newest_turn.tools.append((name, rest[:stop], result))
    else:
        raise ValueError(f"unknown kind of line {kind!r}")


async def live(proxy: RunningProxy, name: str, sessions: Sequence[Session], chars: int) -> Life:
    """Send all sessions turn by turn, and judge what reached the model at the user's words."""
    life = Life(name, {system: Score() for system in (OURS, "newest", "bm25")})
    said: list[str] = []  # in all sessions
    with progress() as bar:
        for number, session in enumerate(bar.track(sessions, description=name)):
            messages: list[Json] = []
            named = {"authorization": "Bearer sk-life", "x_palimpsest_conversation": f"{name}-{number}"}
            start = [{"role": "system", "content": SYSTEM[bool(session.folder)].format(folder=session.folder)}]
            for turn in session.turns:
                if isinstance(turn, str):
                    messages = [{"role": "user", "content": SUMMARY.format(text=turn)}]
                    continue
                messages.append({"role": "user", "content": turn.user})
                own = "\n".join(map(_text, messages))
                unseen = [text for text in said if text not in own]
                first, *others = turn.replies(f"{number}-{len(messages)}")
                got = await proxy.send([*start, *messages], first, **named)
                told = {OURS: str(got.messages[-1]["content"])[len(turn.user) :], "newest": newest(unseen, chars)}
                told["bm25"] = by_bm25(unseen, turn.user, chars)
                visible = {OURS: own + got.added}  # with the blocks of before, as the model sees them
                life.judge(turn, {system: visible.get(system, own + text) for system, text in told.items()}, told)
                asked = first
                for (_, _, result), reply in zip(turn.tools, others, strict=True):
                    messages += [_called(asked.calls[0]), _returned(asked.calls[0], result)]
                    await proxy.send([*start, *messages], reply, **named)
                    asked = reply
                messages.append({"role": "assistant", "content": turn.answer})
                said += [turn.user, *(result for *_, result in turn.tools), turn.answer]
                await proxy.indexed()
    return life


def report(lives: Sequence[Life], show: bool) -> Report:
    """A table of all systems in each life."""
    rows: list[list[str | float | int | None]] = [
        [
            *(life.name, system, f"{one.met} of {life.needed}", one.met / max(life.needed, 1)),
            *(round(one.chars / CHARS_A_TOKEN / max(life.turns, 1), 1), f"{one.idle_told} of {life.idle}"),
        ]
        for life in lives
        for system, one in life.scores.items()
    ]
    columns = ("life", "system", "needs met", "share", "tokens a turn", "idle turns told")
    tables = [Table(f"needs of {len(lives)} lives", columns, rows)]
    if show:
        missed = [[life.name, *one] for life in lives for one in life.missed]
        tables.append(Table("missed", ("life", "request", "words"), missed))
    data: dict[str, Any] = {
        life.name: {
            **{"turns": life.turns, "needed": life.needed, "idle": life.idle, "missed": life.missed},
            "systems": {
                system: {"met": one.met, "idle_told": one.idle_told, "chars": one.chars}
                for system, one in life.scores.items()
            },
        }
        for life in lives
    }
    return Report("lives: what months of one person's work need of each other", data, tables)


def _text(message: Json) -> str:
    """What a message says or calls."""
    calls = (call["function"]["arguments"] for call in message.get("tool_calls", ()))
    return "\n".join((message["content"] or "", *calls))


def _called(call: ToolCall) -> Json:
    function = {"name": call.name, "arguments": call.arguments}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": call.id, "type": "function", "function": function}],
    }


def _returned(call: ToolCall, result: str) -> Json:
    return {"role": "tool", "tool_call_id": call.id, "content": result}
