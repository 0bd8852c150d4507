"""Claude Code as a driven client: `claude -p`, then `claude -p --continue`."""

from __future__ import annotations

from collections.abc import Mapping

import orjson
from palimpsest.domain import ToolCall

from tests.clients.cli.program import Program
from tests.clients.recipes import recipe

WINDOW_TOKENS = 100_000  # the smallest that it takes


class ClaudeCode(Program):
    executable = "npm/node_modules/.bin/claude"
    full_tokens = WINDOW_TOKENS - 1_000

    def prepare(self) -> None:
        folder = self.home / ".claude"
        folder.mkdir()
        (folder / "settings.json").write_text(recipe("Claude Code", "json", self.url))

    def env(self) -> Mapping[str, str]:
        return {
            "ANTHROPIC_API_KEY": self.key,
            "CLAUDE_CODE_AUTO_COMPACT_WINDOW": str(WINDOW_TOKENS),
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_ERROR_REPORTING": "1",
            "DISABLE_TELEMETRY": "1",
        }

    def ask(self, text: str) -> str:
        return self.run("-p", *(("--continue",) if self.turns else ()), "--allowedTools", "Read", "--", text)

    def reading(self, name: str) -> ToolCall:
        return ToolCall("toolu_read", "Read", orjson.dumps({"file_path": str(self.work / name)}).decode())
