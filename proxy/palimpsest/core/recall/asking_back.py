"""
Requests that ask again for what was said.

"What was that recipe?" and "Where did you say we should eat?" share few words with the answer that they mean, and one
or two with the request that it was an answer to: "the tagline" leads to "write me a tagline for a bakery". "You just
said" means what is still there to be seen.
"""

from __future__ import annotations

import re

_SAY = (
    "say|suggest|recommend|propose|mention|give|pick|choose|tell|write|come up with|advise|list|draft|name|call|prefer"
)
_SAID = (
    "said|suggested|recommended|proposed|mentioned|gave|given|picked|chose|chosen|told|wrote|written|came up with"
    "|come up with|advised|listed|drafted|named|called|preferred"
)
_ASKING = "what|which|who|where|when|how|repeat|show|quote|give|the|that|this|those"
_GESAGT = "gesagt|vorgeschlagen|empfohlen|genannt|geschrieben|gegeben|gemeint|geraten|ausgesucht|erwähnt"
_GEZEGD = "gezegd|voorgesteld|aangeraden|genoemd|geschreven|gegeven|aanbevolen"
_ASKS_BACK = re.compile(
    rf"(?i)\b(?:(?:{_ASKING})\b[^.!?]*\byou (?:already |once |first |had |have )*(?:{_SAID})"
    rf"|(?:{_ASKING})\b[^.!?]*\byou['\u2019](?:d|ve) (?:{_SAID})"
    rf"|(?:what|which|who|where|when)\b[^.!?]*\bdid (?:you|we|I) (?:{_SAY}|decide|agree|settle|like (?:best|most))"
    r"|remind me (?:of|what|which|who|where|again)|repeat (?:that|those|what)"
    r"|(?:what|which|where) (?:was|were) (?:that|those)(?! like)|when was (?:that|it)(?=\W*$)"
    r"|what was it (?:again|called|that you)|(?:show|tell|give|quote)\b[^.!?]{0,60}\b(?:once more|one more time)"
    r"|(?:show|tell|give|quote) me\b[^.!?]{0,60}\bagain"
    r"|(?:what|which|who|where) (?:is|are|was|were|did)\b[^.!?]*\bagain(?=\W*$)"
    r"|how (?:(?:do|did) (?:i|we|you)|long|many|much|often)\b[^.!?]*\bagain(?=\W*$)|who was it (?:who|that)"
    rf"|(?:hast|hattest)\b[^.!?]*\b(?:{_GESAGT})|(?:{_GESAGT}) (?:hast|hattest)"
    r"|(?:was|wie|welche[rsnm]?|wo|wer|wann) (?:war|hieß|stand|ging|lautete)\w*\b[^.!?]*\bnoch ?mal|erinner[en]* mich"
    r"|tu (?:m['\u2019]|nous |me |l['\u2019])?(?:avais|as) "
    r"(?:dit|conseillé|proposé|suggéré|recommandé|donné|écrit|choisi)"
    r"|rappelle[- ](?:moi|nous)|c['\u2019]était (?:quoi|quel|quelle|où) (?:déjà|l[ea]|ce|cette)"
    r"|(?:qué|cuál|cómo|dónde|quién)\b[^.!?]*(?:dijiste|diste|propusiste|recomendaste|sugeriste|aconsejaste|mencionaste)"
    r"|recuérdame|recuérdanos"
    r"|(?:hai|avevi) (?:detto|proposto|consigliato|suggerito|scritto|scelto|dato)|ricordami"
    r"|(?:você|tu) (?:me )?(?:disse|disseste|sugeriu|sugeriste|recomendou|recomendaste)|me lembr[ae]|lembra-me"
    rf"|(?:heb|hebt|had) je\b[^.!?]*\b(?:{_GEZEGD})|ook (?:al ?)?weer|herinner me)\b"
)
MOST_CHARS = 300  # of a request that does: a longer one says itself what it is about


def asks_back(text: str) -> bool:
    """Whether a request asks again for what its user or the assistant said, in the seven languages of the pattern."""
    return len(text) <= MOST_CHARS and _ASKS_BACK.search(text) is not None
