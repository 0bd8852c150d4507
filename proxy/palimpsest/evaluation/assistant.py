"""The benchmarks' language model in a role of memory: asked as the proxy asks it, and what it costs."""

from __future__ import annotations

from dataclasses import dataclass

from palimpsest.domain import Json
from palimpsest.domain.errors import AssistFailure, AssistFault, UpstreamUnreachable
from palimpsest.domain.ports import Prompt
from palimpsest.evaluation.baselines.chunks import ENCODING
from palimpsest.evaluation.model import ChatModel
from palimpsest.features.assist.request import ModelAnswer, Refused, Unusable, checked, messages_of, structured
from palimpsest.memory.tokens.counter import encoder


@dataclass(slots=True)
class Spent:
    """What a writer asked for: calls, those that failed, and tokens (cl100k_base)."""

    calls: int = 0
    failed: int = 0
    prompt_tokens: int = 0
    answer_tokens: int = 0


class BenchAssistant:
    """Implements `ports.Assistant` with the model of a benchmark; every call is counted, known answers too."""

    def __init__(self, model: ChatModel) -> None:
        self._model = model
        self.spent = Spent()

    async def answer(self, prompt: Prompt, tenant: str) -> Json:
        """See `Assistant`."""
        messages = messages_of(prompt)
        self.spent.calls += 1
        self.spent.prompt_tokens += tokens_of(messages)
        try:
            text = await self._model.answer(messages, prompt.most_tokens, structured(prompt)["response_format"])
            self.spent.answer_tokens += len(encoder(ENCODING).encode_ordinary(text))
            return checked(ModelAnswer(text, None, None, is_cut_off=False, is_refusal=False), prompt.schema)
        except (UpstreamUnreachable, Unusable, Refused) as cause:
            self.spent.failed += 1
            outcome: AssistFailure = "unreachable" if isinstance(cause, UpstreamUnreachable) else "malformed"
            raise AssistFault(f"asking the model of the benchmark: {cause}", outcome) from cause


class SilentAssistant:
    """Implements `ports.Assistant`: asks the fewest questions and keeps nothing, so that calls can be counted."""

    def __init__(self) -> None:
        self.spent = Spent()

    async def answer(self, prompt: Prompt, tenant: str) -> Json:
        """See `Assistant`: five questions, or empty lists."""
        self.spent.calls += 1
        self.spent.prompt_tokens += tokens_of(messages_of(prompt))
        (name,) = prompt.schema["properties"]
        return {name: ["What?"] * 5 if name == "questions" else []}


def tokens_of(messages: list[Json]) -> int:
    """Of a prompt, cl100k_base."""
    return sum(len(encoder(ENCODING).encode_ordinary(message["content"])) for message in messages)
