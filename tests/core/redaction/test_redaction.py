"""Credentials leave, all else stays. The keys are made up, and put together from parts so that no scanner rings."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import uuid

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from palimpsest.core.redaction.redaction import is_withheld, redact, redacted_name
from palimpsest.wire.pieces import PIECE_CHARS

ALNUM = "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zA" * 4
HEX = hashlib.sha256(b"made up").hexdigest()
PEM = "-----BEGIN {0}PRIVATE KEY-----\n" + ALNUM[:64] + "\n" + ALNUM[:20] + "==\n-----END {0}PRIVATE KEY-----"
JWT = ".".join(
    ("eyJ" + "hbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9", "eyJ" + "zdWIiOiIxMjM0NTY3ODkwIn0", "dozjgNryP4J3jVmNHl0w5N_XgL0")
)

KEYS = {
    "openai": ("openai-key", "sk-" + ALNUM[:48]),
    "openai project": ("openai-key", "sk-" + "proj-" + ALNUM[:30] + "_" + ALNUM[:20]),
    "anthropic": ("anthropic-key", "sk-" + "ant-api03-" + ALNUM[:40] + "-" + ALNUM[:20]),
    "aws id": ("aws-access-key", "AK" + "IA" + "IOSFODNN7EXAMPL3"),
    "github": ("github-token", "gh" + "p_" + ALNUM[:36]),
    "github fine-grained": ("github-token", "github" + "_pat_" + ALNUM[:22] + "_" + ALNUM[:59]),
    "gitlab": ("gitlab-token", "gl" + "pat-" + ALNUM[:20]),
    "slack bot": ("slack-token", "xo" + "xb-123456789012-1234567890123-" + ALNUM[:24]),
    "stripe": ("stripe-key", "sk" + "_live_" + ALNUM[:99]),
    "google": ("google-key", "AI" + "za" + ALNUM[:35]),
    "hugging face": ("huggingface-token", "h" + "f_" + ALNUM[:34]),
    "jwt": ("json-web-token", JWT),
    "sendgrid": ("sendgrid-api-key", "S" + "G." + ALNUM[:22] + "." + ALNUM[:43]),
    "pypi": ("pypi-token", "py" + "pi-AgEIcHlwaS5vcmc" + ALNUM[:80]),
    "rsa": ("private-key", PEM.format("RSA ")),
    "pkcs8": ("private-key", PEM.format("")),
}


@pytest.mark.parametrize(("kind", "secret"), KEYS.values(), ids=KEYS)
@pytest.mark.parametrize("around", ["{}", "use {} for it.", "first line\nexport X='{}'\nlast line", '{{"k": "{}"}}'])
def test_a_known_format_is_replaced_whole_and_nothing_around_it(kind: str, secret: str, around: str) -> None:
    assert redact(around.format(secret)) == around.format(f"[redacted:{kind}]")


ASSIGNED = {
    "yaml": ("password: hunter2", "password: [redacted:password]"),
    "plain word that ends the line": ("db:\n  password: swordfish\n", "db:\n  password: [redacted:password]\n"),
    "env": ("DB_PASSWORD=swordfish", "DB_PASSWORD=[redacted:password]"),
    "python": ('api_key = "a1b2c3d4"', 'api_key = "[redacted:api-key]"'),
    "camel case": ("const clientSecret = 'abcd-efgh';", "const clientSecret = '[redacted:secret]';"),
    "json": ('{"user": "ann", "password": "hunter2"}', '{"user": "ann", "password": "[redacted:password]"}'),
    "json in json": (r"{\"password\": \"hunter2\"}", r"{\"password\": \"[redacted:password]\"}"),
    "connection string": ("Server=db;Password=s3cret!;Uid=ann", "Server=db;Password=[redacted:password];Uid=ann"),
    "url": ("postgres://ann:" + "hunter2@db:5432/x", "postgres://ann:[redacted:basic-auth-credentials]@db:5432/x"),
    "header": ("Authorization: Bearer " + "abc.DEF-123", "Authorization: Bearer [redacted:authorization]"),
    "aws secret": (
        "aws_secret_access_key = " + ALNUM[:40],
        "aws_secret_access_key = [redacted:secret-access-key]",
    ),
    "query": ("https://x.y/z?access_token=" + "a1b2c3&n=2", "https://x.y/z?access_token=[redacted:token]&n=2"),
}


@pytest.mark.parametrize(("text", "expected"), ASSIGNED.values(), ids=ASSIGNED)
def test_what_is_assigned_to_a_secret_name_is_replaced(text: str, expected: str) -> None:
    assert redact(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "commit 9fceb02d0ae598e95dc970b74767f19372d61af8 by ann",
        hashlib.sha256(b"image").hexdigest(),
        str(uuid.UUID(int=2**120 + 12345)),
        "max_tokens=4096, token count: 512, prompt_tokens: 17",
        "I forgot my password again. Which password? The one for the wiki.",
        "Password: must be at least eight characters, with a sign",
        "The password is checked in auth.py: see check_password().",
        "password = getpass.getpass()",
        'password = os.environ["DB_PASSWORD"]',
        "login(user=user, password=password, secret=self.secret)",
        "def login(user: str, password: str, api_key: str | None = None) -> bool:",
        'password: "${DB_PASSWORD}"',
        "api_key: <your key>",
        'API_KEY="your-api-key"',
        "secretary: Jane42",
        "pwd: /home/ann/project7",
        "call_" + ALNUM[:24],
        "chatcmpl-" + ALNUM[:29],
        "pip install scikit-learn==1.5.2 && import sk-learn-contrib",
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
        "src/proxy/core/redaction_rules_v2.py:1234: APPLICATIONS and ACCOUNTS",
        "https://user@example.com/path:8080/x@y",
        "",
    ],
)
def test_hashes_ids_code_and_prose_stay(text: str) -> None:
    assert redact(text) == text


def test_tool_arguments_stay_json() -> None:
    arguments = json.dumps({"cmd": f"curl -H 'Authorization: Bearer {JWT}' x", "password": "hunter2", "n": 7})
    assert json.loads(redact(arguments)) == {
        "cmd": "curl -H 'Authorization: Bearer [redacted:authorization]' x",
        "password": "[redacted:password]",
        "n": 7,
    }


def test_a_private_key_that_was_cut_off_is_replaced_to_its_last_line() -> None:
    cut = PEM.format("EC ").rpartition("\n-----END")[0]
    assert redact(f"cat key.pem\n{cut}") == "cat key.pem\n[redacted:private-key]"


def test_a_certificate_is_public_and_stays() -> None:
    certificate = PEM.format("").replace("PRIVATE KEY", "CERTIFICATE")
    assert redact(certificate) == certificate
    assert redact(f"{certificate}\n{PEM.format('')}") == f"{certificate}\n[redacted:private-key]"


def test_a_private_key_that_was_cut_off_does_not_take_in_the_one_behind_it() -> None:
    cut = PEM.format("EC ").rpartition("\n-----END")[0]
    assert redact(f"{cut}\n(then) {PEM.format('RSA ')}\nend") == (
        "[redacted:private-key](then) [redacted:private-key]\nend"
    )


def test_a_full_stop_behind_a_secret_stays() -> None:
    secret = KEYS["github"][1]
    assert redact(f"The token is {secret}. Keep it.") == "The token is [redacted:github-token]. Keep it."
    assert redact(f"The token is {secret}...") == "The token is [redacted:github-token]..."


def test_a_secret_far_into_a_long_text_is_found_whatever_slice_it_falls_in() -> None:
    line = "nothing to see on this line, move on\n"
    text = line * (3 * PIECE_CHARS // len(line)) + KEYS["github"][1] + "\n" + line
    assert redact(text) == text.replace(KEYS["github"][1], "[redacted:github-token]")


SAID = st.lists(
    st.sampled_from(
        [*(secret for _, secret in KEYS.values()), *(text for text, _ in ASSIGNED.values()), " ", "\n", "İ"]
    )
    | st.text(max_size=20),
    max_size=8,
)


@given(SAID)
@example([KEYS["sendgrid"][1], ":0000"])
def test_redacting_again_changes_nothing(said: list[str]) -> None:
    once = redact(" ".join(said))
    assert redact(once) == once


@given(SAID)
def test_no_known_key_survives_among_other_text(said: list[str]) -> None:
    once = redact("\n".join(said))
    assert not [secret for _, secret in KEYS.values() if secret in once]


def test_the_formats_are_compiled_when_first_needed_only() -> None:
    check = (
        "import palimpsest.core.redaction.redaction, palimpsest.core.redaction.formats as c; "
        "assert not c.long_formats.cache_info().misses"
    )
    subprocess.run([sys.executable, "-c", check], check=True)


@pytest.mark.repeats
@pytest.mark.parametrize("fragment", ["pwd=", "token=", "a_key: "])
def test_a_text_that_would_take_seconds_is_withheld_and_never_stored_as_it_is(fragment: str) -> None:
    text = fragment * 150_000 + KEYS["github"][1]
    cleaned = redact(text)
    assert cleaned == f"[withheld: {len(text)} characters, sha256 {hashlib.sha256(text.encode()).hexdigest()}]"
    assert is_withheld(cleaned, text)
    assert redact(cleaned) == cleaned and not is_withheld(cleaned, cleaned)


def test_what_people_and_programs_write_is_never_withheld() -> None:
    lines = "".join(f'  "password_{n}": "x{n}y", token_count={n}, key: {n}\n' for n in range(30_000))
    assert not is_withheld(redact(lines), lines)


def test_names_lose_their_credentials_and_stay_different() -> None:
    one, other = (f"app {kind} {KEYS[kind][1]}" for kind in ("github", "gitlab"))
    named = redacted_name(one, b"k")
    assert KEYS["github"][1] not in named and named.startswith("app github [redacted:github-token] ")
    assert named == redacted_name(one, b"k") != redacted_name(one, b"other")
    assert redacted_name(KEYS["rsa"][1], b"k") != redacted_name(KEYS["pkcs8"][1], b"k")
    assert len({named, redacted_name(other, b"k"), redacted_name("x" * 10_000, b"k")}) == 3
    assert redacted_name("ann@example.com", b"k") == "ann@example.com"
    assert len(redacted_name("pwd=" * 1_000_000, b"k")) < 100
