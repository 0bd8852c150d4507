"""
What in a text opens somebody's door? Credentials become `[redacted:kind]` before they reach the disk.

Three sources, none of them entropy, so that commit hashes, uuids and other ids stay: the patterns of the maintained
package `detect-secrets` (its regex plugins), a small table of formats that it does not know yet, and assignments such
as `password=...`. Everything else is left as it is, and a JSON text stays JSON: only the secret itself is replaced.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

SLICE_CHARS = 64 * 1024  # a pattern holds the interpreter while it searches: others get their turn between slices

Span = tuple[int, int, str]
"""Characters `start` to `stop` are a credential of a kind."""


def redact(text: str) -> str:
    """
    The text with every known credential replaced by `[redacted:kind]`.

    Applying it again changes nothing. The first call loads the patterns (0.3 s): make it off the event loop.
    """
    spans = list(_keys_in_armour(text))
    for start, stop in _slices(text):
        piece = text[start:stop]
        spans += [(start + first, start + last, kind) for first, last, kind in (*_formats(piece), *_assignments(piece))]
    if not spans:
        return text
    pieces, at = [], 0
    for first, last, kind in sorted(spans, key=lambda span: span[0]):  # stable: of two at one place, the format's name
        if first >= at:
            pieces += [text[at:first], f"[redacted:{kind}]"]
        at = max(at, last)
    return "".join([*pieces, text[at:]])


def _slices(text: str) -> Iterator[tuple[int, int]]:
    """Pieces of the text that end at a line's end where one is near; no credential runs over lines."""
    start = 0
    while len(text) - start > SLICE_CHARS:
        stop = text.rfind("\n", start, start + SLICE_CHARS) + 1 or start + SLICE_CHARS
        yield start, stop
        start = stop
    yield start, len(text)


# --- private keys --------------------------------------------------------------------------------

_ARMOUR = re.compile(
    r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?:.*?-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----"
    r"|(?:[A-Za-z0-9+/=:,\- ]|\\[nr]|[\r\n])*)"  # cut off: what looks like its lines
    r"|PuTTY-User-Key-File-\d:.*?Private-MAC: *\w+",
    re.DOTALL,
)


def _keys_in_armour(text: str) -> Iterator[Span]:
    if "PRIVATE KEY" in text or "PuTTY-User-Key-File" in text:
        for match in _ARMOUR.finditer(text):
            yield *match.span(), "private-key"


# --- formats -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Format:
    """`anchors`: one of these stands in every text that it matches; empty: none is known, it is always tried."""

    kind: str
    pattern: re.Pattern[str]
    anchors: tuple[str, ...] = ()
    group: int = 0  # of the pattern: the secret itself
    is_short: bool = False  # may stand in a line without any long word


# What detect-secrets 1.5 does not know. Source: the providers' documentation of their key formats.
_OWN_FORMATS = tuple(
    _Format(kind, re.compile(pattern), anchors, group, is_short=bool(group))
    for kind, pattern, anchors, group in (
        ("anthropic-key", r"(?<![A-Za-z0-9])sk-ant-[\w-]{16,}", ("sk-ant-",), 0),
        ("openai-key", r"(?<![A-Za-z0-9])sk-(?:(?:proj|svcacct|admin|or-v1)-[\w-]{20,}|[A-Za-z0-9]{20,})", ("sk-",), 0),
        ("stripe-key", r"(?<![A-Za-z0-9])(?:[rs]k_(?:live|test)|whsec)_[0-9A-Za-z]{16,}", ("k_", "whsec_"), 0),
        ("github-token", r"github_pat_\w{22,}", ("github_pat_",), 0),
        ("google-key", r"(?<![A-Za-z0-9])AIza[\w-]{35}", ("AIza",), 0),
        ("google-token", r"(?<![A-Za-z0-9])ya29\.[\w-]{20,}", ("ya29.",), 0),
        ("huggingface-token", r"(?<![A-Za-z0-9])hf_[A-Za-z0-9]{30,}", ("hf_",), 0),
        ("groq-key", r"(?<![A-Za-z0-9])gsk_[A-Za-z0-9]{40,}", ("gsk_",), 0),
        ("xai-key", r"(?<![A-Za-z0-9])xai-[A-Za-z0-9]{40,}", ("xai-",), 0),
        ("npm-token", r"(?<![A-Za-z0-9])npm_[A-Za-z0-9]{36}", ("npm_",), 0),
        ("databricks-token", r"(?<![A-Za-z0-9])dapi[a-f0-9]{32}", ("dapi",), 0),
        ("digitalocean-token", r"(?<![A-Za-z0-9])do[opr]_v1_[a-f0-9]{64}", ("_v1_",), 0),
        ("slack-token", r"(?<![A-Za-z0-9])xox[a-z]-[\w-]{10,}|xapp-\d-[\w-]{10,}", ("xox", "xapp-"), 0),
        (
            "authorization",
            r"(?i:authorization)[\"'\\]{0,3}\s{0,3}[:=]\s{0,3}[\"'\\]{0,3}(?i:bearer|basic|token|apikey)\s+([\w.~+/=-]{8,})",
            ("uthorization", "UTHORIZATION"),
            1,
        ),
    )
)

# Of the modules in detect_secrets.plugins: what their patterns cannot do without, and whether group 1 is the secret.
_ANCHORS: dict[str, tuple[str, ...]] = {
    "artifactory": ("AKC", "AP"),
    "aws": ("A3T", "ABIA", "ACCA", "AKIA", "ASIA", "aws", "Aws", "AWS"),
    "azure_storage_key": ("AccountKey=",),
    "basic_auth": ("://",),
    "github_token": ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
    "gitlab_token": ("gl", "GR1348941"),
    "jwt": ("eyJ",),
    "mailchimp": ("-us",),
    "npm": ("_authToken",),
    "openai": ("T3BlbkFJ",),
    "pypi_token": ("pypi-",),
    "sendgrid": ("SG.",),
    "slack": ("xox", "XOX", "hooks.slack.com"),
    "square_oauth": ("sq0csp-",),
    "stripe": ("k_live_",),
    "telegram_token": (":",),
    "twilio": ("AC", "SK"),
}
_SECRET_IS_GROUP_1 = frozenset({"basic_auth", "cloudant", "ibm_cloud_iam", "ibm_cos_hmac", "softlayer"})
_NOT_FORMATS = frozenset(
    {"base", "high_entropy_strings", "ip_public", "keyword", "private_key"}  # the last two are done better here
)
_LONG_CHARS = 20  # every format that is not short has as many without a space, and a digit among them
_DIGIT = re.compile(r"\d")
_TAIL = re.compile(r"[\w+/=-]*(?:\.[\w+/=-]+)*")  # patterns of fixed length may leave the end of a longer key
_QUOTES = " \t\r\n\"'`=:"


@lru_cache(1)
def _known_formats() -> tuple[_Format, ...]:
    plugins = importlib.import_module("detect_secrets.plugins")
    found = list(_OWN_FORMATS)
    for module in sorted(info.name for info in pkgutil.iter_modules(plugins.__path__)):
        if module in _NOT_FORMATS:
            continue
        for plugin in vars(importlib.import_module(f"detect_secrets.plugins.{module}")).values():
            patterns = getattr(plugin, "denylist", None)
            if isinstance(patterns, Sequence) and isinstance(plugin, type):
                kind = "-".join(re.findall(r"[a-z0-9]+", str(plugin.secret_type).lower()))  # type: ignore[attr-defined]
                group = 1 if module in _SECRET_IS_GROUP_1 else 0
                anchors = _ANCHORS.get(module, ())
                found += [
                    _Format(kind, p, anchors, group if p.groups else 0, is_short=module == "basic_auth")
                    for p in patterns
                ]
    return tuple(found)


def _formats(text: str) -> Iterator[Span]:
    for form in _known_formats():
        if form.is_short and _may_hold(form, text):
            yield from _matches(form, text, 0, len(text))
    start = 0
    for line in text.splitlines(keepends=True):
        stop = start + len(line)
        if any(len(word) >= _LONG_CHARS and _DIGIT.search(word) for word in line.split()):
            for form in _known_formats():
                if not form.is_short and _may_hold(form, line):
                    yield from _matches(form, text, start, stop)
        start = stop


def _may_hold(form: _Format, text: str) -> bool:
    return not form.anchors or any(anchor in text for anchor in form.anchors)


def _matches(form: _Format, text: str, start: int, stop: int) -> Iterator[Span]:
    for match in form.pattern.finditer(text, start, stop):
        first, last = match.span(form.group)
        if not form.group:
            found = match[0]
            first += len(found) - len(found.lstrip(_QUOTES))
            last = _end(text, last - len(found) + len(found.rstrip(_QUOTES)))
        if form.group or _DIGIT.search(text, first, last):  # a word in capitals is no key
            yield first, last, form.kind


def _end(text: str, stop: int) -> int:
    tail = _TAIL.match(text, stop)
    return tail.end() if tail else stop


# --- assignments ---------------------------------------------------------------------------------

_STEMS = (  # in lower case; where a name of `_ASSIGNED` begins
    "passw passphrase passcode pwd secret apikey api_key api-key _token -token _pass access private auth".split()  # noqa: SIM905
)
_ASSIGNED = re.compile(
    r"""
    (?P<name>passw(?:or)?d|passphrase|passcode|pwd|secret(?:[_-]?access)?(?:[_-]?key)?|api[_-]?key|apikey
        |(?:(?<=access)|(?<=auth)|(?<=api)|(?<=bot)|(?<=refresh)|(?<=bearer)|(?<=session)|(?<=secret))[_-]token
        |(?:access|private|auth)[_-]?key|_pass)
    (?:_?\d{1,2})?(?P<quoted_name>\\*["'`])?\]?
    (?P<sign>\s{0,3}(?::=|=>|={1,2}|:)\s{0,3})
    (?P<quote>\\*["'`])?
    (?P<value>(?(quote)[^"'`\\\s]+|[^\s"'`\\,;&<>(){}\[\]]+))
    """,
    re.IGNORECASE | re.VERBOSE,
)
_MIN_SECRET_CHARS = 4  # a PIN; shorter values are examples
_NO_SECRET = re.compile(  # placeholders, types, constants, references, paths
    r"(?i)[$%{<\[*/~@.].*|\W*|.*\[redacted:.*|x+|\.+|(?:your|my|the|some|example)[_-].*|"
    r"(?:none|null|nil|true|false|undefined|required|optional|empty|unset|hidden|string|str|bytes?|text|int|integer|number|"
    r"object|any|bool|boolean|example|placeholder|changed?|wrong|correct|invalid|missing|incorrect|see|env|\w*example|"
    r"process\.env\..*|os\.environ.*|self\..*|this\..*|\w*(?:passw|pwd|secret|api_?key|token|passphrase|credential)\w*)"
)
_IN_TAG = re.compile(r"\[redacted:[a-z0-9-]*$")  # what we wrote ourselves names a kind, and nothing is assigned to it
_TAG_CHARS = 40  # of the longest such tag
_WORD = re.compile(r"[^\W\d_]+")
_NAME = re.compile(r"[A-Za-z_][\w.]*")  # of a variable, or attribute
_ASCII_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}


def _assignments(text: str) -> Iterator[Span]:
    lower = text.lower()
    if len(lower) != len(text):  # İ becomes two characters
        lower = text.translate(_ASCII_LOWER)
    for stem in _STEMS:
        at = lower.find(stem)
        while at >= 0:
            match = _ASSIGNED.match(text, at)
            if match and _is_secret(text, match):
                yield *match.span("value"), "-".join(re.findall(r"[a-z]+", match["name"].lower()))
            at = lower.find(stem, at + 1)


def _is_secret(text: str, match: re.Match[str]) -> bool:
    """
    Whether what is assigned is a value, and not code or prose.

    In quotes: whatever is no placeholder. Bare: what has a digit or a sign in it and is no expression; a plain word
    only where nothing follows it (`password: swordfish`), or right behind an equals sign after a name in capitals.
    """
    value = match["value"].rstrip(".")
    if len(value) < _MIN_SECRET_CHARS or _NO_SECRET.fullmatch(value):
        return False
    if _IN_TAG.search(text, max(0, match.start() - _TAG_CHARS), match.start()):
        return False
    if match["quote"]:
        return text.startswith(match["quote"], match.end("value"))
    ahead = text[match.end("value") : match.end("value") + 1]
    if ahead and ahead in "([{":
        return False
    if _NAME.fullmatch(value) and not any(c.isdigit() for c in value):
        ends_line = not ahead or ahead in "\r\n;&"
        return bool(_WORD.fullmatch(value)) and (ends_line or match["name"].isupper()) and not match["quoted_name"]
    return True
