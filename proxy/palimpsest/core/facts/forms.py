"""
All forms of statements that carry a fact, by the word that a statement begins with.

A pattern is matched where its head stands ("I", "my", "we", "the", "always"). It takes the whole of a statement and
nothing else. A form is here because it was right on the conversations of `tests/core/facts/labels.tsv` (docs/facts.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from palimpsest.core.facts.ending_forms import ENDS_OF_I, ENDS_OF_MY, ENDS_OF_ORDERS, OPENERS
from palimpsest.core.facts.form import Form
from palimpsest.core.facts.own_forms import OF_AS, OF_CALL, OF_I, OF_MY
from palimpsest.core.facts.project_forms import CONSENT, DECISIONS, LETS, NOTES, ORDERS, SETTINGS, USES


def _all(heads: str, forms: Sequence[Form]) -> Mapping[str, Sequence[Form]]:
    return dict.fromkeys(heads.split(), forms)


_BY_HEAD: Mapping[str, Sequence[Form]] = {
    **_all("my our", (*ENDS_OF_MY, *OF_MY, *SETTINGS)),
    "i": (*ENDS_OF_I, *OF_I, *USES, *DECISIONS, *NOTES),
    "we": (*ENDS_OF_I, *USES, *DECISIONS, *OF_I),
    "the": (*ENDS_OF_MY, *SETTINGS),
    **_all("moved relocated they", ENDS_OF_I),
    "as": OF_AS,
    "call": OF_CALL,
    "just": (*OF_CALL, *ENDS_OF_I),
    "you": (*OF_CALL, *ENDS_OF_ORDERS),
    **_all("let's lets let", LETS),
    "going": (*ORDERS, *LETS),
    "please": (*OF_CALL, *ENDS_OF_ORDERS, *ORDERS, *CONSENT, *NOTES),
    **_all("from always never when whenever in keep make", (*ORDERS, *CONSENT, *NOTES)),
    **_all("don't do", (*ENDS_OF_ORDERS, *ORDERS, *CONSENT, *NOTES)),
    **_all("use write answer reply respond speak stop", (*ENDS_OF_ORDERS, *ORDERS)),
    **_all("talk give put include add format", ORDERS),
    **_all("no forget scratch switch go feel quit email", ENDS_OF_ORDERS),
    **_all("remember take bear can could for fyi note also", NOTES),
}
FORMS: Mapping[str, Sequence[Form]] = {
    **_BY_HEAD,
    **{f"{head}'{ending}": _BY_HEAD[head] for head in ("i", "we") for ending in ("m", "ve", "re", "ll")},
}
"""Forms by the lower-case word that they begin with, in the order in which they are tried."""

__all__ = ["FORMS", "OPENERS"]  # the latter begin a sentence, with whatever word
