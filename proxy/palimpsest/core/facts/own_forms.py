"""Forms in which users speak of themselves and their own: who they are, what they like, what they cannot have."""

from __future__ import annotations

from palimpsest.core.facts.form import many, one
from palimpsest.core.facts.vocabulary import (
    ANYBODY,
    CAPITALISED,
    CLAUSE,
    CLAUSE_END,
    DATE,
    DEAR,
    DIET,
    END,
    KIN,
    MAIL,
    NAME,
    NEXT_CLAUSE,
    NO_PERSON,
    NOT_LIKED,
    NUMBER,
    OFTEN,
    PERSON_NAME,
    PET,
    PLACE,
    PRONOUNS,
    VERY,
    group,
    job,
)
from palimpsest.domain import FactCategory

IDENTITY, PREFERENCE = FactCategory.IDENTITY, FactCategory.PREFERENCE

_AM = r"(?:I'm|I am)"
_NOW = r"(?:(?:currently|now) )?"
_MY = r"(?:[Mm]y|[Oo]ur)"
# Not addressed ("hello my friend Bo"), and not what somebody would be named ("I would call my son Bo").
_IS_THERE = r"(?<![Hh]ello )(?<![Hh]i )(?<![Hh]ey )(?<![Tt]hanks )(?<!name )(?<!call )"
_THEIRS = rf"{_IS_THERE}{_MY} (?:{DEAR} )?(?P<subject>{ANYBODY})"
_VALUED = group("value", NAME)
_PERSON = group("value", PERSON_NAME)
_AT_WORK = rf"(?: (?:at|for) (?P<employer>{NAME}){END})?"
_FROM = rf"(?: (?:(?:living|based) )?(?:in|from) (?P<home>{PLACE}){END})?"
_FROM_WHERE = rf"(?: (?:(?:living|based) )?(?:in|from) (?P<home>{PLACE}))?"
_FAVOURITE = (
    r"favou?rite(?! (?:part|thing|things|parts|moment|moments|memory|memories|one|ones|aspect|time|times|way"
    r"|place to|right now|at the moment)\b)(?: (?!is\b|are\b|of\b|to\b|in\b)[\w-]+){1,3}"
)

OF_MY = (
    one(IDENTITY, "name", rf"[Mm]y (?:(?:full|real|actual) )?name(?: is|'s) {_VALUED}{END}"),
    one(IDENTITY, "", rf"[Mm]y (?P<slot>(?:first|last|middle|nick|pet|sur|stage|pen) ?name) is {_VALUED}{END}"),
    many(
        *(IDENTITY, "name"),
        rf"{_THEIRS}(?:'s name is| is called| is named|,? (?:who is |who's )?(?:named|called)) {_PERSON}(?![\w'])",
        subject="",
        is_presupposed=True,
    ),
    many(
        *(IDENTITY, "name"),
        rf"{_THEIRS} {_PERSON}(?! \w+'s\b)(?:, who(?:'s| is) (?P<age>\d{{1,2}})(?= (?:and|years)|,|[.?!]|$))?"
        r"(?=[\s,.?!;)]|'s\b|$)",
        subject="",
        is_presupposed=True,
    ),
    many(
        *(IDENTITY, "name"),
        rf"{_THEIRS}, {_PERSON}(?=,(?! (?:and|or) [A-Z])(?! [A-Z])|[.?!]|$)",
        subject="",
        is_presupposed=True,
    ),
    many(
        *(PREFERENCE, "allergic to"),
        rf"[Mm]y (?:{DEAR} )?(?P<subject>{KIN}) is (?:{VERY} )?allergic to (?P<value>[\w' -]{{3,60}}?){CLAUSE_END}",
        subject="",
    ),
    one(
        *(IDENTITY, ""),
        r"[Mm]y (?:current )?(?P<slot>(?:work |job )title|time ?zone|hometown|home town|native language|mother tongue"
        rf"|first language|star sign) is (?P<value>[A-Z+-][^,.;!?]{{1,50}}?){END}",
    ),
    one(IDENTITY, "birthday", rf"[Mm]y birthday (?:is |is coming up |coming up )(?:on )?(?P<value>{DATE})(?!\w)"),
    one(IDENTITY, "", rf"[Mm]y (?P<slot>date of birth|birth date) is (?P<value>{DATE}(?:,? \d{{4}})?)(?!\w)"),
    one(IDENTITY, "pronouns", rf"[Mm]y (?:preferred )?pronouns are (?P<value>{PRONOUNS})(?!\w)"),
    one(
        *(IDENTITY, ""),
        r"[Mm]y (?P<slot>(?:(?:work|personal|home|private|new|current) )?e-?mail)(?: address)?(?: is|:|'s) "
        rf"`?(?P<value>{MAIL})",
    ),
    one(
        *(IDENTITY, ""),
        rf"[Mm]y (?:new |current )?(?P<slot>{NUMBER})(?: is|:|'s) "
        r"`?(?P<value>(?=[^\s,]*[\d_])[\w+(][\w+/#().-]*(?:[ -][\d/-]+)*\w)(?=`?(?:[\s,;)!?]|\.(?:\s|$)|$))",
    ),
    one(
        *(IDENTITY, ""),
        r"[Mm]y (?:new |current )?(?P<slot>(?:(?:home|work|postal|mailing|shipping|billing|delivery) )?address) is "
        rf"(?P<value>\d[^;!?\n]{{6,100}}?)(?=\.?\s*$|\. |[;!?]|{NEXT_CLAUSE}| and (?:my|I|the)\b)",
    ),
    one(
        *(IDENTITY, "occupation"),
        rf"[Mm]y (?:job|work|role|career|position) as an? {job('value')}{_AT_WORK}",
        is_presupposed=True,
    ),
    one(
        *(PREFERENCE, ""),
        rf"[Mm]y (?:(?:all[- ]time|absolute|current|personal|new) )?(?P<slot>{_FAVOURITE})"
        rf" (?:is|are|has always been|is still|is probably) (?:definitely |obviously |actually )?{CLAUSE}",
    ),
)

OF_I = (
    one(
        *(IDENTITY, "membership"),
        rf"{_AM} an? (?P<value>(?:[Gg]old|[Ss]ilver|[Bb]ronze|[Pp]latinum|[Dd]iamond|[Pp]remium|[Rr]egular|[Ll]ifetime)"
        r" (?:member|cardholder|subscriber|customer))\b",
    ),
    one(IDENTITY, "occupation", rf"{_AM} (?:a|an) (?P<age>\d{{2}})[- ]years?[- ]old (?:{job('value')}){_FROM}"),
    one(IDENTITY, "age", rf"{_AM} an? (?P<value>\d{{2}})[- ]years?[- ]old\b"),
    one(
        *(IDENTITY, "age"),
        rf"{_AM} (?P<value>[1-9]\d)(?: years? old)?,? (?:and )?(?:living|based|and live) in (?P<home>{PLACE}){END}",
    ),
    one(
        *(IDENTITY, "age"),
        rf"{_AM} (?:currently )?(?P<value>[1-9]\d)(?: years? old\b|,? y/?o\b"
        r"|(?=,(?! \d)|[.!]\s|[.!]?$| and (?:I|we|my|married|single|work|live)\b))",
    ),
    one(
        *(IDENTITY, "name"),
        rf"{_AM} (?P<value>{CAPITALISED}(?: {CAPITALISED})?), (?:an? |the )(?:\d\d[- ]year[- ]old )?"
        rf"{job('occupation')}{_FROM}",
    ),
    one(
        *(IDENTITY, "name"),
        rf"{_AM} (?P<value>(?!{NO_PERSON}\b){CAPITALISED} {CAPITALISED})"
        r"(?=, (?:nice|and I|from|an?|living|\d\d)\b|[.!]?$|[.!] )",
    ),
    one(IDENTITY, "name", rf"I (?:go by|am called|prefer to be called) {_VALUED}{END}"),
    one(
        *(IDENTITY, "home"),
        rf"(?:{_AM} {_NOW}(?:based|living|located|residing)|(?:I|[Ww]e) (?:currently |now |both )?(?:live|reside)"
        rf"|[Ww]e're (?:based|living|located)) in (?P<value>{PLACE}){END}",
    ),
    one(
        *(IDENTITY, "origin"),
        rf"(?:{_AM} (?:originally )?from|I (?:was born (?:and raised )?|grew up )in) (?:the )?(?P<value>{PLACE}){END}",
    ),
    one(IDENTITY, "birthday", rf"I was born on (?:the )?(?P<value>{DATE}(?:,? \d{{4}})?)(?!\w)"),
    one(
        *(IDENTITY, "employer"),
        rf"(?:I {_NOW}work|{_AM} {_NOW}(?:working|employed)) (?:at|for) {_VALUED}{END}(?: as an? {job('occupation')})?",
    ),
    one(IDENTITY, "occupation", rf"I {_NOW}work as an? {job('value')}{_AT_WORK}"),
    one(IDENTITY, "occupation", rf"{_AM} {_NOW}an? {job('value')}{_AT_WORK}{_FROM}"),
    one(IDENTITY, "pronouns", rf"(?:I use|I go by) (?P<value>{PRONOUNS})(?: pronouns)(?!\w)"),
    one(
        *(IDENTITY, "time zone"),
        rf"{_AM} (?:in|on) (?:the )?(?P<value>(?:US )?(?:Eastern|Central|Pacific|Mountain)"
        r"|[A-Z]{2,4}(?:[+-]\d{1,2})?)(?: time(?: ?zone)?)(?!\w)",
    ),
    many(
        *(IDENTITY, "name"),
        r"(?:I|[Ww]e)(?:'ve| have)? (?:(?:just|recently) )?(?:have|got|own|adopt(?:ed)?|bought|had)? ?"
        rf"an? (?:[\w-]+ ){{0,2}}(?P<subject>{PET}|son|daughter|brother|sister|wife|husband) (?:named|called) {_PERSON}"
        r"(?![\w'])",
        subject="",
    ),
    many(PREFERENCE, "allergic to", rf"{_AM} (?:{VERY} )?allergic to {CLAUSE}"),
    many(PREFERENCE, "allergic to", rf"I have an? (?:[\w-]+ )?allergy to {CLAUSE}"),
    one(
        *(PREFERENCE, "diet"),
        rf"{_AM} (?:also |now |currently )?(?:an? )?(?P<value>{DIET})(?: since [\w ]{{3,20}}?)?\b"
        rf"(?: and (?:{VERY} )?allergic to (?P<allergic_to>[\w' -]{{3,60}}?){CLAUSE_END}"
        r"|(?! \w+(?<!\bnow)(?<!\band)(?<!\bso)))",
    ),
    many(PREFERENCE, "does not take", rf"I (?:do not|don't|never|can't|cannot) (?:eat|drink) {CLAUSE}"),
    many(PREFERENCE, "prefers", rf"I {OFTEN}prefer (?!(?:if|when|that|not)\b){CLAUSE}"),
    many(PREFERENCE, "likes", rf"I {OFTEN}(?:love|enjoy|like(?! to\b)) (?:also )?(?!{NOT_LIKED}\b){CLAUSE}"),
    many(
        *(PREFERENCE, "dislikes"),
        rf"I (?:really |absolutely )?(?:hate|dislike|can't stand|detest) (?!{NOT_LIKED}\b){CLAUSE}",
    ),
    many(PREFERENCE, "likes", rf"{_AM} (?:such )?an? (?:huge|big|massive|great|total|real) fan of {CLAUSE}"),
)

OF_AS = (
    one(
        *(IDENTITY, "age"),
        rf"[Aa]s an? (?P<value>\d{{2}})[- ]year[- ]old(?: {job('occupation')})?{_FROM_WHERE}(?=,? (?:I|I'm|my)\b)",
        is_presupposed=True,
    ),
    one(
        *(IDENTITY, "occupation"),
        rf"As an? {job('value')}{_FROM_WHERE}"  # and no user story: "as a manager, I want to see reports"
        r"(?=, (?:I'm|I've|my|I (?!want|need|can|should|would|must|may|will|expect)\w+)\b)",
        is_presupposed=True,
    ),
)

OF_CALL = (
    one(*(IDENTITY, "name"), rf"(?:[Pp]lease |[Yy]ou can |[Jj]ust )?[Cc]all me {_VALUED}(?=[.!]|$|,| from| instead)"),
)
