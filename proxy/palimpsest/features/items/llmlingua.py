"""
LLMLingua-2, a small model that says which words of a text tell most, on this machine; nothing fetches it.

Source: arXiv 2403.12968, in the package llmlingua, as LightMem-3 (section 3.1) compresses turns.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

from palimpsest.memory.embedding.model import models_folder
from palimpsest.settings.policy import ModelPolicy

WEIGHTS = "microsoft--llmlingua-2-bert-base-multilingual-cased-meetingbank"  # folder beside the embedding models
LEAST_SHARE = 0.05  # of the words, below which a text is not compressed further
INSTEAD = "the tenant's own statistics choose words instead; see docs/writers.md"


class LLMLingua2:
    """The model, loaded when it is first used. Use it on one thread at a time, not on the event loop."""

    def __init__(self, policy: ModelPolicy) -> None:
        self._folder = models_folder(policy) / WEIGHTS
        self._model: Any = None
        self._failure = ""

    @property
    def trouble(self) -> str:
        """Why the model cannot be used; "": it can."""
        if self._failure:
            return f"llmlingua-2 cannot be loaded ({self._failure}): {INSTEAD}"
        if find_spec("llmlingua") is None:
            return f"llmlingua-2: the package llmlingua is not installed: {INSTEAD}"
        return "" if self._folder.is_dir() else f"llmlingua-2: {self._folder} is missing: {INSTEAD}"

    def compressor(self, keep: float) -> Callable[[str, int], str] | None:
        """A function that shortens a text to this share, or to at most so many words; None: see `trouble`."""

        def compress(text: str, most_words: int) -> str:
            """The text within so many words, by the model, or cut off where there is none."""
            if not text.strip() or not self._is_loaded():
                return " ".join(text.split()[:most_words])
            share, words = keep, text.split()
            while True:
                found = self._model.compress_prompt(text, rate=share, force_reserve_digit=True, drop_consecutive=True)
                words = found["compressed_prompt"].split()
                if len(words) <= most_words or share < LEAST_SHARE:
                    return " ".join(words[:most_words])
                share *= keep if keep < 1 else 0.5

        return None if self.trouble else compress

    def _is_loaded(self) -> bool:
        """Load the model on first use; False: it cannot be loaded."""
        if self._model is None and not self._failure:
            try:
                from llmlingua import PromptCompressor  # type: ignore[import-not-found]  # late: a second or more, and only who wants it

                config = {"trust_remote_code": False}  # the package trusts code beside the weights unless told not to
                self._model = PromptCompressor(
                    str(self._folder), device_map="cpu", model_config=config, use_llmlingua2=True
                )
            except Exception as cause:  # torch and transformers raise whatever they like
                self._failure = str(cause) or type(cause).__name__
        return self._model is not None
