"""
Benchmark: requests that need what was said before without asking for it, through the running proxy.

"Can I take ibuprofen?" needs the weak kidneys that were told of an hour ago.

The client of a chat keeps its last messages (*window*), or replaces all but the last exchange by a line of summary,
once, before the first such request (*summary*). A request names the words that must reach the model; those that
the client itself still sends do not count. Other turns need nothing: a block in their newest message is *idle*. Between
turns the index is waited for, as a person's pace would.

Beside it stand the newest text that was lost, and what BM25 finds of it by the words of the request, in each request.
"""

from __future__ import annotations

import re
from argparse import ArgumentParser, Namespace
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from rank_bm25 import BM25Okapi  # type: ignore[import-untyped]

from palimpsest.domain import BLOCK_OPEN, Json
from palimpsest.evaluation import running
from palimpsest.evaluation.datasets import DatasetError, read
from palimpsest.evaluation.report import Report, Table, progress
from palimpsest.evaluation.running import RunningProxy

OURS = "palimpsest"
MODEL = "gpt-4o"  # that requests ask for: its window is large
MOMENTS = ("window", "summary")
WINDOW_MESSAGES = 5  # that a client keeps
BASELINE_CHARS = 1_000  # of a baseline's text: 250 tokens
CHARS_A_TOKEN = 4  # of a baseline's text
FILL_TURNS = 15  # an hour of talk
FILL_CHARS = 200  # of a question in it
SUMMARY = "(Summary of the conversation so far: we spoke about {name}. Details were left out.)"


@dataclass(frozen=True, slots=True)
class Turn:
    """What a person says and the assistant answers. `needs`: words that the answer needs; None: nobody judges."""

    user: str
    assistant: str
    needs: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class Chat:
    """One chat, with the language that it is in and what its needs are about."""

    name: str
    language: str
    kind: str
    system: str
    turns: tuple[Turn, ...]


@dataclass(slots=True)
class Score:
    """What one system reached at one moment."""

    needed: int = 0
    reached: int = 0
    idle: int = 0  # turns that need nothing
    idle_told: int = 0  # ... in which something was told
    turns: int = 0
    tokens: float = 0.0
    missed: list[tuple[str, str, str]] = field(default_factory=list)  # chat, request, words
    by_language: dict[str, list[bool]] = field(default_factory=lambda: defaultdict(list))
    by_kind: dict[str, list[bool]] = field(default_factory=lambda: defaultdict(list))


def add_arguments(parser: ArgumentParser) -> None:
    """Add the flags of this benchmark."""
    parser.add_argument("--chars", type=int, default=BASELINE_CHARS, metavar="N", help="of a baseline's text")
    parser.add_argument("--fill", type=Path, metavar="DATA", help="a data set whose talk passes before the first need")
    parser.add_argument("--fill-turns", type=int, default=FILL_TURNS, metavar="N", help="of it, in each chat")
    parser.add_argument("--show", action="store_true", help="list the needs that were missed")


async def run(given: Namespace) -> Report:
    """Run the benchmark on the data that the arguments name, and report it."""
    chats = [chat for path in given.data for chat in read_chats(path)][: given.limit or None]
    if given.fill:
        talk = exchanges(given.fill)
        chats = [filled(chat, talk, at * given.fill_turns, given.fill_turns) for at, chat in enumerate(chats)]
    scores: dict[str, dict[str, Score]] = {moment: defaultdict(Score) for moment in MOMENTS}
    async with running.opened(MODEL) as proxy:
        for moment in MOMENTS:
            with progress() as bar:
                for chat in bar.track(chats, description=moment):
                    await play(proxy, chat, moment, scores[moment], given.chars)
    return report(scores, len(chats), given.show)


def read_chats(path: Path) -> list[Chat]:
    """
    The chats of a file: {NAME: {"system", "turns": [{"user", "assistant", "needs": [words]}]}}.

    Raises:
        DatasetError: it holds something else.
    """
    try:
        return [
            Chat(
                name,
                chat.get("language", "en"),
                chat.get("kind", ""),
                chat["system"],
                tuple(
                    Turn(turn["user"], turn["assistant"], tuple(turn["needs"]) if "needs" in turn else None)
                    for turn in chat["turns"]
                ),
            )
            for name, chat in orjson.loads(path.read_bytes()).items()
        ]
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as cause:
        raise DatasetError(f"reading {path}: {cause!r}; expected chats by name, each with system and turns") from cause


def exchanges(path: Path) -> list[Turn]:
    """Short questions of people with their answers, from a data set."""
    found = []
    for conversation in read(path):
        for asked, answered in pairwise(conversation.messages):
            is_exchange = (asked.role, answered.role) == ("user", "assistant") and answered.text.strip()
            if is_exchange and 0 < len(asked.text.strip()) <= FILL_CHARS:
                found.append(Turn(asked.text, answered.text[: 2 * FILL_CHARS], None))
    return found


def filled(chat: Chat, talk: Sequence[Turn], start: int, count: int) -> Chat:
    """A chat with other talk before its first need."""
    first = next((at for at, turn in enumerate(chat.turns) if turn.needs is not None), len(chat.turns))
    other = tuple(talk[at % len(talk)] for at in range(start, start + count))
    return replace(chat, turns=(*chat.turns[:first], *other, *chat.turns[first:]))


async def play(proxy: RunningProxy, chat: Chat, moment: str, scores: Mapping[str, Score], chars: int) -> None:
    """Send a chat turn by turn, and judge what reached the model."""
    history: list[Json] = []
    said: list[str] = []
    first = next((at for at, turn in enumerate(chat.turns) if turn.needs is not None), -1)
    for at, turn in enumerate(chat.turns):
        history.append({"role": "user", "content": turn.user})
        if moment == "summary" and at == first:
            history = [*_summary(chat.name), *history[-3:]]
        kept = window(history) if moment == "window" else history
        sent: list[Json] = [{"role": "system", "content": chat.system}, *kept]
        got = await proxy.send(sent, turn.assistant, authorization=f"Bearer sk-{moment}-{_ascii(chat.name)}")
        own = "\n".join(one["content"] for one in kept)
        is_told = BLOCK_OPEN in str(got.messages[-1]["content"])
        _judge(scores[OURS], chat, turn, own, got.added, is_told, got.added_tokens)
        lost = [text for text in said if text not in own]
        for name, told in (("newest", newest(lost, chars)), ("bm25", by_bm25(lost, turn.user, chars))):
            _judge(scores[name], chat, turn, own, told, bool(told), len(told) / CHARS_A_TOKEN)
        history.append({"role": "assistant", "content": turn.assistant})
        said += [turn.user, turn.assistant]
        await proxy.indexed()


def window(history: Sequence[Json]) -> list[Json]:
    """The last messages, from a user's on."""
    kept = list(history[-WINDOW_MESSAGES:])
    while kept[0]["role"] != "user":
        kept = kept[1:]
    return kept


def newest(lost: Sequence[str], chars: int) -> str:
    """The newest text that was lost."""
    return _filled(lost[::-1], chars)


def by_bm25(lost: Sequence[str], query: str, chars: int) -> str:
    """What was lost and shares words with a request, the best first."""
    if not lost:
        return ""
    words = [re.findall(r"\w+", text.lower()) or ["-"] for text in lost]
    asked = re.findall(r"\w+", query.lower())
    scores = BM25Okapi(words).get_scores(asked)
    order = np.argsort(-scores, kind="stable")
    return _filled([lost[at] for at in order if set(words[at]) & set(asked)], chars)


def report(scores: Mapping[str, Mapping[str, Score]], chats: int, show: bool) -> Report:
    """A table of all systems, and of ours by language and by what was needed."""
    rows: list[list[str | float | int | None]] = [
        [
            *(moment, name, f"{one.reached} of {one.needed}", one.reached / max(one.needed, 1)),
            *(round(one.tokens / max(one.turns, 1), 1), f"{one.idle_told} of {one.idle}"),
        ]
        for moment, of in scores.items()
        for name, one in of.items()
    ]
    columns = ("moment", "system", "needs reached", "share", "tokens a turn", "idle turns told")
    tables = [Table(f"needs that nobody asks for, {chats} chats", columns, rows)]
    for title in ("language", "kind"):
        by = {moment: getattr(of[OURS], f"by_{title}") for moment, of in scores.items()}
        names = sorted({name for of in by.values() for name in of if name})
        shares = [[name, *(_share(of.get(name, ())) for of in by.values())] for name in names]
        tables.append(Table(f"reached by {title}", (title, *by), shares))
    if show:
        missed = [[moment, *one] for moment, of in scores.items() for one in of[OURS].missed]
        tables.append(Table("missed", ("moment", "chat", "request", "words"), missed))
    data: dict[str, Any] = {
        moment: {
            name: {
                "needed": one.needed,
                "reached": one.reached,
                "tokens_a_turn": one.tokens / max(one.turns, 1),
                "idle": one.idle,
                "idle_told": one.idle_told,
                "missed": one.missed,
            }
            for name, one in of.items()
        }
        for moment, of in scores.items()
    }
    return Report("implied: needs that nobody asks for", {"chats": chats, "moments": data}, tables)


def _summary(name: str) -> list[Json]:
    return [{"role": "user", "content": SUMMARY.format(name=name)}, {"role": "assistant", "content": "Understood."}]


def _judge(score: Score, chat: Chat, turn: Turn, own: str, told: str, is_told: bool, tokens: float) -> None:
    score.turns += 1
    score.tokens += tokens
    if turn.needs == ():
        score.idle += 1
        score.idle_told += is_told
    for words in turn.needs or ():
        if words not in own:
            is_there = words in told
            score.needed += 1
            score.reached += is_there
            score.by_language[chat.language].append(is_there)
            score.by_kind[chat.kind].append(is_there)
            if not is_there:
                score.missed.append((chat.name, turn.user, words))


def _filled(texts: Sequence[str], chars: int) -> str:
    taken: list[str] = []
    for text in texts:
        if len(text) + 1 > chars:
            break
        taken.append(text)
        chars -= len(text) + 1
    return "\n".join(taken)


def _share(reached: Sequence[bool]) -> float | None:
    return sum(reached) / len(reached) if reached else None


def _ascii(name: str) -> str:
    """A name as a header takes it."""
    return name.encode("ascii", "backslashreplace").decode().replace(" ", "-")
