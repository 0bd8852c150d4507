"""
The providers that LiteLLM knows, read from its source, because importing it takes seconds.
"""

from __future__ import annotations

import re
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

_ENUM = re.compile(r"^class LlmProviders\(.*?\n(?=\S)", re.DOTALL | re.MULTILINE)
_NAME = re.compile(r"^    [A-Z0-9_]+ = \"([^\"]+)\"", re.MULTILINE)


@lru_cache(maxsize=1)
def providers() -> frozenset[str]:
    """The prefixes of model names, before the `/`; empty if this version of LiteLLM keeps them elsewhere."""
    spec = find_spec("litellm")
    folder = Path(next(iter(spec.submodule_search_locations or ()), "")) if spec else Path()
    try:
        enum = _ENUM.search((folder / "types" / "utils.py").read_text(encoding="utf-8"))
    except OSError:
        return frozenset()
    return frozenset(_NAME.findall(enum[0])) if enum else frozenset()
