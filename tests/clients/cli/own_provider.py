"""
The driven clients as they are set up without us: at their provider's own address, which none of them is told.

`palimpsest wrap` leads the same setup to the proxy; where a client reads no variable, one line of its recipe does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import orjson
from palimpsest.domain import ToolCall

from tests.clients.cli.claude_code import ClaudeCode
from tests.clients.cli.cline import Cline
from tests.clients.cli.codex import Codex
from tests.clients.cli.continue_cli import Continue
from tests.clients.cli.opencode import OpenCode
from tests.clients.cli.program import Program

OPENAI = "https://api.openai.com/v1"


class OwnClaudeCode(ClaudeCode):
    def prepare(self) -> None:
        """Anthropic's is the address that it has."""


class OwnCodex(Codex):
    def env(self) -> Mapping[str, str]:
        return {**super().env(), "OPENAI_ORGANIZATION": "org-1", "OPENAI_PROJECT": "proj-1"}  # they say who pays

    def prepare(self) -> None:
        folder = self.home / ".codex"
        folder.mkdir()
        (folder / "config.toml").write_text('model = "gpt-4o"\n[analytics]\nenabled = false\n')
        (folder / "auth.json").write_bytes(orjson.dumps({"auth_mode": "apikey", "OPENAI_API_KEY": self.key}))


class OwnOpenCode(OpenCode):
    def prepare(self) -> None:
        folder = self.home / ".config" / "opencode"
        folder.mkdir(parents=True)
        (folder / "opencode.json").write_bytes(orjson.dumps({"model": "openai/gpt-4o"}))


class OwnCline(Cline):
    """It asks for an address; the proxy's takes the place of the provider's."""

    def prepare(self) -> None:
        self.run("auth", "openai", "-k", self.key, "-m", "gpt-4o", "-b", self.url or OPENAI)


class OwnContinue(Continue):
    """The line with the address is the difference."""

    def prepare(self) -> None:
        super().prepare()
        config = self.home / ".continue" / "config.yaml"
        if not self.url:
            lines = config.read_text().splitlines(keepends=True)
            config.write_text("".join(line for line in lines if "apiBase:" not in line))


class Llm(Program):
    """`llm`, told by the environment; `-c` goes on with the conversation, `chat` asks for more and more."""

    executable = "llm/bin/llm"
    full_tokens = 0  # it sends all of it

    def prepare(self) -> None:
        """There is nothing to write."""

    def env(self) -> Mapping[str, str]:
        address = {"OPENAI_BASE_URL": self.url} if self.url else {}
        return {"OPENAI_API_KEY": self.key, "LLM_USER_PATH": str(self.home), **address}

    def ask(self, text: str) -> str:
        return self.run(*(["-c"] if self.turns else ["-m", "gpt-4o"]), text)

    def say_all(self, talk: Sequence[str]) -> str:
        self.turns += len(talk)
        return self.run("chat", "-m", "gpt-4o", said="".join(f"{text}\n" for text in (*talk, "exit")))

    def reading(self, name: str) -> ToolCall | None:
        return None


WRAPPED: dict[str, Callable[..., Program]] = {
    "Claude Code": OwnClaudeCode,
    "Codex": OwnCodex,
    "opencode": OwnOpenCode,
}
ADDRESSED: dict[str, Callable[..., Program]] = {
    "cline": OwnCline,
    "Continue": OwnContinue,
    "llm": Llm,
}
