"""opencode as a driven client: `opencode run`, then `opencode run --continue`, or its server, which its windows ask."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence

import orjson
from palimpsest.domain import Json, ToolCall

from tests.clients.cli.program import Program
from tests.clients.recipes import recipe
from tests.running import free_port, request, until

JSON_BODY = {"content-type": "application/json"}
NOBODY_THERE = b'{"permission": [{"permission": "question", "pattern": "*", "action": "deny"}]}'  # as `run` begins one
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
            "BUN_JSC_useConcurrentJIT": "0",  # a run ends before what that compiles has paid
            "OPENAI_API_KEY": self.key,
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
        }

    def ask(self, text: str) -> str:
        return self.run("run", *(("--continue",) if self.turns else ()), text)

    def say_all(self, talk: Sequence[str]) -> str:
        """Of one server: each run takes seconds to start."""
        port = free_port()
        command = [*self.through, self.path, "serve", "--port", str(port)]
        with subprocess.Popen(command, env=self.environment, cwd=self.work, stdout=subprocess.PIPE) as serving:
            try:
                assert serving.stdout is not None
                until(lambda: b"listening" in serving.stdout.readline(), "its server to listen")
                known: Sequence[Json] = request(port, "GET", "/session").json  # type: ignore[assignment]
                asked = known[0] if self.turns else request(port, "POST", "/session", NOBODY_THERE, JSON_BODY).json
                session = f"/session/{asked['id']}/message"
                for text in talk:
                    body = orjson.dumps({"parts": [{"type": "text", "text": text}]})
                    assert request(port, "POST", session, body, JSON_BODY).status == 200
                self.turns += len(talk)
                messages: Sequence[Json] = request(port, "GET", session).json  # type: ignore[assignment]
                said = [message for message in messages if message["info"]["role"] == "assistant"]
                return "\n".join(part.get("text", "") for message in said for part in message["parts"])
            finally:
                serving.terminate()

    def reading(self, name: str) -> ToolCall:
        return ToolCall("call_read", "read", orjson.dumps({"filePath": str(self.work / name)}).decode())
