"""opencode as a driven client: `opencode run`, then `opencode run --continue`."""

from __future__ import annotations

from collections.abc import Mapping

import orjson
from palimpsest.domain import ToolCall

from tests.clients.cli.program import Program
from tests.clients.recipes import recipe

WINDOW_TOKENS, REPLY_TOKENS = 60_000, 4_000  # its own prompt takes 10,000


class OpenCode(Program):
    executable = "npm/node_modules/.bin/opencode"
    full_tokens = WINDOW_TOKENS

    def prepare(self) -> None:
        config = orjson.loads(recipe("opencode", "json", self.url))
        (model,) = config["provider"]["palimpsest"]["models"].values()
        model["limit"] |= {"context": WINDOW_TOKENS, "output": REPLY_TOKENS}
        folder = self.home / ".config" / "opencode"
        folder.mkdir(parents=True)
        (folder / "opencode.json").write_bytes(orjson.dumps(config))

    def env(self) -> Mapping[str, str]:
        return {
            "OPENAI_API_KEY": self.key,
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
        }

    def ask(self, text: str) -> str:
        return self.run("run", *(("--continue",) if self.turns else ()), text)

    def reading(self, name: str) -> ToolCall:
        return ToolCall("call_read", "read", orjson.dumps({"filePath": str(self.work / name)}).decode())
