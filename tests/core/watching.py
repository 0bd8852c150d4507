"""
What does the core say of a stream of requests? The steps of the pipeline around it, and a store of two dictionaries.

`Watch` is the proxy's side. `Client` is the other side: a list of messages that grows as clients let it grow, and that
a test changes between two requests to play what clients do to their history.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import orjson
import yaml

from proxy.core.caller.client_table import Signals, read_signals
from proxy.core.caller.identity import identify
from proxy.core.history import link_keys as leads
from proxy.core.history import request_roles
from proxy.core.history.lineage import trace
from proxy.core.history.server_history import inherited
from proxy.domain import (
    Chat,
    Clues,
    Event,
    Head,
    HeadFlag,
    Json,
    Lineage,
    Link,
    LinkKind,
    Message,
    Role,
    Seen,
    Shape,
    Turn,
)
from proxy.ports import Wire
from proxy.settings.policy import TenantPolicy
from proxy.wire import chat as on_chat
from proxy.wire.fingerprint import fingerprint
from proxy.wire.message import read_message

ROOT = Path(__file__).parent.parent.parent
KEY = b"a key of thirty-two bytes, or so"
WORDS = re.findall(
    r"\w+",
    "harbor lantern orbit copper meadow signal velvet timber cascade anchor prism quartz saddle ember tunnel willow "
    "granite beacon ripple canyon falcon marble pepper summit thicket vessel wander zephyr almond bridge cobalt drift",
)


def client_table() -> Signals:
    """The table that ships."""
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
class Watch:
    """One tenant's store, and the steps between a request and its record."""

    signals: Signals = field(default_factory=client_table)
    links: dict[tuple[LinkKind, int], list[Link]] = field(default_factory=lambda: defaultdict(list))
    heads: dict[int, Head] = field(default_factory=dict)
    turns: int = 0
    occurrences: int = 0

    def hear(
        self, body: Json, answer: Json | None, headers: Mapping[str, str] | None = None, wire: Wire = on_chat
    ) -> Verdict:
        """
        Judge one request, then file it with its answer.

        Args:
            answer: the assistant message that the upstream gave, its `id` the name of the answer; None: it refused, and
                nothing is filed.
        """
        chat = wire.parse(orjson.dumps(body))
        sent = {name.lower(): value for name, value in (headers or {}).items()}
        speaker = identify(sent, (), chat.raw, self.signals, TenantPolicy(static="one"), KEY)
        prints = [fingerprint(message, KEY) for message in chat.history]
        instructions = [fingerprint(message, KEY) for message in chat.messages if message.is_instruction]
        shape = leads.shape_of(chat, instructions, sent.get("user-agent", ""))
        asked = request_roles.read(chat, self.signals)
        seen = self.seen(leads.clues(chat, prints, speaker, KEY))
        verdict = trace(chat, prints, shape, asked, speaker, seen, KEY)
        if verdict.is_open:
            further = self.seen(leads.further_clues(chat, verdict, speaker, KEY))
            verdict = trace(chat, prints, shape, asked, speaker, seen, KEY, further=further)
        self.turns += 1
        serves = verdict.parent if verdict.role is Role.SIDE else ""
        continues = verdict.head.conversation if verdict.head and verdict.role is not Role.SIDE else ""
        conversation = continues or serves or f"conversation {self.turns}"
        if answer is not None:
            self._file(chat, verdict, conversation, read_message(answer), inherited(chat, shape, verdict.head))
            self._link(leads.reply_links([answer.get("id") or ""], KEY), conversation, verdict.role)
            if verdict.role is not Role.SIDE:
                links = leads.request_links(chat.history, prints, verdict.fresh, speaker, KEY)
                self._link(links, conversation, verdict.role)
        return Verdict(conversation, verdict)

    def seen(self, clues: Clues | None) -> Seen:
        prints = clues.prints.items() if clues else ()
        links = [link for kind, values in prints for value in values for link in self.links.get((kind, value), ())]
        found = {link.conversation for link in links}
        heads = tuple(head for head in self.heads.values() if head.conversation in found)
        return Seen(tuple(dict.fromkeys(links)), heads)

    def _file(self, chat: Chat, verdict: Lineage, conversation: str, answer: Message, shape: Shape) -> None:
        history = chat.history
        prints = [fingerprint(message, KEY) for message in history]
        print = fingerprint(answer, KEY)
        record = Turn(
            id=str(self.turns),
            tenant="one",
            conversation=conversation,
            role=verdict.role,
            event=verdict.event,
            kept=(),
            new=(),
            parent_turn=None,
            parent_conversation="",
            shape=shape,
            links=(),
            model=chat.model,
            user="",
            scope="",
            created_at=0.0,
            summarises=verdict.summarises,
            last_full=prints[-1].full if prints else 0,
        )
        self._link(leads.answer_links(answer, print, record, KEY), conversation, verdict.role)
        if verdict.role is Role.SIDE:
            return
        before = verdict.head
        held = [(before.fulls[i], before.openings[i]) for i in verdict.held] if before else []
        occurrences = [before.occurrences[i] for i in verdict.held] if before else []
        flags = [before.flags[i] for i in verdict.held] if before else []
        for message, index in zip(history, verdict.kept, strict=True):
            self.occurrences += index < 0
            occurrences.append(before.occurrences[index] if before and index >= 0 else self.occurrences)
            flags.append(before.flags[index] if before and index >= 0 else leads.flags_of(message))
        for at in verdict.summary_at:
            flags[len(held) + at] |= HeadFlag.SUMMARY
        self.occurrences += 1
        if (
            before and not verdict.changed and not verdict.dropped
        ):  # as store/requests.py: only who carries all replaces
            self.heads.pop(before.turn, None)
        self.heads[self.turns] = Head(
            conversation=conversation,
            turn=self.turns,
            role=verdict.role,
            fulls=[*(full for full, _ in held), *(p.full for p in (*prints, print))],
            openings=[*(opening for _, opening in held), *(p.opening for p in (*prints, print))],
            occurrences=[*occurrences, self.occurrences],
            flags=[*flags, leads.flags_of(answer) | HeadFlag.OURS],
            shape=shape,
            request_length=len(held) + len(history),
            compactions=(before.compactions if before else 0) + verdict.event.is_compaction,
            event=verdict.event,
        )

    def _link(self, links: Sequence[tuple[LinkKind, int]], conversation: str, role: Role) -> None:
        for kind, print in links:
            self.links[kind, print].append(Link(kind, print, conversation, role, self.turns))


@dataclass
class Client:
    """A chat client that keeps its history in `messages`, tells nothing about itself, and may be made to forget."""

    watch: Watch
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
        verdict = self.watch.hear(request | body, None if refused else answer, self.headers)
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
        return self.watch.hear({"model": self.model, "messages": list(messages)} | body, said, self.headers)

    def copy(self) -> Client:
        """Another client with the same history, on the same watch."""
        return replace(self, messages=list(self.messages))
