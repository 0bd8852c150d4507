"""
The tokens of a prompt or a text.

Encodings come from the files that the litellm package carries, found without importing it: no network, no two seconds
of import. Where a model's tokenizer is not public, o200k_base times a ratio learnt from reported usage.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from importlib.util import find_spec
from math import ceil
from pathlib import Path

import orjson
import tiktoken

from palimpsest.domain import Chat, Fingerprint, Message
from palimpsest.domain.errors import MemoryFault, faults
from palimpsest.store.operation.model_notes import USAGE, ModelNote

MESSAGE_TOKENS = 4  # role and separators of one message (OpenAI cookbook, "How to count tokens")
MEDIA_TOKENS = 765  # a 1024 x 1024 image in high detail, OpenAI's published figure; one number for all media
CACHED_COUNTS = 200_000  # some 20 MB: the messages of a few hundred long conversations
UNKNOWN_TOKENIZER_RATIO = 1.3  # tokens per token of o200k_base where a tokenizer is not public; usage teaches better
LEARNING_RATE = 0.2  # of the ratio, per reported usage; one odd report moves it little
MAX_RATIOS = 1000  # models; clients name what they like
MAX_RATIO = 4.0  # a report beyond is not about the tokenizer (cached or hidden prompts)
LOADING_CHARS = 1 << 30  # of work, as it were, to load an encoding: do it off the event loop
COMMON, OLD = "o200k_base", "cl100k_base"  # the second, 32 MB, is loaded when a model of its time is asked for
_PUBLIC = (("gpt-4o", "o200k_base"), ("gpt-4.", "o200k_base"), ("gpt-4", "cl100k_base"), ("gpt-3.5", "cl100k_base"))
# tiktoken names a cached file by the SHA-1 of where it would download it from
_DOWNLOAD = "https://openaipublic.blob.core.windows.net/encodings/{}.tiktoken"
_loaded: set[str] = set()
_O200K = ("gpt-", "chatgpt-", "o1", "o3", "o4", "codex")


class TokenCounter:
    """Counts prompts; remembers the count of each message by its fingerprint. Threads may share it."""

    def __init__(self) -> None:
        self._counts: OrderedDict[tuple[str, int], int] = OrderedDict()
        self._ratios: OrderedDict[str, float] = OrderedDict()
        self._lock = threading.Lock()  # of both; never held while a text is encoded

    def __repr__(self) -> str:
        return f"<TokenCounter [{len(self._counts)} counts, {len(self._ratios)} ratios]>"

    def encoding(self, model: str) -> str:
        """Name of the encoding that a model's tokens are counted in."""
        return self._encoding(model)[0]

    def uncounted_chars(self, chat: Chat, prints: Sequence[Fingerprint], known: int = 0) -> int:
        """
        Characters that would have to be encoded: above 64 kB, do it off the event loop.

        Args:
            known: how many of the first messages are counted already, and then the tools too.
        """
        encoding, _ = self._encoding(chat.model)
        if encoding not in _loaded:
            return LOADING_CHARS
        messages = sum(
            sum(map(len, _parts(message)))
            for message, fingerprint in zip(chat.messages[known:], prints[known:], strict=True)
            if self._known((encoding, fingerprint.full)) is None
        )
        tools = "" if known else _tools(chat)
        return messages + (len(tools) if tools and self._known((encoding, hash(tools))) is None else 0)

    def messages(self, model: str, messages: Sequence[Message], prints: Sequence[Fingerprint]) -> tuple[int, ...]:
        """Tokens of each message in the model's encoding, role and media included, before `scaled`."""
        encoding, _ = self._encoding(model)
        return tuple(
            MESSAGE_TOKENS
            + MEDIA_TOKENS * len(message.media)
            + self._counted((encoding, fingerprint.full), encoding, _parts(message))
            for message, fingerprint in zip(messages, prints, strict=True)
        )

    def tools(self, chat: Chat) -> int:
        """Tokens of the tools that a request offers, before `scaled`."""
        encoding, _ = self._encoding(chat.model)
        tools = _tools(chat)
        return self._counted((encoding, hash(tools)), encoding, (tools,)) if tools else 0

    def scaled(self, model: str, tokens: int) -> int:
        """The model's own tokens, for tokens of its encoding; rounded up."""
        return ceil(tokens * self._encoding(model)[1])

    def text(self, text: str, model: str) -> int:
        """Tokens of a text for one model, rounded up."""
        encoding, ratio = self._encoding(model)
        return ceil(_count(text, encoding) * ratio)

    def learn(self, model: str, counted_tokens: int, reported_tokens: int, rate: float = LEARNING_RATE) -> None:
        """
        Correct the ratio of a model whose tokenizer is not public by what its provider reports.

        Args:
            counted_tokens: of the prompt as it was sent, added blocks included, by this counter.
            rate: how far the ratio moves to what is reported, from 0 to 1.
        """
        if _public(model) or counted_tokens <= 0 or reported_tokens <= 0:
            return
        with self._lock:
            ratio = self._ratios.pop(model, UNKNOWN_TOKENIZER_RATIO)
            seen = min(MAX_RATIO, max(1 / MAX_RATIO, ratio * reported_tokens / counted_tokens))
            self._keep(model, ratio + rate * (seen - ratio))

    def notes(self, now: float) -> list[ModelNote]:
        """The ratios that were learnt, to be kept."""
        with self._lock:
            return [ModelNote("", model, USAGE, ratio, now) for model, ratio in self._ratios.items()]

    def take(self, note: ModelNote) -> None:
        """Take in a ratio that was kept."""
        with self._lock:
            self._keep(note.model, note.value)

    def _keep(self, model: str, ratio: float) -> None:
        self._ratios[model] = ratio
        if len(self._ratios) > MAX_RATIOS:
            self._ratios.popitem(last=False)

    def _encoding(self, model: str) -> tuple[str, float]:
        """The encoding of a model, and the factor that its own counts have shown."""
        if public := _public(model):
            return public, 1.0
        with self._lock:
            return "o200k_base", self._ratios.get(model, UNKNOWN_TOKENIZER_RATIO)

    def _counted(self, key: tuple[str, int], encoding: str, parts: Sequence[str]) -> int:
        """The tokens of some texts, from the cache or counted now."""
        count = self._known(key)
        if count is None:
            count = sum(_count(part, encoding) for part in parts if part)
            with self._lock:
                self._counts[key] = count
                if len(self._counts) > CACHED_COUNTS:
                    self._counts.popitem(last=False)
        return count

    def _known(self, key: tuple[str, int]) -> int | None:
        with self._lock:
            return self._counts.get(key)


def _parts(message: Message) -> tuple[str, ...]:
    """The texts of a message whose tokens are counted."""
    return (message.text, *(f"{call.name}{call.arguments}" for call in message.calls))


def _tools(chat: Chat) -> str:
    """The tools as they stand in the request; "" without any, or where they are nested too deep to be written."""
    tools = chat.raw.get("tools")
    with suppress(orjson.JSONEncodeError):  # it writes 254 levels, and reads 1,024
        return orjson.dumps(tools).decode() if tools else ""
    return ""


def warm(names: Sequence[str] = (COMMON,)) -> None:
    """Load encodings: the first use of each costs a fifth of a second. Raises `MemoryFault`: they are not to be had."""
    for name in names:
        encoder(name)


def _public(model: str) -> str:
    """The public encoding of a model; "" where it has none."""
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
    One of tiktoken's encodings, from a file here; nothing is downloaded.

    Raises `MemoryFault`: it is not to be had.
    """
    folder = litellm_folder() / "litellm_core_utils" / "tokenizers"
    if folder.is_dir():
        os.environ.setdefault("TIKTOKEN_CACHE_DIR", str(folder))
    cache = Path(os.environ.get("TIKTOKEN_CACHE_DIR", folder))
    file = cache / hashlib.sha1(_DOWNLOAD.format(name).encode(), usedforsecurity=False).hexdigest()
    if not file.is_file():
        raise MemoryFault(
            f"loading the token encoding {name}: {file} is missing; reinstall litellm, or name a folder that holds "
            "tiktoken's files in TIKTOKEN_CACHE_DIR"
        )
    with faults(Exception, f"loading the token encoding {name}"):  # tiktoken raises whatever reading its file raises
        loaded = tiktoken.get_encoding(name)
    _loaded.add(name)
    return loaded


def litellm_folder() -> Path:
    """Where the litellm package is installed; a folder that does not exist where it is not."""
    spec = find_spec("litellm")
    places = list(spec.submodule_search_locations or ()) if spec else []
    return Path(places[0]) if places else Path("litellm-is-not-installed")
