"""
How many tokens is a text, and how large is a model's window?

Encodings and windows come from the files that the litellm package carries, found without importing it: no network, no
two seconds of import. Where a model's tokenizer is not public, o200k_base times a ratio learnt from reported usage.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from importlib.util import find_spec
from math import ceil
from pathlib import Path

import orjson
import tiktoken

from proxy.domain import Chat, Fingerprint
from proxy.errors import faults
from proxy.policy import PressurePolicy

MESSAGE_TOKENS = 4  # role and separators of one message (OpenAI cookbook, "How to count tokens")
MEDIA_TOKENS = 765  # a 1024 x 1024 image in high detail, OpenAI's published figure; one number for all media
CACHED_COUNTS = 200_000  # some 20 MB: the messages of a few hundred long conversations
LEARNING_RATE = 0.2  # of the ratio, per reported usage; one odd report moves it little
MAX_RATIO = 4.0  # a report beyond is not about the tokenizer (cached or hidden prompts)
_PUBLIC = (("gpt-4o", "o200k_base"), ("gpt-4.", "o200k_base"), ("gpt-4", "cl100k_base"), ("gpt-3.5", "cl100k_base"))
_O200K = ("gpt-", "chatgpt-", "o1", "o3", "o4", "codex")


class TokenCounter:
    """Counts prompts; remembers the count of each message by its fingerprint. Not shared between threads."""

    def __init__(self, policy: PressurePolicy) -> None:
        self._policy = policy
        self._counts: OrderedDict[tuple[str, int], int] = OrderedDict()
        self._ratios: dict[str, float] = {}
        self._windows = _windows()

    def __repr__(self) -> str:
        return f"<TokenCounter [{len(self._counts)} counts, {len(self._windows)} windows]>"

    def uncounted_chars(self, chat: Chat, prints: Sequence[Fingerprint]) -> int:
        """Characters that `prompt` would have to encode: above 64 kB, do it off the event loop."""
        encoding, _ = self._encoding(chat.model)
        return sum(
            len(message.text)
            for message, print in zip(chat.messages, prints, strict=True)
            if (encoding, print.full) not in self._counts
        )

    def prompt(self, chat: Chat, prints: Sequence[Fingerprint]) -> int:
        """
        Tokens of a request as the client sent it.

        Args:
            prints: of all `chat.messages`, in order.
        """
        encoding, ratio = self._encoding(chat.model)
        total = self._tools(chat, encoding)
        for message, print in zip(chat.messages, prints, strict=True):
            key = (encoding, print.full)
            count = self._counts.get(key)
            if count is None:
                parts = (message.text, *(f"{call.name}{call.arguments}" for call in message.calls))
                count = sum(_count(part, encoding) for part in parts if part)
                count += MESSAGE_TOKENS + MEDIA_TOKENS * len(message.media)
                self._counts[key] = count
                if len(self._counts) > CACHED_COUNTS:
                    self._counts.popitem(last=False)
            total += count
        return ceil(total * ratio)

    def text(self, text: str, model: str) -> int:
        """Tokens of a text for one model, rounded up."""
        encoding, ratio = self._encoding(model)
        return ceil(_count(text, encoding) * ratio)

    def window(self, model: str) -> int:
        """Input window in tokens: the policy's, else the built-in table's, else the policy's default."""
        for pattern, tokens in self._policy.window_tokens.items():
            if fnmatchcase(model, pattern):
                return tokens
        bare = model.rpartition("/")[2]
        return self._windows.get(model) or self._windows.get(bare) or self._policy.default_window_tokens

    def learn(self, model: str, counted_tokens: int, reported_tokens: int) -> None:
        """Correct the ratio of a model whose tokenizer is not public by what its provider reports."""
        if _public(model) or counted_tokens <= 0 or reported_tokens <= 0:
            return
        ratio = self._ratios.get(model, self._policy.unknown_tokenizer_ratio)
        seen = min(MAX_RATIO, max(1 / MAX_RATIO, ratio * reported_tokens / counted_tokens))
        self._ratios[model] = ratio + LEARNING_RATE * (seen - ratio)

    def _encoding(self, model: str) -> tuple[str, float]:
        public = _public(model)
        return (
            (public, 1.0) if public else ("o200k_base", self._ratios.get(model, self._policy.unknown_tokenizer_ratio))
        )

    def _tools(self, chat: Chat, encoding: str) -> int:
        tools = chat.raw.get("tools")
        if not tools:
            return 0
        text = orjson.dumps(tools).decode()
        key = (encoding, hash(text))
        if key not in self._counts:
            self._counts[key] = _count(text, encoding)
        return self._counts[key]


def warm() -> None:
    """
    Load the encodings; the first use of each costs a fifth of a second.

    Raises:
        MemoryFault: the encodings are not to be had.
    """
    for name in ("o200k_base", "cl100k_base"):
        encoder(name)


def _public(model: str) -> str:
    bare = model.rpartition("/")[2].lower()
    for prefix, encoding in _PUBLIC:
        if bare.startswith(prefix):
            return encoding
    return "o200k_base" if bare.startswith(_O200K) and not bare.startswith("gpt-oss") else ""


def _count(text: str, encoding: str) -> int:
    return len(encoder(encoding).encode_ordinary(text))


@lru_cache(maxsize=8)
def encoder(name: str) -> tiktoken.Encoding:
    """
    One of tiktoken's encodings.

    Raises:
        MemoryFault: it is not to be had.
    """
    folder = _litellm_folder() / "litellm_core_utils" / "tokenizers"
    if folder.is_dir():
        os.environ.setdefault("TIKTOKEN_CACHE_DIR", str(folder))
    with faults(Exception, f"loading the token encoding {name}"):  # tiktoken raises whatever its download raises
        return tiktoken.get_encoding(name)


def _litellm_folder() -> Path:
    spec = find_spec("litellm")
    places = list(spec.submodule_search_locations or ()) if spec else []
    return Path(places[0]) if places else Path("litellm-is-not-installed")


def _windows() -> Mapping[str, int]:
    """Model to input window, from the table that litellm carries; empty when it is not there."""
    path = _litellm_folder() / "model_prices_and_context_window_backup.json"
    try:
        table = orjson.loads(path.read_bytes())
    except (OSError, orjson.JSONDecodeError):
        return {}
    windows = {}
    for model, row in table.items():
        tokens = row.get("max_input_tokens") if isinstance(row, dict) else None
        if isinstance(tokens, int) and tokens > 0:
            windows[model] = tokens
    return windows
