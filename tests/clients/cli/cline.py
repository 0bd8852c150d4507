"""cline as a driven client: `cline auth` once, then `cline TEXT`. Without a terminal each run is a new conversation."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

import orjson
from palimpsest.domain import ToolCall

from tests.clients.cli.program import Program
from tests.clients.recipes import recipe


class Cline(Program):
    executable = "npm/node_modules/.bin/cline"
    full_tokens = 0
    continues = False

    def prepare(self) -> None:
        program, *words = shlex.split(recipe("cline", "sh", self.url).replace("$OPENAI_API_KEY", self.key))
        assert program == "cline"
        self.run(*words)

    def env(self) -> Mapping[str, str]:
        return {"DO_NOT_TRACK": "1"}

    def ask(self, text: str) -> str:
        return self.run(text)

    def reading(self, name: str) -> ToolCall:
        return ToolCall("call_read", "read_files", orjson.dumps({"files": [{"path": str(self.work / name)}]}).decode())
