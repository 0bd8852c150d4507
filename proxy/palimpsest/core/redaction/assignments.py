"""
Secrets recognised by the name that they are assigned to: `password=...`, `"api_key": "..."`, `--token ...`.

A name is looked for by its stem, and read only where a sign follows it. Whether what stands behind the sign is a value,
and not code or prose, depends on the name: `password: swordfish` is one, `token: identifier` is none.
"""

from __future__ import annotations

import re
from base64 import b64decode
from enum import Enum

VALUE_CHARS = 16 * 1024  # of a value in quotes at most: a key of 16,384 bits, written in base64, has half of it
JUDGED_CHARS = 96  # of a value: what follows changes nothing
BEFORE_CHARS = 48  # of a name, in front of its stem
MIN_SECRET_CHARS = 4  # a PIN; shorter values are examples
MADE_CHARS = 8  # what machines make is no shorter
LONG_MADE_CHARS = 20  # ... and no name is so long, digits in it
MADE_SEEN_CHARS = 40  # of a value: what follows makes it no more random
MADE_TURNS = 3  # from letters to digits or back, in what machines make; names have two at most (sha256sum)
MIXED_CHARS = 24  # of a key whose name says little; with letters of both cases and digits no identifier is so long
AHEAD_CHARS = 8  # of what follows a value: enough to see whether its line, or its command, ends
PHRASE_CHARS = 12  # of several words, at least
MNEMONIC_WORDS = 12  # BIP 39

STEMS = ("pass", "pwd", "secret", "key", "token", "auth", "mnemonic", "phrase")  # of names, in lower case

_NAMES = {
    "pass": r"passw(?:or)?d|passwort|passphrase|passcode|pass",
    "pwd": r"pwd",
    "secret": r"secret(?:[_-]?access)?(?:[_-]?key)?",
    "key": r"key",
    "token": r"token",
    "auth": r"auth",
    "mnemonic": r"mnemonic",
    "phrase": r"phrase",
}
_ASSIGNED = {
    stem: re.compile(
        rf"""
        (?P<name>{name})(?:_?\d{{1,2}})?(?:(?P<quoted_name>\\{{0,15}}["'`])\]?)?
        (?P<sign>\s{{0,3}}(?::=|=>|={{1,3}}|:)\s{{0,3}}|>(?=[^\s<>]{{1,200}}</)
            |[ ](?:is|was|ist|war|lautet|es|est)[ :]{{1,2}}(?=[^\s-])|[ ]{{1,3}}(?=[^\s-]))
        (?P<quote>\\{{0,15}}["'`])?
        """,
        re.IGNORECASE | re.VERBOSE,
    )
    for stem, name in _NAMES.items()
}
_BARE = re.compile(r"[^\s\"'`\\,;&<>(){}\[\]]{0,4096}")


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


# What stands in front of "key" and "token", without the sign between.
_SECRET_KEYS = _words(
    "api access private auth secret encryption signing master account service_role service-role license subscription"
    " shared deploy ibm iam cloud cloudant"
)
_SPELT_KEYS = ("api ", "access ", "private ", "secret ")
_OTHER_KEYS = _words(
    "public publishable pub primary foreign cache sort partition idempotency dedup deduplication object index unique"
    " translation i18n s3 row hash range group lookup query session storage store"
)
_SECRET_TOKENS = _words("access auth api bot refresh bearer session secret private")
_OTHER_TOKENS = _words(  # of texts, and of pages
    "next page pagination continuation sync cancel cancellation eos bos pad unk mask sep cls special stop start end max"
    " min num per total first last current prev previous count image text input output new each every design"
)
_MNEMONIC_OF = re.compile(r"(?:seed|recovery|backup)[_ -]?\Z")
_FLAG = re.compile(r"(?<![\w-])--?(?:[a-z][\w-]{0,40}[_-])?\Z", re.IGNORECASE)
_SHOUTED = re.compile(r"(?<![\w.-])(?:[A-Z][A-Z\d]*_){0,8}\Z")
_ELEMENT = re.compile(r"<[\w.:-]{0,40}\Z")
_NO_SECRET = re.compile(  # placeholders, types, constants, references, paths
    r"(?i)[$%{<\[*/~@.].*|\W*|x+|\.+|(?:your|my|the|some|example)[_-].*|"
    r"(?:none|null|nil|true|false|undefined|required|optional|empty|unset|hidden|redacted|string|str|bytes?|text|int|integer|number|"
    r"object|any|bool|boolean|example|placeholder|changed?|wrong|correct|invalid|missing|incorrect|see|env|\w*example|"
    r"flag|options?|values?|arguments?|headers?|fields?|parameters?|variables?|"
    r"process\.env\..*|os\.environ.*|self\..*|this\..*|\w*(?:passw|pwd|secret|api_?key|token|passphrase|credential)\w*)"
)
# What somebody tells in prose counts only if it is no word, name or path: "the password is swordfishABC9", and not
# "... is base64-encoded".
_TOLD = re.compile(
    r"(?i)(?!.*-[a-z]+$|\d+[a-z]+$|.*[./]|hmac|(?:sha|md|base|aes|[bs]?crypt|argon|pbkdf|utf|rsa)-?\d)"
    r"(?=\S*\d)(?=\S*[a-z])\S{8,}"
)
_TOLD_VALUE = re.compile(r"[^\s\"'`]{0,96}")  # signs are a part of it
_CALLS = ("(", "[", "{")
_PLAIN = re.compile(r"[\w+/=-]+")
_LINE = re.compile(r"[^\r\n\"'\\]{0,400}")
_IN_TAG = re.compile(r"\[redacted:[a-z0-9-]*\Z")  # what we wrote ourselves names a kind; nothing is assigned to it
_WORD = re.compile(r"[^\W\d_]+")
_IDENTIFIER = re.compile(r"[A-Za-z_][\w.]*")  # of a variable, or attribute
_DIGIT = re.compile(r"\d")
_TURN = re.compile(r"(?<=\d)[A-Za-z]|(?<=[A-Za-z])\d")
_SENTENCE = re.compile(
    r"(?i)\b(?:a|an|and|are|at|be|by|can|cannot|enter|for|forgot|from|has|hash\w*|if|in|incorrect|invalid|is|it|least|must"
    r"|new|no|not|of|on|or|please|required|reset|should|that|the|this|to|use|when|wrong|with|you|your)\b"
)
_PHRASE = re.compile(r"\w[\w !?.,;:'#@&*+-]*")
_ENDS_LINE = re.compile(r"\Z|[\r\n;&]|\\+[rn]")
_ENDS_ARGUMENT = re.compile(r"[ \t]*(?:\Z|[\r\n|;&)\"'`\\#]|-)")


class _NameMeaning(Enum):
    """What a name says of its value."""

    SECRET = "it is one, unless it is a placeholder"
    TOKEN = "it is a secret, or a piece of a text"
    KEY = "it is a secret, or what something is found by"
    BASIC = "it is a name and a password, in base64"
    WORDS = "it is the words that a wallet is restored from"


class Assignments:
    """The assignments of one text; asked for in rising places."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._bare = (0, 0)  # the last value without quotes: what begins in it ends with it

    def at(self, stem: str, at: int) -> tuple[int, int, str] | None:
        """The secret that is assigned to the name that has its stem at this place: start, stop, kind."""
        text = self._text
        match = _ASSIGNED[stem].match(text, at)
        if match is None:
            return None
        before = text[max(0, at - BEFORE_CHARS) : at]
        says, kind = _parse_name(match["name"], before)
        if says is None or _IN_TAG.search(before):
            return None
        sign, quote, start = match["sign"], match["quote"] or "", match.end()
        is_flag = "-" in before and _FLAG.search(before) is not None
        is_told = sign.strip(" :").isalpha()
        is_sign = says is _NameMeaning.SECRET if is_told else bool(sign.strip()) or is_flag
        if not is_sign or (sign == ">" and not _ELEMENT.search(before)):
            return None
        stop = self._end(start, quote, says)
        if is_told and not quote and (told := _TOLD_VALUE.match(text, start)):
            stop = start + len(told[0].rstrip(".,;:"))
        value = text[start : min(stop, start + JUDGED_CHARS)].rstrip(".")
        if len(value) < MIN_SECRET_CHARS or _NO_SECRET.fullmatch(value) or "[redacted:" in value:
            return None
        if says is _NameMeaning.BASIC:
            is_secret = _is_basic(text[start:stop])
        elif says is _NameMeaning.WORDS:
            is_secret = len(words := value.split()) >= MNEMONIC_WORDS and all(_WORD.fullmatch(word) for word in words)
        elif is_told:
            is_secret = _TOLD.fullmatch(value) is not None
        elif quote:
            is_secret = _is_secret_in_quotes(value, says)
        else:
            ahead = text[stop : stop + AHEAD_CHARS]
            if is_flag:
                is_given = sign == "=" or _ENDS_ARGUMENT.match(ahead) is not None
            else:
                shouts = match["name"].isupper() and (
                    says is _NameMeaning.SECRET or _SHOUTED.search(before) is not None
                )
                ends = says is _NameMeaning.SECRET and _ENDS_LINE.match(ahead) is not None
                is_given = (ends or (shouts and sign == "=")) and not match["quoted_name"]
            is_secret = not ahead.startswith(_CALLS) and _is_bare_secret(value, says, is_given)
        return (start, stop, kind) if is_secret else None

    def _end(self, start: int, quote: str, says: _NameMeaning) -> int:
        """The end of a value; its start where it goes on in another line."""
        text = self._text
        if quote:
            stop = text.find(quote, start, start + VALUE_CHARS)
            while stop > start and len(quote) == 1 and text[stop - 1] == "\\" and text[stop - 2] != "\\":
                stop = text.find(quote, stop + 1, start + VALUE_CHARS)
            return start if stop < start or "\n" in text[start:stop] else stop
        if says is _NameMeaning.WORDS:
            line = _LINE.match(text, start)
            return line.end() if line else start
        first, stop = self._bare
        if not first <= start <= stop:
            stop = start
            while (piece := _BARE.match(text, stop)) and piece.end() > stop:
                stop = piece.end()
            self._bare = (start, stop)
        return stop


def _parse_name(name: str, before: str) -> tuple[_NameMeaning | None, str]:
    """What a name says, from its stem and what stands before it, and the kind of secret that it names."""
    word, lower = name.lower(), before.lower()
    owner = lower.rstrip("_-")
    begins = not before[-1:].isalnum()  # of a word: my_key, and myKey, but not monkey
    humps = begins or (before[-1].islower() and name[0].isupper())
    if word == "pass":
        return (
            _NameMeaning.SECRET
            if before[-1:] in ("_", "-")
            else _NameMeaning.TOKEN
            if begins and name.islower()
            else None
        ), "password"
    if word == "key":
        if owner.endswith(_SECRET_KEYS):
            return _NameMeaning.SECRET, f"{next(of for of in _SECRET_KEYS if owner.endswith(of)).replace('_', '-')}-key"
        if owner.endswith(_SPELT_KEYS):
            return _NameMeaning.TOKEN, f"{owner.split()[-1]}-key"
        return (_NameMeaning.KEY if humps and before[-1:].strip() and not owner.endswith(_OTHER_KEYS) else None), "key"
    if word == "token":
        if owner.endswith(_SECRET_TOKENS):
            return _NameMeaning.SECRET, word
        return (None if owner.endswith(_OTHER_TOKENS) else _NameMeaning.TOKEN), word
    if word == "auth":
        return _NameMeaning.BASIC, "basic-auth-credentials"
    if word == "mnemonic" or word == "phrase":
        return (_NameMeaning.WORDS if word == "mnemonic" or _MNEMONIC_OF.search(lower) else None), "mnemonic"
    return _NameMeaning.SECRET, "-".join(re.findall(r"[a-z]+", word))


def _is_secret_in_quotes(value: str, says: _NameMeaning) -> bool:
    """Whether a quoted value is a secret, given what the name before it says."""
    if any(c.isspace() for c in value):
        is_phrase = len(value) >= PHRASE_CHARS and _PHRASE.fullmatch(value) is not None
        return says is _NameMeaning.SECRET and is_phrase and not _SENTENCE.search(value)
    if says is _NameMeaning.SECRET:
        return True
    return _mixes_cases_and_digits(value) if says is _NameMeaning.KEY else _is_made(value)


def _is_bare_secret(value: str, says: _NameMeaning, is_given: bool) -> bool:
    """
    Args:
        is_given: nothing but a value can stand there: an option's, or one that ends its line.
    """
    if says is _NameMeaning.KEY:
        return _mixes_cases_and_digits(value)
    has_digit = _DIGIT.search(value) is not None
    if says is _NameMeaning.TOKEN:
        return _is_made(value) or (is_given and not value.isdigit() and (has_digit or "." not in value))
    if _IDENTIFIER.fullmatch(value) and not has_digit:
        return is_given and _WORD.fullmatch(value) is not None
    return True


def _is_made(value: str) -> bool:
    """Whether a machine made the value: letters and digits in no order that a name has."""
    turns = len(_TURN.findall(value, 0, MADE_SEEN_CHARS))
    return len(value) >= MADE_CHARS and (turns >= MADE_TURNS or (turns > 0 and len(value) >= LONG_MADE_CHARS))


def _mixes_cases_and_digits(value: str) -> bool:
    classes = (str.isupper, str.islower, str.isdigit)
    return (
        len(value) >= MIXED_CHARS and _PLAIN.fullmatch(value) is not None and all(any(map(c, value)) for c in classes)
    )


def _is_basic(value: str) -> bool:
    """Whether a value is name and password of HTTP Basic authentication, in Base64."""
    try:
        name, colon, password = b64decode(value, validate=True).partition(b":")
    except ValueError:
        return False
    return bool(name and colon and password) and (name + password).isascii()
