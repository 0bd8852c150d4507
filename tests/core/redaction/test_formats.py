"""Formats of credentials are found whole, and what only looks like one stays. No key here is one: all are made up."""

from __future__ import annotations

import secrets

import pytest
from palimpsest.core.caller.proxy_keys import PREFIX
from palimpsest.core.redaction.formats import LONG_CHARS, Format, long_formats, short_formats
from palimpsest.core.redaction.redaction import redact
from palimpsest.memory.operation.key_service import KEY_BYTES

from tests.patterns import example

NAMES = [f"{form.kind} {form.anchor.strip()}" for form in long_formats()]


def secret_of(form: Format) -> str:
    """What the format matches, and nothing of it named so that another rule could take it for a secret too."""
    found = example(form.pattern)
    match = form.pattern.fullmatch(found)
    assert match is not None, found
    return match[form.group]


AROUND = ("{}", "it is {} there.", "a\n{}\nb", '{{"a": "x\\n{}\\n"}}', "a,{};b", "({})", "x%3D{}&")


@pytest.mark.repeats
@pytest.mark.parametrize("form", long_formats(), ids=NAMES)
def test_each_format_is_found_wherever_it_stands(form: Format) -> None:
    for around in AROUND:
        text = around.format(example(form.pattern))
        assert secret_of(form) in text
        cleaned = redact(text)
        assert secret_of(form) not in cleaned and "[redacted:" in cleaned, around
        assert redact(cleaned) == cleaned


def test_a_key_that_this_proxy_made_and_a_tool_printed_is_found() -> None:
    made = PREFIX + secrets.token_urlsafe(KEY_BYTES)
    assert redact(f"the key is shown now and never again:\n{made}\n").endswith("again:\n[redacted:palimpsest-key]\n")


@pytest.mark.parametrize("form", long_formats(), ids=NAMES)
def test_each_format_is_long_enough_to_be_looked_for_and_holds_its_anchor(form: Format) -> None:
    found = example(form.pattern)
    assert len(found) >= LONG_CHARS and " " not in found
    assert any(found.startswith(form.anchor, back) for back in form.behind)


@pytest.mark.parametrize(
    "form", short_formats(), ids=[f"{form.kind} {form.anchor.strip()}" for form in short_formats()]
)
def test_each_short_format_holds_its_anchor_at_its_start(form: Format) -> None:
    assert form.group and form.pattern.pattern.startswith(form.anchor)


@pytest.mark.parametrize(
    "command",
    [
        *("mysql -p{} shop", "mariadb -p{} shop", "sshpass -p {} ssh host", "sshpass -p{} ssh host"),
        *("docker login -u ann -p {}", "redis-cli -a {} ping", "curl -u ann:{} https://example.com"),
        *("curl --user ann:{} https://example.com", "curl --proxy-user ann:{} https://example.com"),
    ],
)
def test_a_password_on_a_command_line_goes_and_the_rest_stays(command: str) -> None:
    assert redact(command.format("hunter22x")) == command.format("[redacted:password]")
