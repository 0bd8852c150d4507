"""
Benchmark: conversations that grow far beyond the model's window, through the running proxy with `overflow: trim`.

A client that sends all of its history with each request, and a provider that refuses whatever is longer than its window
or breaks a rule of the wire. The window is told by nobody: the first refusal names it. In the end all questions are
asked whose evidence stands in the first third of a conversation, each behind the whole of it.

The recorded model saw everything, so that it imitates nothing of a cut. Counted is what can be: how often it makes a
call again whose result a cut has taken away by then, and whether anything that invites imitation, a stub or a call
without arguments, stands among the newest steps.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
import orjson

from palimpsest.domain import Json
from palimpsest.domain.errors import MemoryFault
from palimpsest.evaluation import running
from palimpsest.evaluation.datasets import Conversation, read
from palimpsest.evaluation.report import Report, Table, progress
from palimpsest.evaluation.running import Forwarded, RunningProxy
from palimpsest.evaluation.score import count_evidence
from palimpsest.evaluation.scripted import Reply
from palimpsest.evaluation.scripted.reply import CHARS_PER_TOKEN
from palimpsest.evaluation.scripted.rules import violations
from palimpsest.wire.trimming import NO_ARGUMENTS, STUB

ENDPOINT = "/v1/chat/completions"
MODEL = "local-model"  # in no table: its window has to be learnt
SETTINGS = {"PALIMPSEST_OVERFLOW": "trim"}
WINDOW_TOKENS = 16_000  # of a small local model
CONVERSATIONS = 3
LEAST_TOKENS = 200_000
BEGINNING_SHARE = 1 / 3  # of a conversation, in which all evidence of a question stands
SYSTEM = {"role": "system", "content": "You are a helpful assistant."}
TOO_LONG = "the request exceeds the available context size, try increasing it"  # llama.cpp's words


OWN, WITH = "what was left alone", "with what came back"
CLIENT = "where its client compacts"  # and sends its newest messages alone: what memory finds with nothing cut by it
KEPT = 12  # of these
NEWEST_STEPS = 5  # of the model, in which nothing may stand that a cut has made
COUNTS = ("calls", "again", "again_cut", "invitations")
MEASURES = tuple(f"{what}, {how}" for what in (OWN, WITH, CLIENT) for how in ("any", "all"))


@dataclass
class Provider:
    """Refuses what is too long or out of order, and says what the recording says."""

    window_tokens: int
    reply: Reply = Reply("?")  # noqa: RUF009 - it never changes
    was_wrong: bool = False  # as the recording has it: then nobody can be blamed for what goes upstream
    prompts: list[bytes] = field(default_factory=list)  # that were answered
    refused: int = 0
    wrong: list[str] = field(default_factory=list)

    def __call__(self, asked: Json) -> Reply:
        prompt = orjson.dumps(asked["messages"])
        tokens = len(prompt) // CHARS_PER_TOKEN
        if tokens > self.window_tokens:
            self.refused += 1
            error = {"code": 400, "message": TOO_LONG, "type": "exceed_context_size_error"}
            return Reply(status=400, body=orjson.dumps({"error": error | {"n_ctx": self.window_tokens}}))
        self.wrong += () if self.was_wrong else violations(ENDPOINT, asked)
        self.prompts.append(prompt)
        return replace(self.reply, prompt_tokens=tokens)


@dataclass
class Measured:
    """What became of one conversation."""

    tokens: int = 0  # of the longest request as the client sent it
    longest: int = 0  # of the longest that was answered
    requests: int = 0
    errors: int = 0  # that the client saw
    refused: int = 0
    judged: int = 0  # requests whose recording breaks no rule
    wrong: int = 0
    shared: float = 0.0
    shared_by_turn: float = 0.0
    calls: int = 0  # of tools, in answers
    again: int = 0  # that were made before with the same arguments
    again_cut: int = 0  # ... whose result of before was cut
    invitations: int = 0  # requests with a stub or an emptied call among their newest steps
    asked: int = 0
    found: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in MEASURES})


def add_arguments(parser: ArgumentParser) -> None:
    """Add the flags of this benchmark."""
    parser.add_argument("--window", type=int, default=WINDOW_TOKENS, metavar="TOKENS", help=f"({WINDOW_TOKENS})")
    help = f"that a conversation has at least ({LEAST_TOKENS})"
    parser.add_argument("--least", type=int, default=LEAST_TOKENS, metavar="TOKENS", help=help)
    help = f"of each set, the first ones ({CONVERSATIONS})"
    parser.add_argument("--conversations", type=int, default=CONVERSATIONS, metavar="N", help=help)


async def run(given: Namespace) -> Report:
    """Run the benchmark on the data that the arguments name, and report it."""
    found: dict[str, list[Measured]] = {}
    for path in given.data:
        talks = [talk for talk in read(path, given.limit) if _tokens(talk) >= given.least][: given.conversations]
        measured = found.setdefault(path.name, [])
        with progress() as bar:
            for talk in talks:
                async with running.opened(MODEL, SETTINGS) as proxy:
                    turns = [at for at, said in enumerate(talk.messages) if said.role == "assistant" and at]
                    measured.append(await _measure(proxy, talk, bar.track(turns, description=talk.id), given.window))
    return report(given, found)


def _tokens(talk: Conversation) -> int:
    return sum(len(orjson.dumps(said.raw)) for said in talk.messages) // CHARS_PER_TOKEN


async def _measure(proxy: RunningProxy, talk: Conversation, turns: Iterable[int], window: int) -> Measured:
    provider, told, fitting = Provider(window), Measured(), list[bytes]()
    history = [said.raw for said in talk.messages]
    named = {"authorization": f"Bearer sk-{talk.id}"}
    for at in turns:
        answer, sent = talk.messages[at], [SYSTEM, *history[:at]]
        provider.reply = Reply(answer.content, answer.calls)
        provider.was_wrong = bool(violations(ENDPOINT, {"messages": sent}))
        told.judged += not provider.was_wrong
        fitting.append(_just_fitting(sent, window))
        told.requests += 1
        told.tokens = max(told.tokens, len(orjson.dumps(sent)) // CHARS_PER_TOKEN)
        try:
            got = await proxy.send(sent, provider, **named)
        except MemoryFault:
            told.errors += 1
            continue
        count_calls(told, sent, got.messages, answer.raw)
    told.refused, told.wrong = provider.refused, len(provider.wrong)
    told.longest = max(map(len, provider.prompts)) // CHARS_PER_TOKEN
    told.shared = shared(provider.prompts)
    told.shared_by_turn = shared(fitting)
    if talk.asked_about(int(BEGINNING_SHARE * len(talk.messages)) + 1):
        await proxy.indexed()
        await _ask(proxy, talk, [SYSTEM, *history], provider, told, named)
    return told


def count_calls(told: Measured, sent: Sequence[Json], got: Sequence[Json], answer: Json) -> None:
    """Count the calls of an answer, and which of them a request as the provider got it no longer has the result of."""
    results = {message.get("tool_call_id"): message["content"] for message in got if message["role"] == "tool"}
    before = {said: id for message in sent for id, said in _calls(message)}
    for _, said in _calls(answer):
        told.calls += 1
        if said in before:
            told.again += 1
            told.again_cut += results.get(before[said], STUB) == STUB
    newest = [at for at, message in enumerate(got) if message["role"] == "assistant"][-NEWEST_STEPS:]
    told.invitations += any(
        message["content"] == STUB or any(arguments == NO_ARGUMENTS for _, (_, arguments) in _calls(message))
        for message in (got[newest[0] :] if newest else ())
        if message not in sent
    )


def _calls(message: Json) -> list[tuple[str, tuple[str, str]]]:
    """The calls of a message: the id of each, and its name with its arguments."""
    calls = message.get("tool_calls") or ()
    return [(call["id"], (call["function"]["name"], call["function"]["arguments"])) for call in calls]


async def _ask(
    proxy: RunningProxy,
    talk: Conversation,
    history: Sequence[Json],
    provider: Provider,
    told: Measured,
    named: Mapping[str, str],
) -> None:
    """Each question behind the whole conversation, and behind its newest messages; nothing of it is kept."""
    provider.reply = Reply("?")
    for question, gold in talk.asked_about(int(BEGINNING_SHARE * len(talk.messages)) + 1):
        asking = {"role": "user", "content": question.text}
        got = await proxy.send([*history, asking], provider, **named, x_palimpsest_memory="read-only")
        whole = own = _text(got)
        for block in got.blocks:
            own = own.replace(block, "")
        kept = [history[0], *history[-KEPT:], asking]
        compacted = await proxy.send(kept, provider, **named, x_palimpsest_memory="read-only")
        told.asked += 1
        texts = [talk.messages[at].content for at in gold]
        for what, text in ((OWN, own), (WITH, whole), (CLIENT, _text(compacted))):
            count_evidence(told.found, what, text, texts)


def _text(got: Forwarded) -> str:
    return "\n".join(str(message["content"]) for message in got.messages)


def shared(prompts: Sequence[bytes]) -> float:
    """Share of all prompts that repeats how the one before begins: what a provider reads from its cache."""
    common = sum(_common(before, prompt) for before, prompt in pairwise(prompts))
    return common / max(1, sum(map(len, prompts[1:])))


def _common(one: bytes, other: bytes) -> int:
    """How many bytes both begin with."""
    length = min(len(one), len(other))
    different = np.flatnonzero(np.frombuffer(one, "u1", length) != np.frombuffer(other, "u1", length))
    return int(different[0]) if len(different) else length


def _just_fitting(messages: Sequence[Json], window: int) -> bytes:
    """A request cut to what just fits, the oldest exchanges first: what many clients do, at every turn."""
    sizes = [len(orjson.dumps(message)) + 1 for message in messages]
    at, left = 1, sum(sizes)
    while left > window * CHARS_PER_TOKEN * JUST_FITTING_SHARE and at < len(messages) - 1:
        left -= sizes[at]
        at += 1
        while at < len(messages) - 1 and messages[at]["role"] != "user":
            left -= sizes[at]
            at += 1
    return orjson.dumps([messages[0], *messages[at:]])


JUST_FITTING_SHARE = 0.75  # of the window: the rest is for the answer, as the proxy keeps it


def report(given: Namespace, found: Mapping[str, Sequence[Measured]]) -> Report:
    """Make the report: tables, JSON and notes of what was found."""
    rows, recall, calls, data = [], [], [], {}
    for name, each in found.items():
        sums = {
            key: sum(getattr(one, key) for one in each)
            for key in ("requests", "judged", "errors", "refused", "wrong", "asked", *COUNTS)
        }
        tokens, longest = (max(getattr(one, key) for one in each) for key in ("tokens", "longest"))
        ours, by_turn = (float(np.mean([getattr(one, key) for one in each])) for key in ("shared", "shared_by_turn"))
        measures = {key: [value for one in each for value in one.found[key]] for key in MEASURES}
        means = {key: float(np.mean(values)) if values else None for key, values in measures.items()}
        rows.append(
            (name, sums["requests"], tokens, longest, *(sums[k] for k in ("errors", "wrong", "refused")), ours, by_turn)
        )
        recall.append((name, sums["asked"], *means.values()))
        calls.append((name, *(sums[key] for key in COUNTS)))
        data[name] = sums | {"tokens": tokens, "longest": longest, "shared": ours, "shared_by_turn": by_turn} | means
    columns = ("data", "requests", "longest sent", "longest answered", "errors", "rules broken", "refused, sent again")
    return Report(
        "overflow: conversations beyond the window",
        {"data": [str(path) for path in given.data], "window": given.window, "sets": data},
        [
            Table(f"window of {given.window} tokens", (*columns, "prefix kept", "cut at every turn"), rows),
            Table("questions about the first third, evidence in the request", ("data", "n", *MEASURES), recall),
            Table("calls of tools", ("data", "calls", "made again", "... result cut", "invite imitation"), calls),
        ],
        ["A token is four characters of JSON, as the provider here counts; untrimmed, all evidence is in the request."],
    )
