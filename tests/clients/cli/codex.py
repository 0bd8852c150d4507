"""Codex as a driven client: `codex exec`, then `codex exec resume --last`."""

from __future__ import annotations

from collections.abc import Mapping

import orjson
from palimpsest.domain import ToolCall

from tests.clients.cli.program import Program
from tests.clients.recipes import recipe

COMPACT_AT_TOKENS = 50_000  # its own prompt takes 10,000


class Codex(Program):
    executable = "npm/node_modules/.bin/codex"
    full_tokens = COMPACT_AT_TOKENS + 1
    provider = "Palimpsest"

    def prepare(self) -> None:
        folder = self.home / ".codex"
        folder.mkdir()
        config = f"model_auto_compact_token_limit = {COMPACT_AT_TOKENS}\n" + recipe("Codex", "toml", self.url)
        config = config.replace('name = "Palimpsest"', f'name = "{self.provider}"')
        (folder / "config.toml").write_text(config + "\n[analytics]\nenabled = false\n")

    def env(self) -> Mapping[str, str]:
        return {"OPENAI_API_KEY": self.key}

    def ask(self, text: str) -> str:
        flags = ("--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox")
        return self.run("exec", *(("resume", "--last") if self.turns else ()), *flags, text)

    def reading(self, name: str) -> ToolCall:
        return ToolCall("call_read", "exec_command", orjson.dumps({"cmd": f"cat {name}"}).decode())


class CodexWithOpenAI(Codex):
    """A provider of this name compacts for it: the client sends a trigger and gets an item that it cannot read."""

    provider = "OpenAI"
