"""
The core driven by hand: `core.conversation` itself, with a journal of two dictionaries that answers its look-ups.

`Core` is the proxy's side. `Client` is the other side: a list of messages that grows as clients let it grow, and that
a test changes between two requests to play what clients do to their history.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import orjson
import yaml
from palimpsest.core.archive.turns import turn_of
from palimpsest.core.caller.client_table import Signals, read_signals
from palimpsest.core.caller.identity import identify, tenant_of
from palimpsest.core.conversation import Lookup, Request, Rules, StoredMessages, advance, decide
from palimpsest.core.decision import Decision
from palimpsest.core.history.lineage import follows
from palimpsest.core.history.link_keys import answer_links, flags_of, reply_links
from palimpsest.core.reading import Reading
from palimpsest.domain import (
    Clues,
    Continuation,
    CurrentFact,
    CurrentFacts,
    Event,
    Fact,
    FactQuery,
    Follows,
    Head,
    HeadFlag,
    Json,
    KnownHistory,
    Lineage,
    Link,
    LinkKind,
    Message,
    Note,
    Query,
    Recalled,
    Role,
    StoredBlock,
    Trim,
    Turn,
)
from palimpsest.domain.ports import Wire
from palimpsest.settings.policy import Policy, TenantPolicy
from palimpsest.wire import chat as on_chat
from palimpsest.wire.fingerprint import fingerprint_of
from palimpsest.wire.message import read_message
from palimpsest.wire.trimming import trimmed

ROOT = Path(__file__).parent.parent.parent
KEY = b"a key of thirty-two bytes, or so"
WORDS = re.findall(
    r"\w+",
    "harbor lantern orbit copper meadow signal velvet timber cascade anchor prism quartz saddle ember tunnel willow "
    "granite beacon ripple canyon falcon marble pepper summit thicket vessel wander zephyr almond bridge cobalt drift",
)


CHARS_PER_TOKEN = 4
WINDOW_TOKENS = 128_000
NOTHING = Recalled((), False, "nothing is kept here")


@cache
def client_table() -> Signals:
    """The table that ships; reading it takes longer than most that is made with it."""
    return read_signals(yaml.safe_load((ROOT / "config" / "clients.yaml").read_text(encoding="utf-8")))


def prose(words: int, seed: object = 0) -> str:
    """So many words; the same ones for the same seed, others for another."""
    stream = hashlib.shake_256(repr(seed).encode()).digest(words)
    return " ".join(WORDS[byte % len(WORDS)] for byte in stream)


def system(text: str) -> Json:
    return {"role": "system", "content": text}


def user(text: str) -> Json:
    return {"role": "user", "content": text}


def assistant(text: str) -> Json:
    return {"role": "assistant", "content": text}


def tool(call_id: str, text: str) -> Json:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def calling(*calls: tuple[str, str, Json], text: str = "") -> Json:
    """An assistant message that calls tools: (id, name, arguments)."""
    return assistant(text) | {
        "tool_calls": [
            {"id": at, "type": "function", "function": {"name": name, "arguments": orjson.dumps(arguments).decode()}}
            for at, name, arguments in calls
        ]
    }


def offer(*names: str) -> list[Json]:
    """The `tools` of a request."""
    return [{"type": "function", "function": {"name": name, "parameters": {}}} for name in names]


def rules_of(policy: Policy | None = None) -> Rules:
    """Rules with the table that ships, for one tenant whoever asks."""
    policy = (policy or Policy()).model_copy(update={"tenants": TenantPolicy(static="one")})
    return Rules(policy, client_table(), KEY, lambda text, _: len(text) // CHARS_PER_TOKEN)


def request_of(
    body: Json, rules: Rules, headers: Mapping[str, str] | None = None, wire: Wire = on_chat, **known: Any
) -> Request:
    """A request as the pipeline reads it, but for how tokens are counted."""
    chat = wire.parse(orjson.dumps(body))
    sent = {name.lower(): value for name, value in (headers or {}).items()}
    tenant = tenant_of((), rules.policy.tenants, rules.secret, None)
    speaker = identify(tenant, sent, chat.raw, rules.signals, None)
    prints = tuple(fingerprint_of(message, rules.key(speaker.tenant)) for message in chat.messages)
    tokens = sum(len(message.text) for message in chat.messages) // CHARS_PER_TOKEN
    each = tuple(len(message.text) for message in chat.messages)
    reading = Reading(chat, prints, tokens, history_tokens=tokens, message_tokens=each)
    known = {"wire": wire, "window_tokens": WINDOW_TOKENS, "user_agent": sent.get("user-agent", "")} | known
    return Request(reading, speaker, **known)


def drive(request: Request, rules: Rules, answer: Callable[[Lookup], object]) -> Decision | Note:
    """Run the decisions of one request; `answer` returns what a look-up found, or the exception that it failed with."""
    deciding = decide(request, rules)
    step = advance(deciding, None)
    while not isinstance(step, Decision | Note):
        step = advance(deciding, answer(step))
    return step


@dataclass
class Journal:
    """
    What a store keeps for lineage: links, blocks, and the newest state of each branch. Forgets nothing.

    `current_facts` and `ended` are the facts that it tells of; its time is a number of turns.
    """

    links: dict[tuple[LinkKind, int], list[Link]] = field(default_factory=lambda: defaultdict(list))
    heads: dict[int, Head] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)  # of turns, by their ids
    turns: int = 0
    occurrences: int = 0
    blocks: dict[str, list[StoredBlock]] = field(default_factory=lambda: defaultdict(list))  # by conversation
    shed: set[int] = field(default_factory=set)  # occurrences that carry blocks which are not repeated any more
    times: dict[int, int] = field(default_factory=dict)  # of occurrences
    current_facts: tuple[CurrentFact, ...] = ()
    ended: tuple[Fact, ...] = ()

    def answer(self, asked: Lookup) -> object:
        match asked:
            case Clues():
                return self.seen(asked)
            case Continuation():
                return self.head(asked)
            case StoredMessages():
                return {}
            case FactQuery():
                ended = tuple(fact for fact in self.ended if fact.id in asked.shown)
                return CurrentFacts(self.current_facts, ended, self.times.get(asked.since, 0))
            case Query():
                return NOTHING
            case _:
                return None

    def seen(self, clues: Clues) -> KnownHistory:
        links = [
            link
            for kind, prints in clues.prints.items()
            for fingerprint in prints
            for link in self.links.get((kind, fingerprint), ())
        ]
        found = {link.conversation for link in links}
        heads = tuple(self._with_blocks(head) for head in self.heads.values() if head.conversation in found)
        return KnownHistory(tuple(dict.fromkeys(links)), heads)

    def head(self, asked: Continuation) -> KnownHistory:
        number = self.numbers.get(asked.turn, 0)
        head = self.heads.get(number)
        kinds = (LinkKind.ANSWER, LinkKind.MESSAGE)
        links = tuple(link for kind in kinds for link in self.links.get((kind, asked.answer), ()))
        of_it = [one for one in self.heads.values() if head and one.conversation == head.conversation]
        heads = [self._with_blocks(one) for one in of_it]
        heads.sort(key=lambda one: -one.turn)
        return KnownHistory(links, tuple(heads)) if heads and heads[0].turn == number else KnownHistory()

    def write(self, turn: Turn, answer: Message, answer_id: str, key: bytes) -> None:
        """Keep a turn with its answer."""
        self.turns += 1
        self.numbers[turn.id] = self.turns
        fingerprint = fingerprint_of(answer, key)
        left = (*turn.links, *answer_links(answer, fingerprint, turn, key), *reply_links([answer_id], key))
        for kind, value in left:
            self.links[kind, value].append(Link(kind, value, turn.conversation, turn.role, self.turns))
        if turn.role is not Role.SIDE:
            self._write_head(turn, answer, fingerprint.full, fingerprint.opening)

    def _write_head(self, turn: Turn, answer: Message, full: int, opening: int) -> None:
        before = self.heads.get(turn.parent_turn or 0)
        rows = zip(before.fulls, before.openings, before.occurrences, before.flags, strict=True) if before else ()
        listed = {row[2]: row for row in rows}
        placed = {position: listed[occurrence] for position, occurrence in turn.kept}
        for new in turn.new:
            if not new.message.is_instruction:
                self.occurrences += 1
                self.times[self.occurrences] = self.turns
                placed[new.position] = (new.fingerprint.full, new.fingerprint.opening, self.occurrences, new.flags)
        standing = [row for _, row in sorted(placed.items())]
        self.occurrences += 1
        standing.append((full, opening, self.occurrences, flags_of(answer) | HeadFlag.OURS))
        fulls, openings, occurrences, flags = zip(*standing, strict=True)
        anchor = placed.get(turn.anchor) if turn.block else None
        if turn.replaces_blocks:
            self.shed.update(stored.occurrence for stored in self.blocks[turn.conversation])
        if turn.block is not None and anchor is not None:
            self.shed.discard(anchor[2])
            self.blocks[turn.conversation].append(StoredBlock(anchor[2], turn.block))
        if before and {*occurrences}.issuperset(listed):  # as the store does: only who carries all replaces
            del self.heads[before.turn]
        self.heads[self.turns] = Head(
            conversation=turn.conversation,
            turn=self.turns,
            role=turn.role,
            fulls=fulls,
            openings=openings,
            occurrences=occurrences,
            flags=flags,
            shape=turn.shape,
            request_length=len(standing) - 1,
            compactions=turn.compactions,
            event=turn.event,
            lost=tuple(dict.fromkeys((*(before.lost if before else ()), *turn.lost))),
            cut=turn.cut.stored({position: row[2] for position, row in placed.items()}),
            restored_at=placed.get(turn.restored_at, (0, 0, 0))[2],
            is_named=turn.is_named,
            is_untold=turn.is_untold,
        )

    def _with_blocks(self, head: Head) -> Head:
        said = (stored for stored in self.blocks[head.conversation] if stored.occurrence not in self.shed)
        return replace(head, blocks=tuple(said))


@dataclass(frozen=True)
class Verdict:
    """What the core said of one request, and the conversation it was filed under."""

    conversation: str
    lineage: Lineage

    @property
    def event(self) -> Event:
        return self.lineage.event

    @property
    def role(self) -> Role:
        return self.lineage.role


@dataclass
class Core:
    """The core of one proxy, and its journal."""

    rules: Rules = field(default_factory=rules_of)
    journal: Journal = field(default_factory=Journal)
    requests: int = 0
    window_tokens: int = WINDOW_TOKENS
    sent: list[tuple[Request, str]] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    asked: list[Lookup] = field(default_factory=list)  # of the last request
    wire: Wire = on_chat  # of the last request

    def followed(self, request: Request) -> Iterator[Follows]:
        """The requests of before that this one repeats whole."""
        messages = request.reading.chat.messages
        for before, turn in self.sent:
            said = before.reading.chat.messages
            if len(said) < len(messages) and messages[: len(said)] == said:
                yield Follows(turn, before.speaker, len(before.reading.history))

    def _answer(self, lookup: Lookup) -> object:
        self.asked.append(lookup)
        return trimmed(lookup, self.wire) if isinstance(lookup, Trim) else self.journal.answer(lookup)

    def hear(
        self, body: Json, answer: Json | None, headers: Mapping[str, str] | None = None, wire: Wire = on_chat
    ) -> Verdict:
        """
        Decide on one request, then keep it with its answer.

        Args:
            answer: the assistant message that the upstream gave, its `id` the name of the answer; None: it refused, and
                nothing is kept.
        """
        self.requests += 1
        self.wire = wire
        known: Json = {"new_id": str(self.requests), "window_tokens": self.window_tokens}
        request = request_of(body, self.rules, headers, wire, **known)
        self.asked = []
        decision = drive(request, self.rules, self._answer)
        assert isinstance(decision, Decision)
        self.decisions.append(decision)
        for before in self.followed(request):
            if follows(request.reading, before, request.speaker) is None:  # it is not looked up, nor read any more
                continue
            again = drive(replace(request, follows=before), self.rules, self._answer)
            assert again == decision, "less is looked up, and the same is decided"
        self.sent.append((request, str(self.requests)))
        turn = turn_of(decision, self.rules, id=str(self.requests), upstream="", created_at=0.0)
        if answer is not None:
            key = self.rules.key(request.speaker.tenant)
            self.journal.write(turn, read_message(answer), answer.get("id") or "", key)
        return Verdict(decision.conversation, decision.lineage)


@dataclass
class Client:
    """A chat client that keeps its history in `messages`, tells nothing about itself, and may be made to forget."""

    core: Core
    messages: list[Json] = field(default_factory=lambda: [system("You are a careful assistant.")])
    tools: Sequence[str] = ()
    model: str = "large"
    headers: dict[str, str] = field(default_factory=dict)
    seed: object = ""
    answers: int = 0

    def send(self, answer: Json | str | None = None, refused: bool = False, **body: Any) -> Verdict:
        """Send what stands in `messages`, and keep the answer (by default 30 words that nobody else is given)."""
        self.answers += 1
        if not isinstance(answer, dict):
            answer = assistant(answer if answer is not None else prose(30, (self.seed, self.answers)))
        request = {"model": self.model, "messages": list(self.messages)}
        if self.tools:
            request["tools"] = offer(*self.tools)
        verdict = self.core.hear(request | body, None if refused else answer, self.headers)
        if not refused:
            self.messages.append(answer)
        return verdict

    def ask(self, text: str, answer: Json | str | None = None, **body: Any) -> Verdict:
        """One human message, one request."""
        self.messages.append(user(text))
        return self.send(answer, **body)

    def talk(self, turns: int) -> Verdict:
        """So many human messages of 20 words, each answered; the verdict on the last request."""
        for _ in range(turns):
            verdict = self.ask(prose(20, (self.seed, "question", self.answers)))
        return verdict

    def beside(self, messages: Sequence[Json], answer: str | None = None, **body: Any) -> Verdict:
        """A request that is not part of the history."""
        self.answers += 1
        said = assistant(answer if answer is not None else prose(40, (self.seed, "beside", self.answers)))
        return self.core.hear({"model": self.model, "messages": list(messages)} | body, said, self.headers)

    def copy(self) -> Client:
        """Another client with the same history, on the same core."""
        return replace(self, messages=list(self.messages))
