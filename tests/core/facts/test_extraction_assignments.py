"""Settings are taken from lines that assign them, and never a credential."""

from __future__ import annotations

import pytest
from palimpsest.core.facts.extraction import assigned

JSON = '{\n  "server": {\n    "port": 8080,\n    "host": "db.internal"\n  }\n}'
YAML = "server:\n  port: 8080  # behind nginx\n  tls: true\ndb:\n  host: pg-1\n  password: herring-42\n"
TOML = '[db]\nport = 54322\nname = "main"\n\n[storage]\nbucket = "photos"\n'


def taken(text: str) -> list[tuple[str, str]]:
    return [(one.slot, one.value) for one in assigned(text)]


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        ("DATABASE_PORT=5433", [("DATABASE_PORT", "5433")]),
        ('export APP_REGION="eu-west-1"\nok', [("APP_REGION", "eu-west-1")]),
        (JSON, [("server.port", "8080"), ("server.host", "db.internal")]),
        (YAML, [("server.port", "8080"), ("db.host", "pg-1")]),
        (TOML, [("db.port", "54322"), ("storage.bucket", "photos")]),
        (f"My configuration:\n```yaml\n{YAML}```\nIs it right?", [("server.port", "8080"), ("db.host", "pg-1")]),
    ],
)
def test_a_setting_is_taken_with_its_path(text: str, settings: list[tuple[str, str]]) -> None:
    assert taken(text) == settings
    assert all(one.value in text[one.start : one.stop] for one in assigned(text))


@pytest.mark.parametrize(
    "text",
    [
        "BUILD_EXIT=0",
        "API_KEY=5433-abc",
        "JWT_SECRET=a-long-sentence",
        "DATABASE_URL=postgres://admin:geheim@localhost/app",
        "SUPABASE_URL=http:/…(masked)",
        "APP_NAME=<your name>",
        "APP_REGION=[redacted:key]",
        "REGION=$DEFAULT_REGION",
        "if PORT=5433 then",
        "def serve():\n    port: int = 80",
        "port: 80 is what nginx uses\nand the log says so",
        "Traceback:\n  host: db\nKeyError",
    ],
)
def test_what_passes_is_hidden_or_is_code_is_no_setting(text: str) -> None:
    assert taken(text) == []


def test_a_dump_of_an_environment_holds_no_settings() -> None:
    assert taken("\n".join(f"SETTING_{name}X=value{name}" for name in range(60))) == []


def test_a_long_log_is_not_read() -> None:
    assert taken("DATABASE_PORT=5433\n" + "x" * 30_000) == []
