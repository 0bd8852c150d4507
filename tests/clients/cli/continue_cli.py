"""Continue as a driven client: `cn --print`, then `cn --print --resume`."""

from __future__ import annotations

from collections.abc import Mapping

import orjson
from palimpsest.domain import ToolCall

from tests.clients.cli.program import Program
from tests.clients.recipes import recipe


class Continue(Program):
    executable = "npm/node_modules/.bin/cn"
    full_tokens = 0

    def prepare(self) -> None:
        folder = self.home / ".continue"
        folder.mkdir()
        (folder / "config.yaml").write_text(recipe("Continue", "yaml", self.url))
        (folder / ".env").write_text(f"OPENAI_API_KEY={self.key}\n")

    def env(self) -> Mapping[str, str]:
        return {"CONTINUE_TELEMETRY_ENABLED": "0"}

    def ask(self, text: str) -> str:
        config = str(self.home / ".continue" / "config.yaml")
        return self.run("--print", "--config", config, *(("--resume",) if self.turns else ()), text)

    def reading(self, name: str) -> ToolCall:
        return ToolCall("call_read", "Read", orjson.dumps({"filepath": str(self.work / name)}).decode())
