"""
All forms of statements that carry a fact, by the word that a statement begins with.

A pattern is matched where its head stands ("I", "my", "we", "the", "always"). It takes the whole of a statement and
nothing else. A form is here because it was right on the conversations of `tests/core/facts/labels.tsv` (docs/facts.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from palimpsest.core.facts.form import Form
from palimpsest.core.facts.own_endings import OWN_ENDS_OF_I, OWN_ENDS_OF_MY, OWN_ENDS_OF_ORDERS, OWN_OPENERS
from palimpsest.core.facts.own_forms import OF_AS, OF_CALL, OF_I, OF_MY
from palimpsest.core.facts.project_endings import ENDS_OF_ORDERS, ENDS_OF_THE, ENDS_OF_WE
from palimpsest.core.facts.project_endings import OPENERS as PROJECT_OPENERS
from palimpsest.core.facts.project_forms import CONSENT, DECISIONS, LETS, NOTES, ORDERS, SETTINGS, USES

ORDER_ENDS = (*OWN_ENDS_OF_ORDERS, *ENDS_OF_ORDERS)
OPENERS = (*OWN_OPENERS, *PROJECT_OPENERS)
"""Forms that begin a sentence, with whatever word."""


def _all(heads: str, forms: Sequence[Form]) -> Mapping[str, Sequence[Form]]:
    return dict.fromkeys(heads.split(), forms)


_BY_HEAD: Mapping[str, Sequence[Form]] = {
    **_all("my our", (*OWN_ENDS_OF_MY, *ENDS_OF_THE, *OF_MY, *SETTINGS)),
    "i": (*OWN_ENDS_OF_I, *ENDS_OF_WE, *OF_I, *USES, *DECISIONS, *NOTES),
    "we": (*OWN_ENDS_OF_I, *ENDS_OF_WE, *USES, *DECISIONS, *OF_I),
    "the": (*OWN_ENDS_OF_MY, *ENDS_OF_THE, *SETTINGS),
    **_all("moved relocated they", (*OWN_ENDS_OF_I, *ENDS_OF_WE)),
    "as": OF_AS,
    "call": OF_CALL,
    "just": (*OF_CALL, *OWN_ENDS_OF_I, *ENDS_OF_WE),
    "you": (*OF_CALL, *ORDER_ENDS),
    **_all("let's lets let", LETS),
    "going": (*ORDERS, *LETS),
    "please": (*OF_CALL, *ORDER_ENDS, *ORDERS, *CONSENT, *NOTES),
    **_all("from always never when whenever in keep make", (*ORDERS, *CONSENT, *NOTES)),
    **_all("don't do", (*ORDER_ENDS, *ORDERS, *CONSENT, *NOTES)),
    **_all("use write answer reply respond speak stop", (*ORDER_ENDS, *ORDERS)),
    **_all("talk give put include add format", ORDERS),
    **_all("no forget scratch switch go feel quit email", ORDER_ENDS),
    **_all("remember take bear can could for fyi note also", NOTES),
}
FORMS: Mapping[str, Sequence[Form]] = {
    **_BY_HEAD,
    **{f"{head}'{ending}": _BY_HEAD[head] for head in ("i", "we") for ending in ("m", "ve", "re", "ll")},
}
"""Forms by the lower-case word that they begin with, in the order in which they are tried."""
