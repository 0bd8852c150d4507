"""Windows of models as upstreams show them: by the lists of their models, and by refusing a prompt for its length."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from palimpsest.domain import Api, Ending, Mode, RawHeaders, TooLong
from palimpsest.domain.ports import Listener, Wire
from palimpsest.memory.tokens.windows import Windows
from palimpsest.settings.policy import Policy
from palimpsest.upstream.routing import choose
from palimpsest.wire.model_list import windows_in
from palimpsest.wire.refusal import api_of
from palimpsest.wire.response_tap import ResponseTap

LIST_BYTES = 4 * 1024 * 1024  # the longest list that is known, OpenRouter's, takes a tenth of it
# A provider counts at most so many times the tokens that we count: the ratio is a guess until usage has taught it
MISCOUNT = 1.5
_LISTS_MODELS = re.compile(r"/models(?:/|$)")


class ModelWindows:
    """Which upstream a request goes to, and the window of the model there. One per policy."""

    def __init__(self, policy: Policy, windows: Windows) -> None:
        self._policy = policy
        self._windows = windows

    def upstream_of(self, model: str, wire: Wire, headers: RawHeaders) -> str:
        """Name of the upstream that such a request goes to; "" where nobody serves it."""
        api = wire.API if wire.API is Api.ANTHROPIC else api_of("", headers)
        upstream = choose(self._policy.upstreams, model, api)
        return upstream.name if upstream else ""

    def note_refused(self, upstream: str, model: str, refusal: TooLong, own_tokens: int, sent_tokens: int) -> int:
        """
        Learn the window of a model from a refusal, and return it, tokens.

        The window that it names is taken, also where by our count the request had fitted: then our count is wrong. But
        a number far above both what was sent and the window so far is no window. Where none is named, a window that
        was shown before is kept, unless far less than that was sent; otherwise the client's own prompt, by our count,
        is taken for the most that fits.

        Args:
            own_tokens: of the prompt as the client sent it.
            sent_tokens: of the prompt as it was refused, with the answer that was asked for.
        """
        known, named = self._windows.of(upstream, model), refusal.window_tokens
        if not refusal.is_of_model:
            return known
        if named and named > max(known, sent_tokens * MISCOUNT):
            named = None
        holds = self._windows.is_shown(upstream, model) and sent_tokens * MISCOUNT > known
        if named or not holds:
            self._windows.note_refused(upstream, model, named or max(1, min(known, own_tokens)))
        return min(self._windows.of(upstream, model), named or known)

    def listener_for(self, method: str, path: str) -> Callable[[int, RawHeaders], Listener] | None:
        """The listener for the answer to a request for a list of models; None: it is no such request."""
        if self._policy.memory.mode is Mode.OFF or method != "GET" or not _LISTS_MODELS.search(path):
            return None
        return partial(_ListListener, self._listed)

    def _listed(self, body: bytes) -> None:
        for model, tokens in windows_in(body).items():
            for api in Api:
                if (upstream := choose(self._policy.upstreams, model, api)) is not None:
                    self._windows.note_listed(upstream.name, model, tokens)


class _ListListener:
    """A `Listener` to a list of models; holds nothing back."""

    def __init__(self, take: Callable[[bytes], None], status: int, headers: RawHeaders) -> None:
        self._take = take
        self._tap = ResponseTap(headers, LIST_BYTES)

    def feed(self, data: bytes) -> int:
        self._tap.feed(data)
        return len(data)

    def finish(self, ending: Ending) -> None:
        if ending is Ending.COMPLETE:
            payloads: Sequence[bytes] = self._tap.payloads()[0]
            self._take(b"".join(payloads))

    async def committed(self) -> Mapping[str, str | int]:
        """Nothing of it is written."""
        return {}
