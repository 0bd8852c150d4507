"""Forms in which users speak of their work: decisions, orders that hold from now on, what to remember, settings."""

from __future__ import annotations

from palimpsest.core.facts.form import many, one
from palimpsest.core.facts.vocabulary import (
    ADDRESS,
    CAPITALISED,
    CLAUSE_END,
    END,
    NAMELESS,
    NOUN,
    NUMBER,
    NUMBER_OF_ONE,
    OF_IT,
    ORDER,
    PATH,
    SENTENCE_END,
    SUM,
    THING,
    TOKEN,
    TOKEN_END,
    VERSIONED,
    WHEN,
)
from palimpsest.domain import FactCategory

INSTRUCTION, DECISION = FactCategory.INSTRUCTION, FactCategory.DECISION
NOTE, SETTING = FactCategory.NOTE, FactCategory.SETTING

_ARE = r"(?:I'm|I am|[Ww]e're|[Ww]e are)"
_ANYONE = r"(?:I|[Ww]e)"
_HAVE = rf"{_ANYONE}(?:'ve| have)? (?:(?:finally|just|both|already|also|all|actually|now|recently|eventually) ){{0,2}}"
_THE = rf"(?:[Oo]ur|(?:[Tt]he|[Mm]y){NAMELESS})"
_PLEASE = r"(?:[Pp]lease )?"
_REST = r"(?P<value>\S.{7,280}?)"  # of a sentence

DECISIONS = (
    many(
        *(DECISION, "decided"),
        rf"{_HAVE}(?P<value>(?:decided|agreed) (?:not to|to|on|against|that (?!in |on |for |with |at )|upon|the"
        rf"|our)\b.{{2,170}}?){CLAUSE_END}",
    ),
    many(
        *(DECISION, "decided"),
        rf"{_HAVE}(?P<value>(?:chose|chosen|picked|opted for|opted to|settled on|settled for|gone with|went with"
        r"|switched to|switched from|dropped) (?!(?:a new|another|up|out|off|it|them|him|her|this|that"
        rf"|one)\b).{{2,170}}?){CLAUSE_END}",
    ),
    many(
        *(DECISION, "decided"),
        rf"{_ARE} (?:now )?(?P<value>(?:going with|switching (?:\S+ ){{0,3}}?(?:to|from)|staying (?:with|on)"
        rf"|migrating to|moving (?:away )?(?:\S+ ){{0,3}}?from \S+ to) (?!(?:it|them|this|that|the flow)\b)"
        rf".{{2,120}}?){CLAUSE_END}",
    ),
    many(
        *(DECISION, "decided"),
        r"[Ww]e(?:'ll| will) (?P<value>(?:use|go with|stay (?:on|with)|stick (?:with|to)|switch to|keep using)"
        rf" .{{2,120}}?){CLAUSE_END}",
    ),
    many(
        *(DECISION, "decided"),
        rf"{_ANYONE} (?P<value>(?:no longer|don't) (?:use|support|deploy to|run|need) .{{2,80}}?"
        rf" (?:any ?more|any longer)){CLAUSE_END}",
    ),
    many(
        *(DECISION, "decided"),
        rf"{_ANYONE} (?P<value>no longer (?:use|support|deploy|run|ship) .{{2,100}}?){CLAUSE_END}",
    ),
)
LETS = (
    many(
        *(DECISION, "decided"),
        r"[Ll]et(?:'s|s| us) (?:just |then |all )?(?P<value>(?:go with|use|stick (?:with|to)|switch to|settle on"
        rf"|stay with|keep using) .{{2,120}}?){CLAUSE_END}",
    ),
    many(DECISION, "decided", rf"Going with (?P<value>[A-Z](?:(?! was | is ).){{2,100}}?){CLAUSE_END}"),
)
ORDERS = (
    many(
        *(INSTRUCTION, "always"),
        r"(?:(?:[Ff]rom now on|[Gg]oing forward|[Ff]rom here on(?: out)?|[Ff]rom this point on(?:wards?)?),?"
        r"|[Ii]n (?:the )?future,) (?!(?:I|we|I'm|I'll|we'll|my|our|he|she|they|it)\b)(?!.*, I(?:'ll| will)\b)"
        rf"{_REST}{SENTENCE_END}",
    ),
    many(
        *(INSTRUCTION, "always"),
        rf"{_PLEASE}(?P<value>(?:[Aa]lways|[Nn]ever|[Dd]on't ever|[Dd]o not ever) {ORDER}\b .{{4,280}}?){SENTENCE_END}",
    ),
    many(
        *(INSTRUCTION, "always"),
        r"(?P<value>[Ww]hen(?:ever)? (?:I (?:ask|mention|say|write|send|share)"
        r"|you (?!(?:have|are|get|can|feel|were|need)\b)[a-z]+) [^,]{3,90}, "
        rf"(?:please )?(?:always |never |don't |do not )?{ORDER}\b .{{4,200}}?){SENTENCE_END}",
    ),
    many(
        *(INSTRUCTION, "always"),
        rf"{_PLEASE}(?P<value>(?:{ORDER}|[Uu]se|[Ww]rite|[Aa]nswer|[Rr]eply|don't|do not)\b .{{4,200}}?),? "
        rf"(?:from now on|going forward|from here on out|every time){SENTENCE_END}",
    ),
)
CONSENT = (
    many(
        *(INSTRUCTION, "always"),
        rf"{_PLEASE}(?P<value>(?:[Dd]on't|[Dd]o not|[Nn]ever) {ORDER}\b .{{4,120}}? "
        rf"without (?:asking|telling|checking|confirming|my)\b.{{0,60}}?){SENTENCE_END}",
    ),
)
NOTES = (
    many(
        *(NOTE, "note"),
        r"(?:(?:[Pp]lease|[Aa]lso|[Aa]lways|[Cc]an you|[Cc]ould you|I (?:want|need) you to),? (?:please )?)?"
        r"(?:[Rr]emember|[Kk]eep in mind|[Dd]on't forget|[Dd]o not forget|[Mm]ake a note|[Tt]ake note|[Bb]ear in mind)"
        r"(?: that|:) (?=(?:I|I'm|I've|I'll|my|we|we're|our|the|all|every|The|My|Our|We|[A-Z][a-z]+|\d+)\b)"
        rf"{_REST}(?=[.!?]*\s*$)",
    ),
    many(
        *(NOTE, "note"),
        r"(?:[Ff]or (?:your |the |future )?(?:future )?(?:reference|record|information)|FYI|[Ff]yi"
        r"|[Nn]ote to self)[,:] "
        rf"(?=(?:I|my|we|our|I'm|I've|the|The|My|Our|We)\b){_REST}{SENTENCE_END}",
    ),
)
USES = (
    many(
        *(SETTING, "uses"),
        rf"(?:{_ARE} (?:currently |now |already )?using|{_ANYONE} (?:currently |now )?use)"
        rf" (?P<value>{VERSIONED}(?:(?:,|,? and) {VERSIONED}){{0,4}}){TOKEN_END}",
    ),
)
SETTINGS = (
    one(
        *(SETTING, ""),
        rf"{_THE} (?P<slot>{NOUN}{{0,3}}{THING}{OF_IT}) "
        r"(?:is|was changed to|has changed to|changed to|was moved to)(?: (?:now|actually|currently))? "
        rf"(?:(?:set|listening|running) )?(?:(?:to|at|on|in|called|port) )*`?(?P<value>{TOKEN})`?{TOKEN_END}",
    ),
    one(
        *(SETTING, ""),
        rf"{_THE} (?P<slot>{NOUN}{{1,4}}?)(?:now )?(?:listens|runs|lives"
        r"|is(?: (?:currently )?(?:listening|running|served|hosted|reachable))?) (?:now )?(?:on|at|under) "
        rf"(?:the )?(?:address |url )?`?(?P<value>{ADDRESS})`?{TOKEN_END}"
        r"(?! (?:o'clock|am|pm|%|percent|years|items|points))",
    ),
    one(
        *(SETTING, ""),
        rf"{_THE} (?P<slot>{NOUN}{{1,6}}?)(?:is|are|lives|live|sits|sit|is located|is stored|are stored) "
        rf"(?:now )?(?:in|at|under) `?(?P<value>{PATH})`?{TOKEN_END}",
    ),
    one(
        *(SETTING, ""),
        rf"{_THE} (?P<slot>{NOUN}{{1,4}}?(?:on|in|at|of|under|for) {NOUN}{{1,4}}|{NOUN}{{1,4}}?)has the "
        rf"(?:address|number|port|IP|id|ID|code|serial number|version) `?(?P<value>{TOKEN})`?{TOKEN_END}",
    ),
    one(
        *(SETTING, ""),
        rf"{_THE} (?P<slot>{NOUN}{{0,3}}(?:deadline|due date|release date|launch date|cut-?off){OF_IT}) is "
        rf"(?:now |on |set for |set to )*(?P<value>{WHEN})(?![\w/])",
    ),
    one(
        *(SETTING, ""),
        rf"{_THE} (?P<slot>{NOUN}{{1,4}}?)(?:was|is|has been|got) (?:now )?"
        rf"(?:moved|rescheduled|postponed|pushed|brought forward) (?:back )?to (?P<value>{WHEN})(?![\w/])",
    ),
    one(
        *(SETTING, ""),
        rf"{_THE} (?P<slot>{NOUN}?(?:{NUMBER}|(?<!\b[Oo]ur ){NUMBER_OF_ONE}){OF_IT}) is "
        rf"`?(?P<value>(?=[^\s,]*\d)[\w+][\w+/#.-]*\w)`?{TOKEN_END}",
    ),
    one(
        *(SETTING, ""),
        rf"{_THE} (?P<slot>{NOUN}{{0,2}}budget{OF_IT}) is "
        rf"(?:around |about |set at |limited to |capped at |now |roughly )?(?P<value>{SUM})(?![\w%])",
    ),
    one(
        *(SETTING, ""),
        rf"(?:[Oo]ur|[Mm]y|[Tt]he(?! [\w'-]+ (?:is|are)\b)) (?P<slot>{NOUN}{{1,3}}?)(?:is|are) (?:called|named) "
        rf"`?(?P<value>{CAPITALISED}(?: {CAPITALISED}){{0,3}})`?{END}(?! (?:and|or) [A-Z])",
    ),
)
