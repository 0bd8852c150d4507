"""aider as a driven client: at its prompt, or by `aider --message`, each time with the history of its file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from palimpsest.domain import ToolCall

from tests.clients.cli.program import Program
from tests.clients.recipes import recipe

HISTORY_TOKENS = 150  # three turns of the talk; what is older is summarised when it starts


class Aider(Program):
    executable = "aider/bin/aider"
    full_tokens = 0  # it counts by itself

    def prepare(self) -> None:
        (self.home / ".aider.conf.yml").write_text(recipe("aider", "yaml", self.url))

    def env(self) -> Mapping[str, str]:
        return {"OPENAI_API_KEY": self.key, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}

    def ask(self, text: str) -> str:
        return self._chat("--message", text)

    def say_all(self, talk: Sequence[str]) -> str:
        self.turns += len(talk)
        return self._chat("--no-fancy-input", said="".join(f"{text}\n" for text in talk))

    def _chat(self, *arguments: str, said: str = "") -> str:
        flags = ("--chat-mode", "ask", "--restore-chat-history", "--yes-always", "--no-git")
        quiet = ("--analytics-disable", "--no-check-update", "--no-show-model-warnings", "--no-pretty")
        limit = ("--max-chat-history-tokens", str(HISTORY_TOKENS))
        return self.run(*flags, *quiet, *limit, *arguments, said=said)

    def reading(self, name: str) -> ToolCall | None:
        return None
