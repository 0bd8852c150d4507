"""
The input windows of models, in tokens: what the operator says, what upstreams have shown, what a table knows.

The table is the one that the litellm package carries, found without importing it. Upstreams show a window by refusing a
prompt for its length, by listing their models, and by answering a prompt that is longer than what was believed.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path

import orjson
import structlog

from palimpsest.domain.errors import MemoryFault, faults
from palimpsest.domain.frozen import frozen
from palimpsest.domain.ports import Clock
from palimpsest.memory.tokens.counter import litellm_folder
from palimpsest.settings.policy import PressurePolicy
from palimpsest.store.operation.model_notes import LIST, REFUSAL, ModelNote

TABLE_FILE = "model_prices_and_context_window_backup.json"
MAX_LEARNT = 2000  # models; clients name what they like, and a list of OpenRouter's has several hundred
# A server may be started anew with another window. Learning it again costs one request that is sent twice.
LEARNT_SECONDS = 24 * 3600.0

log = structlog.get_logger()


@frozen
class _Learnt:
    tokens: int
    at: float
    is_refusal: bool  # a fact; what a list says may be the model's window and not the server's


class Windows:
    """Windows by upstream and model. Threads may share it."""

    def __init__(self, policy: PressurePolicy, clock: Clock, file: Path | None = None) -> None:
        self.trouble = ""  # why there is no table
        self._policy = policy
        self._clock = clock
        self._table: Mapping[str, int] = {}
        try:
            self._table = table(file or litellm_folder() / TABLE_FILE)
        except MemoryFault as fault:
            self.trouble = (
                f"{fault}; models are assumed to have {policy.default_window_tokens:,} tokens until they show otherwise"
            )
            log.error("the context windows of models are unknown", reason=self.trouble)
        self._learnt: OrderedDict[tuple[str, str], _Learnt] = OrderedDict()
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"<Windows [{len(self._learnt)} learnt, {len(self._table)} in the table]>"

    def apply(self, policy: PressurePolicy) -> None:
        """Go by another policy; what upstreams have shown stays known."""
        self._policy = policy

    def of(self, upstream: str, model: str) -> int:
        """
        The window of a model, in tokens.

        The policy's comes first, then what the upstream has shown, then the table's, then the policy's default.
        """
        for pattern, tokens in self._policy.window_tokens.items():
            if fnmatchcase(model, pattern):
                return tokens
        learnt = self._fresh((upstream, model))
        return learnt.tokens if learnt else self._known(model)

    def is_shown(self, upstream: str, model: str) -> bool:
        """Whether the operator or the upstream said what the window is: answers are counted in that."""
        patterns = self._policy.window_tokens
        return any(fnmatchcase(model, pattern) for pattern in patterns) or self._fresh((upstream, model)) is not None

    def note_refused(self, upstream: str, model: str, tokens: int) -> None:
        """Note a refusal: the model's window is this, or at most this where the refusal names none."""
        self._put((upstream, model), _Learnt(tokens, self._clock(), is_refusal=True))

    def note_listed(self, upstream: str, model: str, tokens: int) -> None:
        """Note a window from a list of models; one that a refusal showed takes precedence."""
        learnt = self._fresh((upstream, model))
        if learnt is None or not learnt.is_refusal:
            self._put((upstream, model), _Learnt(tokens, self._clock(), is_refusal=False))

    def note_answered(self, upstream: str, model: str, tokens: int) -> None:
        """Note that a prompt of so many tokens, by the upstream's count, was answered: no window is smaller."""
        learnt = self._fresh((upstream, model))
        if learnt is not None and tokens > learnt.tokens:
            self._put((upstream, model), _Learnt(tokens, learnt.at, learnt.is_refusal))

    def notes(self) -> list[ModelNote]:
        """What upstreams have shown, to be kept."""
        with self._lock:
            learnt = list(self._learnt.items())
        return [ModelNote(*key, REFUSAL if one.is_refusal else LIST, one.tokens, one.at) for key, one in learnt]

    def take(self, note: ModelNote) -> None:
        """Take in what was kept, unless this process learnt it later."""
        key = (note.upstream, note.model)
        fresh = self._fresh(key)
        if fresh is None or fresh.at <= note.at:
            self._put(key, _Learnt(int(note.value), note.at, note.source == REFUSAL))

    def _known(self, model: str) -> int:
        bare = model.rpartition("/")[2]
        return self._table.get(model) or self._table.get(bare) or self._policy.default_window_tokens

    def _fresh(self, key: tuple[str, str]) -> _Learnt | None:
        with self._lock:
            learnt = self._learnt.get(key)
        return learnt if learnt is not None and self._clock() - learnt.at < LEARNT_SECONDS else None

    def _put(self, key: tuple[str, str], learnt: _Learnt) -> None:
        with self._lock:
            self._learnt.pop(key, None)
            self._learnt[key] = learnt
            if len(self._learnt) > MAX_LEARNT:
                self._learnt.popitem(last=False)


def table(file: Path) -> Mapping[str, int]:
    """Model to input window in tokens. Raises `MemoryFault`: the file is missing, or no such table."""
    with faults((OSError, orjson.JSONDecodeError), f"reading the windows of models from {file}, which litellm carries"):
        rows = orjson.loads(file.read_bytes())
    windows = {}
    for model, row in rows.items() if isinstance(rows, dict) else ():
        tokens = row.get("max_input_tokens") if isinstance(row, dict) else None
        if isinstance(tokens, int) and tokens > 0:
            windows[model] = tokens
    return windows
