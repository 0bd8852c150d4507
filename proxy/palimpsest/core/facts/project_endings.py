"""
Forms in which users say that something of their work changed or is over: settings, versions, decisions, orders, notes.

Slots of ends are named as in `own_endings.py`.
"""

from __future__ import annotations

from palimpsest.core.facts.form import many, one
from palimpsest.core.facts.vocabulary import (
    ANY_MORE,
    CAPITALISED,
    CLAUSE_END,
    CLOCK,
    END,
    ENDS,
    LANGUAGE,
    NOT_NOW,
    NOUN,
    NOW,
    ORDER,
    PATH,
    SENTENCE_END,
    SUM,
    THING,
    TOKEN,
    TOKEN_END,
    VERSIONED,
    WE,
    WHEN,
    any_of,
)
from palimpsest.domain import NO_LONGER, FactCategory

DECISION = FactCategory.DECISION
INSTRUCTION = FactCategory.INSTRUCTION
NOTE = FactCategory.NOTE
SETTING = FactCategory.SETTING

_THE = r"(?:[Tt]he|[Oo]ur|[Mm]y)"
_CHANGED = any_of(
    """changed, moved, switched, bumped, raised, lowered, increased, reduced, cut, pushed, migrated, extended,
    postponed, renamed, dropped, grew, rose, fell"""
)
_SLOT = rf"{_THE} (?P<slot>{NOUN}{{0,4}}?(?!(?:from|to|was|has|is)\b)[\w'-]+)"
_ANYTHING = rf"{WHEN}|{SUM}|{PATH}|{TOKEN}"
_FROM = rf"(?: from `?(?P<no_longer>{_ANYTHING})`?)"
_TO = rf" (?:back |forward |up |down )?to (?:port )?`?(?P<value>{_ANYTHING})`?(?!,?\d){END}"
_GOT = (
    r"(?:has been |have been |has |was |were |got |went )?"
    rf"(?:{_CHANGED}|up|down|brought forward|rescheduled)"
)
_GERUND = r"[a-z]+ing\b"

ENDS_OF_WE = (
    many(
        *(SETTING, "uses"),
        rf"{WE} (?:upgraded|updated|downgraded|moved|migrated|switched|went)(?: (?:from |off )?{VERSIONED})?"
        rf" to (?P<value>{VERSIONED}){TOKEN_END}",
    ),
    many(SETTING, "uses", rf"(?:I'm|[Ww]e're|[Ww]e are) (?:now )?on (?P<value>{VERSIONED})(?: now)?{TOKEN_END}"),
    many(
        *(DECISION, f"{NO_LONGER}decided"),
        rf"(?:I'm|[Ww]e're|[Ww]e are) (?:leaving|dropping|ditching|(?:moving|switching|migrating) (?:off|away from)"
        rf"|getting rid of) (?:the )?(?P<value>{CAPITALISED}(?: {CAPITALISED})?){END}",
    ),
    many(
        *(DECISION, f"{NO_LONGER}decided"),
        rf"{WE} (?:dropped|ditched|abandoned|got rid of|(?:moved|switched|migrated) (?:off|away from)"
        rf"|stopped using|{NOT_NOW} use) (?:of )?(?:the )?(?P<value>.{{2,60}}?){ENDS}",
    ),
    one(SETTING, "", rf"[Ww]e (?:now )?run {_SLOT} (?:on|at|under) (?P<value>{_ANYTHING})(?: now)?{CLAUSE_END}"),
    one(SETTING, "", rf"(?:{WE}|[Tt]hey) {_CHANGED} {_SLOT}{_FROM}?{_TO}"),
)

ENDS_OF_THE = (
    many(
        NOTE, "note", rf"(?P<value>{_THE} {NOUN}{{1,4}}(?:opens|closes|starts|ends|begins|leaves) at {CLOCK})(?= now\b)"
    ),
    one(SETTING, "", rf"(?P<no_longer_any>[Tt]he (?P<slot>[a-z-]+)) {_GOT}{_TO}"),
    one(SETTING, "", rf"{_SLOT} {_GOT}{_FROM}?{_TO}"),
    one(
        *(SETTING, ""),
        rf"{_SLOT} (?:isn't|is not|is no longer|aren't|are not) (?:on |at |in )?`?(?P<no_longer>{_ANYTHING})`?"
        rf"(?:{ANY_MORE})?,? (?:but|it's|it is|they're)(?: now)?(?: on| at| in)?"
        rf" `?(?P<value>{_ANYTHING})`?{TOKEN_END}",
    ),
    many(
        *(NOTE, NO_LONGER.strip()),
        rf"(?P<value>{_THE} {NOUN}{{1,5}}?(?:isn't|aren't|doesn't|don't|is not|does not|no longer)"
        rf" [^.!?,]{{3,80}}?){ANY_MORE}{CLAUSE_END}",
    ),
    many(
        NOTE,
        NO_LONGER.strip(),
        rf"(?P<value>{_THE} {NOUN}{{1,5}}?(?:is no longer|are no longer|no longer) [^.!?,]{{3,80}}?){ENDS}",
    ),
)

OPENERS = (
    many(
        NOTE,
        NO_LONGER.strip(),
        rf"(?P<value>{CAPITALISED}(?: {CAPITALISED})? (?:is|are) no longer [^.!?,]{{3,80}}?){ENDS}",
    ),
    one(SETTING, "", rf"(?P<slot>{NOUN}{{0,2}}{THING})(?: is|:) (?P<value>{TOKEN})(?= now\b| instead of\b)"),
    many(INSTRUCTION, "always", rf"(?P<value>{LANGUAGE} (?:only )?from now on)\b"),
    many(
        *(NOTE, NO_LONGER.strip()),
        rf"(?P<value>{CAPITALISED}(?: {CAPITALISED})? (?:isn't|is not|doesn't|does not|is no longer|no longer)"
        rf" [^.!?,]{{3,80}}?)(?:{ANY_MORE}){CLAUSE_END}",
    ),
)

ENDS_OF_ORDERS = (
    many(
        *(INSTRUCTION, f"{NO_LONGER}always"),
        rf"[Yy]ou (?:no longer (?:need|have) to|(?:don't|do not|needn't)(?: need| have)?(?: to)?(?="
        rf" [^.!?]*{ANY_MORE}))"
        rf" (?P<value>{ORDER}\b .{{2,150}}?)(?:{ANY_MORE})?{SENTENCE_END}",
    ),
    many(
        *(INSTRUCTION, f"{NO_LONGER}always"),
        rf"(?:[Yy]ou (?:can|may) (?:now )?(?:stop|quit)|(?:[Pp]lease )?[Ss]top|[Nn]o need (?:to keep|for)|[Qq]uit)"
        rf" (?P<value>{_GERUND}.{{2,150}}?)(?:{ANY_MORE}|{NOW})?{SENTENCE_END}",
    ),
    many(
        *(INSTRUCTION, "always"),
        rf"[Yy]ou (?:can|may) (?P<value>(?:answer|reply|respond|write|speak)(?: to me)? in {LANGUAGE}){NOW}",
    ),
    many(
        *(INSTRUCTION, f"{NO_LONGER}always"),
        rf"(?:[Yy]ou (?:can|may)(?: now)?|[Ff]eel free to) (?P<value>{ORDER}\b .{{2,150}}?){NOW}{SENTENCE_END}",
    ),
    many(
        *(INSTRUCTION, f"{NO_LONGER}always"),
        rf"(?:[Pp]lease )?(?:[Dd]on't|[Dd]o not|[Nn]o need to) (?P<value>{ORDER}\b"
        rf" .{{2,150}}?){ANY_MORE}{SENTENCE_END}",
    ),
    many(
        INSTRUCTION,
        f"{NO_LONGER}always",
        rf"[Nn]o more (?!questions?\b)(?P<value>{LANGUAGE}\b|.{{3,60}}?(?=,? please| from now on|[.!]*$))",
    ),
    many(
        *(INSTRUCTION, f"{NO_LONGER}always"),
        r"(?:[Pp]lease )?(?:[Ff]orget(?: about)?|[Ss]cratch) the (?P<value>.{2,80}?) (?:rule|signature"
        r"|instruction|order|thing|part|bit)\b",
    ),
    many(*(INSTRUCTION, "always"), rf"(?:[Pp]lease )?(?P<value>(?:[Ss]witch|[Gg]o) back to {LANGUAGE})\b"),
    many(
        *(INSTRUCTION, "always"),
        rf"(?:[Pp]lease )?(?P<value>(?:[Aa]nswer|[Rr]eply|[Rr]espond|[Ww]rite|[Ss]peak)(?: to me)? in"
        rf" {LANGUAGE}){NOW}",
    ),
    one(
        *(SETTING, ""),
        rf"(?:[Pp]lease )?[Uu]se (?:port )?`?(?P<value>{_ANYTHING})`? instead of `?(?P<no_longer>{_ANYTHING})`?"
        rf" (?:for|as) {_SLOT}(?:{NOW})?(?=\s*[.!,]|\s*$)",
    ),
)
