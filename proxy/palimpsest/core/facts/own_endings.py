"""
Forms in which users say that something of their own changed or is over: home, work, name, diet, tastes, people.

The slot of an end begins with "no longer": `no longer home` = Berlin ends `home` = Berlin (`endings.py`). With
"no longer any" it ends the newest of its slot, whatever that was ("I quit my job").
"""

from __future__ import annotations

from palimpsest.core.facts.form import many, one
from palimpsest.core.facts.vocabulary import (
    ANY_MORE,
    CAPITALISED,
    CLAUSE_END,
    DIET,
    END,
    ENDS,
    JUST,
    KIN,
    MAIL,
    NAME,
    NOT_NOW,
    NOW,
    NUMBER,
    PARTNER,
    PERSON_NAME,
    TOWN,
    VERY,
    WE,
    any_of,
    job,
)
from palimpsest.domain import NO_LONGER, NO_LONGER_ANY, FactCategory

IDENTITY = FactCategory.IDENTITY
PREFERENCE = FactCategory.PREFERENCE

_I = rf"I(?:'ve| have)?(?: {JUST}){{0,2}}"
_AM_NOT = r"(?:I'm no longer|I am no longer|I'm not|I am not|I ain't)"
_WHEN_LEFT = r"(?=,| (?:last|this|in|on|yesterday|today|and|after|for|because|to)\b|\s*[.!;]|\s*$)"
_ONE_AT_A_TIME = any_of(
    "boss, manager, landlord, landlady, dentist, therapist, accountant, lawyer, girlfriend, boyfriend, partner,"
    " supervisor"
)
_THINGS = r"(?P<value>[\w' -]{3,40}?)"
_WORK = f"{NO_LONGER}employer"
_TAKES = f"{NO_LONGER}does not take"

OWN_ENDS_OF_I = (
    many(IDENTITY, f"{NO_LONGER}home", rf"{WE} (?:{NOT_NOW}|don't|do not) live in (?P<value>{TOWN}){ENDS}"),
    many(IDENTITY, f"{NO_LONGER}home", rf"{WE} left (?P<value>{TOWN}) for good\b"),
    many(IDENTITY, f"{NO_LONGER}home", rf"{WE} moved (?:away|out) (?:from|of) (?P<value>{TOWN}){END}"),
    many(IDENTITY, f"{NO_LONGER}home", rf"[Ww]e(?:'ve)? (?:moved|relocated) from (?P<value>{TOWN}) to {TOWN}{END}"),
    one(
        *(IDENTITY, "home"),
        rf"(?:{_I} )?(?:[Jj]ust )?(?:[Mm]oved|relocated)(?: back)?(?: from (?P<no_longer_home>{TOWN}))? to"
        rf" (?P<value>{TOWN}){END}",
    ),
    many(
        IDENTITY,
        f"{NO_LONGER}home or employer",
        rf"(?:I've|I have|[Ww]e've) (?:just |now )?left (?P<value>{NAME})(?= (?:and|for good|in|last|this"
        rf"|after)\b|\s*[.,!]|\s*$)",
    ),
    one(IDENTITY, "occupation", rf"{_I} (?:became|become) an? {job('value')}"),
    many(IDENTITY, _WORK, rf"I (?:{NOT_NOW}|stopped) work(?:ing)? (?:at|for|with) (?P<value>{NAME})(?!'s|\w){ENDS}"),
    many(
        *(IDENTITY, _WORK),
        rf"{_I} (?:quit|left|resigned from|retired from|(?:was|got) (?:laid off|fired|let go|sacked) (?:from|by|at))"
        rf" (?P<value>{NAME})(?<!'s){_WHEN_LEFT}",
    ),
    many(
        IDENTITY,
        _WORK,
        rf"{_I} (?:handed in my|gave(?: my)?|given(?: my)?) notice (?:at|to) (?P<value>{NAME})(?<!'s){_WHEN_LEFT}",
    ),
    many(
        *(IDENTITY, f"{NO_LONGER_ANY}employer"),
        rf"(?P<value>{_I} (?:quit my job|lost my job|left my job|(?:was|got) (?:laid off|fired|sacked)|am unemployed"
        rf"|switched jobs|changed jobs)){_WHEN_LEFT}",
    ),
    many(IDENTITY, f"{NO_LONGER_ANY}occupation", rf"(?P<value>{_I} (?:retired|am retired)){_WHEN_LEFT}"),
    one(
        *(IDENTITY, "employer"),
        rf"{_I} (?:(?:joined(?= [^.!?]* as an? )|started(?: working)? (?:at|for))|(?:accepted an offer|took a job) at"
        rf"|switched (?:jobs )?to working (?:at|for)) (?P<value>{NAME})(?<!'s)(?:{_WHEN_LEFT}|{END})",
    ),
    many(IDENTITY, f"{NO_LONGER}occupation", rf"{_AM_NOT} an? {job('value')}{ANY_MORE}"),
    many(IDENTITY, f"{NO_LONGER}occupation", rf"(?:I'm|I am) no longer an? {job('value')}{ENDS}"),
    many(
        *(IDENTITY, f"{NO_LONGER}occupation"),
        rf"{_I} (?:stepped down as|stopped (?:working as|being)|quit (?:working as|being)) (?:an?|the) {job('value')}",
    ),
    many(IDENTITY, f"{NO_LONGER}membership", rf"{_I} cancel+ed my (?P<value>\w+) (?:membership|subscription)"),
    many(
        *(IDENTITY, f"{NO_LONGER_ANY}name"),
        rf"I(?:'ve| have)? (?:have|got)(?: got)? (?P<value>a new (?P<subject>{_ONE_AT_A_TIME}))\b",
        subject="",
    ),
    many(
        *(IDENTITY, f"{NO_LONGER}membership"),
        rf"{_AM_NOT} an? (?P<value>\w+ (?:member|cardholder|subscriber|customer)){ANY_MORE}",
    ),
    one(IDENTITY, "last name", rf"{_I} changed my (?:last name|surname) to (?P<value>{NAME}){END}"),
    one(IDENTITY, "name", rf"{_I} changed my (?:full )?name to (?P<value>{NAME}){END}"),
    one(
        *(IDENTITY, "age"),
        rf"{_I} turned (?P<value>[1-9]\d)(?=,|\s*[.!]|\s*$| (?:yesterday|today|last|this|in|on|recently|and)\b)",
    ),
    many(PREFERENCE, f"{NO_LONGER}diet", rf"{_AM_NOT} (?:an? )?(?P<value>{DIET}){ANY_MORE}"),
    many(PREFERENCE, f"{NO_LONGER}diet", rf"(?:I'm|I am) no longer (?:an? )?(?P<value>{DIET}){ENDS}"),
    many(
        *(PREFERENCE, f"{NO_LONGER}diet"),
        rf"{_I} (?:stopped being|quit being|gave up (?:on )?being|given up (?:on )?being) (?:an?"
        rf" )?(?P<value>{DIET})\b",
    ),
    many(PREFERENCE, f"{NO_LONGER}allergic to", rf"{_AM_NOT} (?:{VERY} )?allergic to {_THINGS}{ENDS}"),
    many(
        *(PREFERENCE, f"{NO_LONGER}allergic to"),
        rf"(?:I (?:no longer|don't|do not) have (?:the|a|an|my|that)|{_I} (?:outgrew|outgrown|lost) (?:the|my))"
        rf" (?P<value>[\w' -]{{3,40}}?) allergy\b",
    ),
    many(PREFERENCE, _TAKES, rf"(?:I (?:can )?(?:eat|drink)|(?:I'm|I am)(?: now)? (?:eating|drinking)) {_THINGS}{NOW}"),
    many(
        PREFERENCE,
        _TAKES,
        rf"{_I} (?:started|gone back to|went back to) (?:eating|drinking|having) {_THINGS}{_WHEN_LEFT}",
    ),
    many(PREFERENCE, _TAKES, rf"{_I} (?:started|gone back to|went back to) (?:eating|drinking|having) {_THINGS}{NOW}"),
    many(
        PREFERENCE, "likes", rf"{_I} (?:come|learned|learnt|grown|got|started) to (?:love|like|enjoy) {_THINGS}{ENDS}"
    ),
    many(
        *(PREFERENCE, f"{NO_LONGER}likes"),
        rf"(?:I {NOT_NOW} (?:like|love|enjoy)|{_I} (?:stopped (?:liking|eating|drinking)|gone off|went off))"
        rf" {_THINGS}{ENDS}",
    ),
    many(
        PREFERENCE,
        f"{NO_LONGER}likes",
        rf"{_I} (?:stopped|gave up|quit) (?P<value>[a-z]+ing)(?= because\b|\s*[.!,]|\s*$)",
    ),
    many(PREFERENCE, f"{NO_LONGER}dislikes", rf"I {NOT_NOW} (?:mind|hate|dislike) {_THINGS}{ENDS}"),
    many(PREFERENCE, f"{NO_LONGER}prefers", rf"I {NOT_NOW} (?:prefer|want|need|like) {_THINGS}{ENDS}"),
    many(PREFERENCE, "prefers", rf"I (?:now )?prefer {_THINGS} (?:now|these days|nowadays){CLAUSE_END}"),
    many(
        PREFERENCE,
        "dislikes",
        rf"I (?:can't stand|cannot stand|can't bear|hate) {_THINGS}(?: any ?more| any longer| now| these"
        rf" days){CLAUSE_END}",
    ),
    many(
        *(PREFERENCE, "prefers"),
        rf"{_I} (?:switched|gone back|went back|changed) (?:over )?to (?P<value>(?:the )?[\w-]+ (?:mode|theme"
        rf"|seats?|answers?))\b",
    ),
    many(
        IDENTITY,
        f"{NO_LONGER}name",
        rf"{_I} (?:broke|broken|split) up with (?P<value>{PERSON_NAME}){END}",
        subject=PARTNER,
    ),
    many(PREFERENCE, "prefers", rf"I'd rather (?:have |take )?{_THINGS} (?:from now on|these days|now){CLAUSE_END}"),
    one(IDENTITY, "age", r"(?:I'm|I am) (?P<value>[1-9]\d)(?= now(?:\s*[.,!]|\s*$))"),
    many(
        *(PREFERENCE, NO_LONGER.strip()),
        r"(?P<value>(?:I|[Ww]e)(?:'m|'re| am| are| do)?(?:n't| not| no longer) (?!(?:have|got|get|need|see|find"
        r"|buy)\b)"
        rf"[^.!?,]{{2,80}}?){ANY_MORE}(?=\s*[.,!]|\s*$)",
    ),
)

OWN_ENDS_OF_MY = (
    one(IDENTITY, "home", rf"[Mm]y (?:new )?home is (?:now )?(?:in )?(?P<value>{TOWN}){END}"),
    one(IDENTITY, "employer", rf"[Mm]y (?:new )?(?:employer|company) is (?:now )?(?P<value>{NAME}){END}"),
    many(
        IDENTITY,
        _WORK,
        rf"[Mm]y (?:contract|job|time) (?:with|at) (?P<value>{NAME})(?<!'s) (?:has )?(?:ended|is over|ran out"
        rf"|expired)\b",
    ),
    many(
        *(PREFERENCE, NO_LONGER),
        rf"[Mm]y (?P<slot>favou?rite [\w-]+(?: [\w-]+)?) (?:is no longer|isn't)"
        rf" (?P<value>[^,.;]{{2,40}}?)(?:{ANY_MORE})?{CLAUSE_END}",
    ),
    many(
        *(PREFERENCE, f"{NO_LONGER}allergic to"),
        rf"[Mm]y (?P<subject>{KIN}) (?:isn't|is not|is no longer) (?:{VERY} )?allergic to {_THINGS}{ENDS}",
        subject="",
    ),
    many(
        *(PREFERENCE, f"{NO_LONGER}allergic to"),
        r"(?:[Tt]he|[Mm]y) (?P<value>[\w' -]{3,40}?) allergy (?:is gone|has gone|went away|is over|was a"
        r" misdiagnosis)",
    ),
    one(
        *(PREFERENCE, ""),
        r"[Mm]y (?P<slot>favou?rite [\w-]+(?: [\w-]+)?) used to be (?P<no_longer>[^,.;]{2,40}?),? (?:but |and )?"
        rf"now (?:it's|it is) (?P<value>[^,.;]{{2,40}}?){CLAUSE_END}",
    ),
    one(
        *(IDENTITY, ""),
        rf"[Mm]y (?P<slot>{NUMBER}|(?:(?:work|personal|home|private) )?e-?mail(?: address)?|address)"
        rf" (?:is now|(?:has |was |has been )?changed(?: to|,? (?:and )?it's(?: now)?|:)) `?(?P<value>{MAIL}"
        rf"|[+\d(][\d ()/-]{{4,}}\d)",
    ),
    many(
        IDENTITY,
        f"{NO_LONGER}name",
        rf"[Mm]y (?P<subject>{KIN}) (?P<value>{PERSON_NAME}) (?:left|quit|retired){END}",
        subject="",
    ),
)

OWN_OPENERS = (
    many(
        *(IDENTITY, f"{NO_LONGER}name"),
        rf"(?P<value>{PERSON_NAME}) (?:isn't|is not|is no longer) (?:my|our)"
        rf" (?P<subject>{KIN})(?:{ANY_MORE})?{CLAUSE_END}",
        subject="",
    ),
    many(
        *(IDENTITY, f"{NO_LONGER}name"),
        rf"(?P<value>{PERSON_NAME}) and I (?:broke up|split up|separated|(?:got|are) divorced)(?=\s*[.!,]|\s*$|"
        rf" (?:last|in|on|this|yesterday)\b)",
        subject=PARTNER,
    ),
    many(
        *(IDENTITY, f"{NO_LONGER}name"),
        rf"(?:(?:Sadly|Unfortunately|Alas),? )?(?P<value>{CAPITALISED}) (?:has )?(?:died|passed away|was put"
        rf" down)(?=\s*[.!,]|\s*$| (?:last|in|on|this|yesterday)\b)",
        subject="pet",
    ),
    many(IDENTITY, _WORK, rf"(?P<value>{NAME}) (?:fired|sacked|laid off|let go of|dismissed) me\b"),
    one(
        IDENTITY,
        "",
        rf"[Nn]ew (?P<slot>{NUMBER}|e-?mail(?: address)?)(?::| is) `?(?P<value>{MAIL}|[+\d(][\d ()/-]{{3,}}\d)",
    ),
)

OWN_ENDS_OF_ORDERS = (
    one(
        IDENTITY,
        "email",
        rf"(?:[Pp]lease )?(?:[Uu]se|[Ww]rite to me at|[Ee]-?mail me at) `?(?P<value>{MAIL})`?(?: instead of"
        rf" {MAIL})?{NOW}",
    ),
)
