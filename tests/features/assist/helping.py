"""A scripted model that helps memory, on a real socket, and what is counted of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from palimpsest.domain import AssistRole, Json
from palimpsest.domain.ports import Assistant, Prompt
from palimpsest.evaluation.scripted import ScriptedUpstream
from palimpsest.features.assist.assistants import ModelAssistants
from palimpsest.settings.load import validated
from palimpsest.settings.policy import Policy
from palimpsest.store.engine.sqlite.database import Database

from tests.clock import Clock

SCHEMA: Json = {
    "type": "object",
    "properties": {"colour": {"type": "string", "enum": ["red", "blue"]}},
    "required": ["colour"],
    "additionalProperties": False,
}
BLUE = '{"colour": "blue"}'
PROMPT = Prompt("colour", "Name the colour that is meant.", "The sky is clear.", SCHEMA, most_tokens=50)
TENANT = "key:acme"


class AssistTally:
    """What was counted."""

    def __init__(self) -> None:
        self.outcomes: Counter[tuple[str, str]] = Counter()
        self.prompt_tokens = 0
        self.completion_tokens = 0
        self.dollars = 0.0

    def assisted(self, role: AssistRole, outcome: str, seconds: float) -> None:
        assert seconds >= 0
        self.outcomes[role, outcome] += 1

    def assist_used(self, role: AssistRole, prompt_tokens: int, completion_tokens: int, dollars: float) -> None:
        self.prompt_tokens += prompt_tokens
        self.completion_tokens += completion_tokens
        self.dollars += dollars


def policy_of(url: str, **settings: Any) -> Policy:
    """A policy whose writer is a model at this URL, behind an upstream with a key of its own."""
    upstream = {"name": "local", "url": url, "auth": "held", "key_env": "LOCAL_KEY"}
    return validated({"upstreams": [upstream], "models": {"writer": {"model": "tiny", "upstream": "local"} | settings}})


@asynccontextmanager
async def assistants_of(
    policy: Policy,
    database: Database,
    counts: AssistTally | None = None,
    clock: Clock | None = None,
    environment: Mapping[str, str] | None = None,
) -> AsyncIterator[ModelAssistants]:
    """The models of a policy, made and closed."""
    found = ModelAssistants(
        database, counts or AssistTally(), clock or Clock(), environment or {"LOCAL_KEY": "sk-ours"}
    )
    try:
        await found.apply(policy)
        yield found
    finally:
        await found.close()


@asynccontextmanager
async def helped(
    database: Database, counts: AssistTally | None = None, clock: Clock | None = None, **settings: Any
) -> AsyncIterator[tuple[ScriptedUpstream, Assistant]]:
    """A scripted model and the assistant that asks it."""
    async with (
        ScriptedUpstream() as upstream,
        assistants_of(policy_of(upstream.url, **settings), database, counts, clock) as assistants,
    ):
        assistant = assistants.of("writer")
        assert assistant is not None
        yield upstream, assistant
