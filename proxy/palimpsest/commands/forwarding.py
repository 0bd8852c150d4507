"""
The start of a proxy that forwards whatever is wrong with its memory: `palimpsest serve --forward-anyway`.

Where requests go, who may send them and where the proxy listens must be known. A request that went to another provider
than the one that is configured would take its credential to somebody it is not for.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from palimpsest.domain.errors import PolicyError
from palimpsest.settings.load import without_memory
from palimpsest.settings.policy import Policy
from palimpsest.settings.source import NO_SOURCE, Source
from palimpsest.store.data_dir import make_folder
from palimpsest.store.operation.secret import load_secret


@contextmanager
def policy_anyway(
    load: Callable[[], Policy], load_bare: Callable[[], Policy], source: Source, environment: Mapping[str, str]
) -> Iterator[tuple[Policy, Source]]:
    """
    The policy to start with, and what it is read from anew.

    What is wrong goes to standard error. A configuration that is mended later takes effect without a restart; a data
    folder does not, as its database would have to be opened.

    Args:
        load: the policy as it is configured.
        load_bare: the same without what only memory needs; see `load.load_bare`.

    Raises:
        PolicyError: where requests go is wrong as well.
    """
    try:
        policy = load()
    except PolicyError as wrong:
        _say(wrong)
        policy = load_bare()
    try:
        make_folder(policy.data)
        load_secret(policy.data, environment)
    except PolicyError as wrong:
        _say(wrong)
        with TemporaryDirectory(prefix="palimpsest-") as folder:
            yield without_memory(policy).model_copy(update={"data": Path(folder)}), NO_SOURCE
    else:
        yield policy, source


def _say(wrong: PolicyError) -> None:
    sys.stderr.write(f"palimpsest: {wrong}\npalimpsest: until that is mended, requests pass without memory\n")
