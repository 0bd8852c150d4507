"""Codex as a driven client: `codex exec`, then `codex exec resume --last`."""

from __future__ import annotations

import base64
from collections.abc import Mapping

import orjson
from palimpsest.domain import ToolCall

from tests.clients.cli.program import NOBODY, Program
from tests.clients.recipes import recipe

COMPACT_AT_TOKENS = 50_000  # its own prompt takes 10,000
EXPIRES_AT = 4_102_444_800  # 2100: it does not ask for another token
NEVER_STALE = "2100-01-01T00:00:00Z"


class Codex(Program):
    executable = "npm/node_modules/.bin/codex"
    full_tokens = COMPACT_AT_TOKENS + 1
    provider = "Palimpsest"
    recipe = "Codex"

    def prepare(self) -> None:
        folder = self.home / ".codex"
        folder.mkdir()
        config = f"model_auto_compact_token_limit = {COMPACT_AT_TOKENS}\n" + recipe(self.recipe, "toml", self.url)
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


class CodexWithLogin(CodexWithOpenAI):
    """Logged in with an account of ChatGPT's, which nobody has."""

    recipe = "Codex with a ChatGPT login"
    account = "acct-1"

    @property
    def token(self) -> str:
        """What it shows as its credential: claims that it reads itself, and a signature that nobody checks here."""
        claims = {
            "exp": EXPIRES_AT,
            "email": "ada@example.com",
            "https://api.openai.com/auth": {"chatgpt_account_id": self.account, "chatgpt_plan_type": "pro"},
        }
        parts = ({"alg": "RS256", "typ": "JWT"}, claims, {"signed": self.key})
        return ".".join(base64.urlsafe_b64encode(orjson.dumps(part)).decode().rstrip("=") for part in parts)

    def prepare(self) -> None:
        super().prepare()
        tokens = {"id_token": self.token, "access_token": self.token, "refresh_token": "r", "account_id": self.account}
        login = {"auth_mode": "chatgpt", "OPENAI_API_KEY": None, "tokens": tokens, "last_refresh": NEVER_STALE}
        (self.home / ".codex" / "auth.json").write_bytes(orjson.dumps(login))
        with (self.home / ".codex" / "config.toml").open("r+") as file:
            rest = file.read()
            file.seek(0)  # what it asks of ChatGPT itself, beside the model, goes nowhere
            file.write(f'chatgpt_base_url = "{NOBODY}/"\n{rest}')

    def env(self) -> Mapping[str, str]:
        return {}


class CodexBuiltIn(Codex):
    """Its built-in provider, at another address: it begins with a WebSocket, and asks the provider to compact."""

    def prepare(self) -> None:
        folder = self.home / ".codex"
        folder.mkdir()
        config = (
            f'model = "gpt-4o"\nopenai_base_url = "{self.url}"\nmodel_auto_compact_token_limit = {COMPACT_AT_TOKENS}\n'
        )
        (folder / "config.toml").write_text(f"{config}\n[analytics]\nenabled = false\n")
        (folder / "auth.json").write_bytes(orjson.dumps({"auth_mode": "apikey", "OPENAI_API_KEY": self.key}))

    def env(self) -> Mapping[str, str]:
        return {}
