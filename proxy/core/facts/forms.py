"""
The forms of statements that carry a fact, as tables of patterns by the word that a statement begins with.

A pattern is matched where its head stands ("I", "my", "we", "the", "always"). It takes the whole of a statement and
nothing else: a form is here because it was right on conversations that it was not written for (docs/facts.md).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from proxy.domain import PROJECT_SUBJECT, USER_SUBJECT, FactCategory

IDENTITY, PREFERENCE, INSTRUCTION, DECISION, NOTE, SETTING = FactCategory


@dataclass(frozen=True, slots=True)
class Form:
    """
    One form of statement. The group `value` is the fact's value; further groups are values of slots of their names.

    `slot` and `subject` are named by the groups of these names where they are empty. `is_presupposed`: the words say it
    wherever they stand, in a question too ("how old is my sister Ada?").
    """

    pattern: re.Pattern[str]
    category: FactCategory
    subject: str
    slot: str
    is_single: bool
    is_presupposed: bool


def _form(
    pattern: str,
    category: FactCategory,
    slot: str = "",
    subject: str | None = None,
    is_single: bool = False,
    is_presupposed: bool = False,
) -> Form:
    if subject is None:
        subject = USER_SUBJECT if category in (IDENTITY, PREFERENCE) else PROJECT_SUBJECT
    return Form(re.compile(pattern), category, subject, slot, is_single, is_presupposed)


def _one(pattern: str, category: FactCategory, slot: str = "", subject: str | None = None) -> Form:
    """A form whose slot holds one value at a time."""
    return _form(pattern, category, slot, subject, is_single=True)


# --- words ---------------------------------------------------------------------------------------

# A clause ends at a stop that is no part of a word, and where another clause begins.
_BREAK = (
    r"I|I'm|I've|I'd|I'll|we|my|our|please|it|it's|that|that's|this|they|he|she|you|maybe|also|then|can|could|would"
    r"|will"
    r"|should|do|does|did|is|are|was|were|what|what's|how|where|when|why|any|kindly|so|but|because|since|which|who"
    r"|whose|while"
    r"|although|though|however|given|considering|especially|right|even|if|unless|like|you know|kinda|sorta|not|now"
    r"|by far"
)
_STOP = (
    r"\s*(?:(?<!\bSt)(?<!\b[DMSJ]r)(?<!\bMs)(?<!\bMrs)(?<!\bvs)[.!?;:]+(?:[\s)\"'*]|$)|$|\)|(?<=\s)\("
    r"| [-\u2013\u2014]+ "
    rf"|,? (?:but|so|because|since|which|although|though|however|whereas)\b|, (?:{_BREAK})\b"
    r"|,? (?:and|plus) (?:I|I'm|I've|I'd|I'll|we|my|our|it|it's|this|that|he|she|they|you|there|then|now|want|need|am"
    r"|was"
    r"|have|had|can|could|would|will|wondering|how|what|do|does|is|are|not|the (?:\w+ ){1,2}(?:is|are|was|were))\b"
    r"|,? '?cause\b|, the (?:[\w]+ ){1,4}(?:is|are|was|sounds|seems|looks|has)\b"
)
_END = rf"(?={_STOP}|,? (?:and|who|when|while|as|if|unless|or|for|with|at|where)\b|,))"  # of a name or number
_CLAUSE_END = rf"(?={_STOP}))"
_CLAUSE = rf"(?P<value>\S.{{1,170}}?){_CLAUSE_END}"
_REST = r"(?P<value>\S.{7,280}?)"  # of a sentence
_ENDING = r"(?=[.!]*\s*$)"

_NO_NAME = (
    r"(?!(?:I|Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday|January|February|March|April|May|June|July"
    r"|August"
    r"|September|October|November|December|Mr|Mrs|Christmas|Easter|God|OK|Ok|No|Yes|So|And|But|The|My|We|In|On|At|If|Is"
    r"|American|British|Canadian|Indian|German|French|Chinese|European|African|Asian|English|Google|AI|IT|HR|PT|TV"
    r"|PR)\b)"
)
_WORD = rf"{_NO_NAME}[A-Z\u00c0-\u00de][\w'-]*[\w]"
_NAME = rf"{_WORD}(?: (?:de |van |von |der |of )?{_WORD}){{0,3}}"
_GIVEN = rf"(?:(?:Dr|Prof)\.? )?{_WORD}(?<!'s)(?: {_WORD}(?<!'s))?"  # of a person who is spoken of
_PLACE = rf"{_WORD}(?:,? (?:de |del |of |the |la |and )?{_WORD}){{0,4}}"
_MONTH = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sep(?:t(?:ember)?)?|Oct(?:ober)?"
    r"|Nov(?:ember)?|Dec(?:ember)?)"
)
_DAY = r"\d{1,2}(?:st|nd|rd|th)?"
_DATE = (
    rf"(?:(?:the )?{_DAY} (?:of )?{_MONTH}|{_MONTH} (?:the )?{_DAY}|\d{{4}}-\d\d-\d\d"
    r"|\d{1,2}[/.]\d{1,2}[/.]\d{2,4})"
)
_WHEN = rf"(?:{_DATE}(?:,? (?:\d{{4}}|at .{{1,12}}))?|(?:next |this |on )?(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day)"
_AM = r"(?:I'm|I am)"
_HAVE = r"(?:I|[Ww]e)(?:'ve| have)?"
_OFTEN = (
    r"(?:(?:really|also|still|always|usually|generally|much|strongly|personally|typically|definitely|actually|just) )?"
)
_DEAR = r"(?:(?:close|best|good|dear|new|old|late|great|former|beloved|long-?time|childhood|little|rescue) )?"
_KIN = (
    r"(?:(?:older|younger|big|elder|eldest|oldest|youngest|twin|step|half|thesis)[- ]?)?"
    r"(?:wife|husband|partner|spouse|girlfriend|boyfriend|fianc[\u00e9e]e?|mother|mom|mum|father|dad|sister|brother|son"
    r"|daughter|grandmother|grandma|grandfather|grandpa|aunt|uncle|cousin|nephew|niece|(?:mother|father|sister|brother"
    r"|son"
    r"|daughter)-in-law|friend|boss|manager|colleague|co-?worker|roommate|flatmate|neighbou?r"
    r"|mentor|therapist|dentist|supervisor|advisor|coach|tutor|attorney|lawyer|accountant|landlord|landlady)"
)
_PET = r"(?:dog|cat|puppy|kitten|horse|pony|parrot|rabbit|hamster|turtle|guinea pig)"
_ANYBODY = rf"(?:{_KIN}|{_PET})"
_PROFESSION = (
    r"(?:(?!(?:and|or|an?|the|of|who|with|at|for|in|to|as)\b)[a-z][\w/-]* ){0,3}(?:accountant|actor|actress"
    r"|administrator|analyst|architect|artist|author|baker|barista"
    r"|biologist|carpenter|chef|chemist|clerk|colou?r technologist|consultant|cook|counsell?or|dancer|dentist|designer"
    r"|developer|doctor|driver|economist|editor|electrician|engineer|farmer|film-?maker|firefighter|freelancer"
    r"|intern|journalist|judge|lawyer|lecturer|librarian|manager|mechanic|musician|nurse|paralegal|paramedic|pastor"
    r"|personal assistant|pharmacist|photographer|physicist|pilot|plumber|postdoc|producer|professor|programmer"
    r"|psychologist|receptionist|recruiter|researcher|scientist|secretary|singer|student|surgeon|teacher|technician"
    r"|technologist|therapist|translator|tutor|undergraduate|veterinarian|vet|waiter|waitress|welder|writer)"
)
_NO_PROFESSION = (
    r"(?!(?:[\w-]+ )*(?:good|bad|better|great|terrible|decent|slow|fast|big|huge|natural|born|night|aspiring|former"
    r"|ex|future|would-be|wannabe|potential|new|lousy|poor|real|budding|visual|quick|beginner|hobby|amateur|home|few"
    r"|fellow|little|bit|lot|non|careful)\b)"
)


def _job(group: str) -> str:
    return (
        rf"{_NO_PROFESSION}(?P<{group}>{_PROFESSION})(?![\w-])(?! (?:of|or|and (?!I\b)|friend|account|role|position)\b)"
    )


_ORDER = (
    r"(?:add|address|answer|apply|ask|assume|avoid|back|begin|break|bring|build|call|change|check|choose|cite|clarify"
    r"|close"
    r"|combine|commit|compare|confirm|consider|convert|create|define|delete|deploy|describe|detail|display|do"
    r"|double-check"
    r"|draw|edit|emphasi[sz]e|end|ensure|explain|favou?r|flag|focus|follow|format|generate|give|go|greet|guide|handle"
    r"|help"
    r"|highlight|identify|ignore|illustrate|include|indicate|install|keep|label|let|link|list|log|look|make|mention"
    r"|merge"
    r"|modify|name|note|offer|open|outline|output|point|prefer|present|print|prioriti[sz]e|propose|prove|provide|push"
    r"|put"
    r"|quote|read|recommend|refer|reference|relate|remind|remove|reply|report|respond|return|round|run|say|send|set"
    r"|share"
    r"|show|sign|simplify|skip|sort|speak|specify|start|state|stick|stop|store|suggest|summari[sz]e|take|talk|tell|test"
    r"|track|translate|treat|try|update|use|validate|verify|warn|wrap|write)"
)
_TOKEN = r"`?(?P<value>(?=[^\s]*[\d/.:_@])[\w.@+/:~#%\u20ac$-]*[\w/])`?"  # of a machine: a number, path, host, address
_VALUE_END = r"(?=[\s,;)!?]|\.(?:\s|$)|$)"
_THING = (
    r"(?:port|host|hostname|host name|server|database|db|branch|version|region|bucket|queue|topic|cluster|namespace"
    r"|path"
    r"|directory|folder|url|URL|endpoint|base url|base URL|IP|IP address|ip|ip address|timeout|rate limit|batch size"
    r"|threshold|schema|project id|project ID|account id|account ID|repo|repository|domain|subnet|node|registry"
    r"|environment"
    r"|ticket|issue|build|release|tag|port number|extension|error code|room|gate|seat|flight number)"
)
_NUMBER = (
    r"(?:(?:customer|employee|membership|member|frequent flyer|loyalty|reservation|booking|order|confirmation|tracking"
    r"|invoice|policy|case|ticket|account|phone|mobile|cell|telephone|office|room|registration|reference"
    r"|licen[cs]e plate"
    r"|flat|apartment|locker|contract|student|passport|tax) (?:number|no\.?|id|ID|code|reference)"
    r"|(?:user ?|customer |student |employee )(?:id|ID|name)|username|zip code|postcode|postal code|shoe size"
    r"|blood type)"
)
_LIKED = (
    r"(?!(?:the|this|that|these|those|it|its|them|you|your|how|when|what|where|who|which|seeing|hearing|being|having"
    r"|his|her"
    r"|their|him|all|every|both|each|a|an|one|some|any|to see|to hear|getting to|to get|knowing|our|my|to be|to know"
    r"|and)\b)"
)
_SLOW = r"(?:badly|severely|really|highly|deathly|very|quite|seriously|mildly|also|super)"

# --- tables --------------------------------------------------------------------------------------

_OF_MY = (
    _one(rf"[Mm]y (?:(?:full|real|actual) )?name(?: is|'s) (?P<value>{_NAME}){_END}", IDENTITY, "name"),
    _one(rf"[Mm]y (?P<slot>(?:first|last|middle|nick|pet|sur|stage|pen) ?name) is (?P<value>{_NAME}){_END}", IDENTITY),
    _form(
        rf"(?:[Mm]y|[Oo]ur) {_DEAR}(?P<subject>{_ANYBODY})(?:'s name is| is called| is named|,? (?:who is "
        r"|who's )?(?:named|called)) "
        rf"(?P<value>{_GIVEN})(?![\w'])",
        *(IDENTITY, "name", "", False, True),
    ),
    _form(
        rf"(?:[Mm]y|[Oo]ur) {_DEAR}(?P<subject>{_ANYBODY}) (?P<value>{_GIVEN})(?! \w+'s\b)"
        r"(?:, who(?:'s| is) (?P<age>\d{1,2})(?= (?:and|years)|,|[.?!]|$))?(?=[\s,.?!;)]|'s\b|$)",
        *(IDENTITY, "name", "", False, True),
    ),
    _form(
        rf"(?:[Mm]y|[Oo]ur) {_DEAR}(?P<subject>{_ANYBODY}), (?P<value>{_GIVEN})(?=,(?! (?:and|or) [A-Z])(?! [A-Z])"
        r"|[.?!]|$)",
        *(IDENTITY, "name", "", False, True),
    ),
    _form(
        rf"[Mm]y {_DEAR}(?P<subject>{_KIN}) is (?:{_SLOW} )?(?P<slot>allergic to) (?P<value>[\w' "
        rf"-]{{3,60}}?){_CLAUSE_END}",
        *(PREFERENCE, "", ""),
    ),
    _one(
        rf"[Mm]y (?:current )?(?P<slot>(?:work |job )title|time ?zone|hometown|home town|native language|mother tongue"
        rf"|first language|star sign) is (?P<value>[A-Z+-][^,.;!?]{{1,50}}?){_END}",
        IDENTITY,
    ),
    _one(rf"[Mm]y birthday (?:is |is coming up |coming up )(?:on )?(?P<value>{_DATE})(?!\w)", IDENTITY, "birthday"),
    _one(rf"[Mm]y (?P<slot>date of birth|birth date) is (?P<value>{_DATE}(?:,? \d{{4}})?)(?!\w)", IDENTITY),
    _one(r"[Mm]y (?:preferred )?pronouns are (?P<value>\w+/\w+(?:/\w+)?)(?!\w)", IDENTITY, "pronouns"),
    _one(
        r"[Mm]y (?P<slot>(?:(?:work|personal|home|private|new|current) )?e-?mail)(?: address)?(?: is|:|'s) "
        r"`?(?P<value>[\w.+-]{1,64}@[\w-]{1,60}(?:\.[\w-]{1,60}){1,4})",
        IDENTITY,
    ),
    _one(
        rf"[Mm]y (?:new |current )?(?P<slot>{_NUMBER})(?: is|:|'s) `?(?P<value>(?=[^\s,]*[\d_])[\w+(][\w+/#().-]*(?:[ "
        r"-][\d/-]+)*\w)"
        r"(?=`?(?:[\s,;)!?]|\.(?:\s|$)|$))",
        IDENTITY,
    ),
    _one(
        r"[Mm]y (?:new |current )?(?P<slot>(?:(?:home|work|postal|mailing|shipping|billing|delivery) )?address) is "
        rf"(?P<value>\d[^;!?\n]{{6,100}}?)(?=\.?\s*$|\. |[;!?]|, (?:{_BREAK})\b| and (?:my|I|the)\b)",
        IDENTITY,
    ),
    _form(
        rf"[Mm]y (?:job|work|role|career|position) as an? {_job('value')}(?: (?:at|for) (?P<employer>{_NAME}){_END})?",
        *(IDENTITY, "occupation", None, True, True),
    ),
    _one(
        r"[Mm]y (?:(?:all[- ]time|absolute|current|personal) )?(?P<slot>favou?rite(?! (?:part|thing|things|parts|moment"
        r"|moments|memory|memories|one|ones|aspect|time|times|way|place to)\b)(?: (?!is\b|are\b|of\b|to\b"
        r"|in\b)[\w-]+){1,3})"
        rf" (?:is|are|has always been|is still|is probably) {_CLAUSE}",
        PREFERENCE,
    ),
)
_OF_I = (
    _one(
        rf"{_AM} an? (?P<value>(?:gold|silver|bronze|platinum|diamond|premium|regular|lifetime|Gold|Silver|Bronze"
        rf"|Platinum|Diamond|Premium|Regular|Lifetime) (?:member|cardholder|subscriber|customer))\b",
        *(IDENTITY, "membership"),
    ),
    _form(
        rf"{_AM} (?:a|an) (?P<age>\d{{2}})[- ]years?[- ]old (?:{_job('value')})(?: (?:(?:living|based) )?(?:in|from) "
        rf"(?P<home>{_PLACE}){_END})?",
        *(IDENTITY, "occupation", None, True),
    ),
    _one(rf"{_AM} an? (?P<value>\d{{2}})[- ]years?[- ]old\b", IDENTITY, "age"),
    _form(
        rf"{_AM} (?P<value>[1-9]\d)(?: years? old)?,? (?:and )?(?:living|based|and live) in (?P<home>{_PLACE}){_END}",
        *(IDENTITY, "age", None, True),
    ),
    _one(
        rf"{_AM} (?:currently )?(?P<value>[1-9]\d)(?: years? old\b|,? y/?o\b|(?=,(?! \d)|[.!]\s|[.!]?$| and (?:I|we|my"
        r"|married|single|work|live)\b))",
        IDENTITY,
        "age",
    ),
    _form(
        rf"{_AM} (?P<value>{_WORD}(?: {_WORD})?), (?:an? |the )(?:\d\d[- ]year[- ]old )?{_job('occupation')}"
        rf"(?: (?:(?:living|based) )?(?:in|from) (?P<home>{_PLACE}){_END})?",
        *(IDENTITY, "name", None, True),
    ),
    _one(
        rf"{_AM} (?P<value>(?!(?:South|North|East|West|New|Native|Latin|Puerto|Costa|Saudi|Sri|Roman|Type|Team|Gen"
        r"|Level)\b)"
        rf"{_WORD} {_WORD})(?=, (?:nice|and I|from|an?|living|\d\d)\b|[.!]?$|[.!] )",
        *(IDENTITY, "name"),
    ),
    _one(rf"I (?:go by|am called|prefer to be called) (?P<value>{_NAME}){_END}", IDENTITY, "name"),
    _one(
        rf"(?:{_AM} (?:currently |now )?(?:based|living|located|residing)|(?:I|[Ww]e) (?:currently |now "
        r"|both )?(?:live|reside)"
        rf"|[Ww]e're (?:based|living|located)) in (?P<value>{_PLACE}){_END}",
        *(IDENTITY, "home"),
    ),
    _one(
        rf"(?:{_AM} (?:originally )?from|I (?:was born (?:and raised )?"
        rf"|grew up )in) (?:the )?(?P<value>{_PLACE}){_END}",
        *(IDENTITY, "origin"),
    ),
    _one(rf"I was born on (?:the )?(?P<value>{_DATE}(?:,? \d{{4}})?)(?!\w)", IDENTITY, "birthday"),
    _form(
        rf"(?:I (?:currently |now )?work|{_AM} (?:currently |now )?(?:working|employed)) (?:at"
        rf"|for) (?P<value>{_NAME}){_END}"
        rf"(?: as an? {_job('occupation')})?",
        *(IDENTITY, "employer", None, True),
    ),
    _form(
        rf"I (?:currently |now )?work as an? {_job('value')}(?: (?:at|for) (?P<employer>{_NAME}){_END})?",
        *(IDENTITY, "occupation", None, True),
    ),
    _form(
        rf"{_AM} (?:currently |now )?an? {_job('value')}(?: (?:at|for) (?P<employer>{_NAME}){_END})?"
        rf"(?: (?:(?:living|based) in|in|from) (?P<home>{_PLACE}){_END})?",
        *(IDENTITY, "occupation", None, True),
    ),
    _one(r"(?:I use|I go by) (?P<value>\w+/\w+(?:/\w+)?)(?: pronouns)(?!\w)", IDENTITY, "pronouns"),
    _one(
        rf"{_AM} (?:in|on) (?:the )?(?P<value>(?:US )?(?:Eastern|Central|Pacific|Mountain)"
        r"|[A-Z]{2,4}(?:[+-]\d{1,2})?)"
        r"(?: time(?: ?zone)?)(?!\w)",
        *(IDENTITY, "time zone"),
    ),
    _form(
        r"(?:I|[Ww]e)(?:'ve| have)? (?:(?:just|recently) )?(?:have|got|own|adopt(?:ed)?|bought"
        r"|had)? ?an? (?:[\w-]+ ){0,2}"
        rf"(?P<subject>{_PET}|son|daughter|brother|sister|wife|husband) (?:named|called) (?P<value>{_GIVEN})(?![\w'])",
        *(IDENTITY, "name", ""),
    ),
    _form(rf"{_AM} (?:{_SLOW} )?allergic to {_CLAUSE}", PREFERENCE, "allergic to"),
    _form(
        rf"I have an? (?:[\w-]+ )?allergy to {_CLAUSE}",
        *(PREFERENCE, "allergic to"),
    ),
    _one(
        rf"{_AM} (?:also |now |currently )?(?:an? )?(?P<value>(?:(?:strict|lifelong) )?(?:vegetarian|vegan|pescatarian)"
        r"|(?:lactose|gluten)[- ]intolerant|coeliac|celiac|diabetic|teetotal)\b(?! \w+(?<!\bnow)(?<!\band)(?<!\bso))",
        *(PREFERENCE, "diet"),
    ),
    _form(rf"I (?:do not|don't|never|can't|cannot) (?:eat|drink) {_CLAUSE}", PREFERENCE, "does not take"),
    _form(rf"I {_OFTEN}prefer (?!(?:if|when|that|not)\b){_CLAUSE}", PREFERENCE, "prefers"),
    _form(rf"I {_OFTEN}(?:love|enjoy|like) (?:also )?{_LIKED}{_CLAUSE}", PREFERENCE, "likes"),
    _form(rf"I (?:really |absolutely )?(?:hate|dislike|can't stand|detest) {_LIKED}{_CLAUSE}", PREFERENCE, "dislikes"),
    _form(rf"{_AM} (?:such )?an? (?:huge|big|massive|great|total|real) fan of {_CLAUSE}", PREFERENCE, "likes"),
)
_VERSIONED = r"[A-Z][\w.+#-]*(?: [A-Z][\w.+#-]*){0,2} v?\d+(?:\.\d+)+\w*"
_USES = (
    _form(
        rf"(?:(?:I'm|I am|[Ww]e're|[Ww]e are) (?:currently |now |already )?using|(?:I|[Ww]e) (?:currently |now )?use)"
        rf" (?P<value>{_VERSIONED}(?:(?:,|,? and) {_VERSIONED}){{0,4}}){_VALUE_END}",
        *(SETTING, "uses"),
    ),
)
_ADVERB = r"(?:(?:finally|just|both|already|also|all|actually|now|recently|eventually) ){0,2}"
_DECISIONS = (
    _form(
        rf"{_HAVE} {_ADVERB}(?P<value>(?:decided|agreed) (?:not to|to|on|against|that (?!in |on |for |with |at )|upon"
        rf"|the|our)\b.{{2,170}}?){_CLAUSE_END}",
        *(DECISION, "decided"),
    ),
    _form(
        rf"{_HAVE} {_ADVERB}(?P<value>(?:(?:chose|chosen|picked|opted for|opted to|settled on|settled for|gone with"
        r"|went with"
        r"|switched to|switched from|dropped)) (?!(?:up|out|off|it|them|him|her|this|that"
        rf"|one)\b).{{2,170}}?){_CLAUSE_END}",
        *(DECISION, "decided"),
    ),
    _form(
        r"(?:I'm|I am|[Ww]e're|[Ww]e are) (?:now )?(?P<value>(?:going with|switching (?:\S+ ){0,3}?(?:to|from)"
        r"|staying (?:with|on)"
        r"|migrating to|moving (?:away )?(?:\S+ ){0,3}?from \S+ to) (?!(?:it|them|this|that"
        rf"|the flow)\b).{{2,120}}?){_CLAUSE_END}",
        *(DECISION, "decided"),
    ),
    _form(
        r"[Ww]e(?:'ll| will) (?P<value>(?:use|go with|stay (?:on|with)|stick (?:with|to)|switch to"
        rf"|keep using) .{{2,120}}?){_CLAUSE_END}",
        *(DECISION, "decided"),
    ),
    _form(
        r"(?:I|[Ww]e) (?P<value>(?:no longer|don't) (?:use|support|deploy to|run|need) .{2,80}? (?:any ?more"
        rf"|any longer)){_CLAUSE_END}",
        *(DECISION, "decided"),
    ),
    _form(
        rf"(?:I|[Ww]e) (?P<value>no longer (?:use|support|deploy|run|ship) .{{2,100}}?){_CLAUSE_END}",
        DECISION,
        "decided",
    ),
)
_LETS = (
    _form(
        r"[Ll]et(?:'s|s| us) (?:just |then |all )?(?P<value>(?:go with|use|stick (?:with|to)|switch to|settle on"
        r"|stay with|keep using)"
        rf" .{{2,120}}?){_CLAUSE_END}",
        *(DECISION, "decided"),
    ),
    _form(rf"Going with (?P<value>[A-Z](?:(?! was | is ).){{2,100}}?){_CLAUSE_END}", DECISION, "decided"),
)
_ORDERS = (
    _form(
        r"(?:(?:[Ff]rom now on|[Gg]oing forward|[Ff]rom here on(?: out)?|[Ff]rom this point on(?:wards?)?),?"
        r"|[Ii]n (?:the )?future,) "
        rf"(?!(?:I|we|I'm|I'll|we'll|my|our|he|she|they|it)\b)(?!.*, I(?:'ll| will)\b)"
        rf"{_REST}{_ENDING}",
        *(INSTRUCTION, "always"),
    ),
    _form(
        r"(?:[Pp]lease )?(?P<value>(?:[Aa]lways|[Nn]ever|[Dd]on't ever"
        rf"|[Dd]o not ever) {_ORDER}\b .{{4,280}}?){_ENDING}",
        INSTRUCTION,
        "always",
    ),
    _form(
        r"(?P<value>[Ww]hen(?:ever)? (?:I (?:ask|mention|say|write|send|share)|you (?!(?:have|are|get|can|feel|were"
        r"|need)\b)[a-z]+) [^,]{3,90}, "
        rf"(?:please )?(?:always |never |don't |do not )?{_ORDER}\b .{{4,200}}?){_ENDING}",
        *(INSTRUCTION, "always"),
    ),
    _form(
        rf"(?:[Pp]lease )?(?P<value>(?:{_ORDER}|don't|do not)\b .{{4,200}}?),? (?:from now on|going forward"
        rf"|from here on out|every time){_ENDING}",
        *(INSTRUCTION, "always"),
    ),
)
_CONSENT = (
    _form(
        rf"(?:[Pp]lease )?(?P<value>(?:[Dd]on't|[Dd]o not|[Nn]ever) {_ORDER}\b .{{4,120}}? without (?:asking|telling"
        r"|checking"
        rf"|confirming|my)\b.{{0,60}}?){_ENDING}",
        *(INSTRUCTION, "always"),
    ),
)
_NOTES = (
    _form(
        r"(?:(?:[Pp]lease|[Aa]lso|[Aa]lways|[Cc]an you|[Cc]ould you|I (?:want|need) you to),? (?:please )?)?"
        r"(?:[Rr]emember|[Kk]eep in mind|[Dd]on't forget|[Dd]o not forget|[Mm]ake a note|[Tt]ake note"
        r"|[Bb]ear in mind)(?: that|:) "
        rf"(?=(?:I|I'm|I've|I'll|my|we|we're|our|the|all|every|The|My|Our|We|[A-Z][a-z]+|\d+)\b){_REST}(?=[.!?]*\s*$)",
        *(NOTE, "note"),
    ),
    _form(
        r"(?:[Ff]or (?:your |the |future )?(?:future )?(?:reference|record|information)|FYI|[Ff]yi|[Nn]ote to self"
        r"|[Ff]or the record)[,:] "
        rf"(?=(?:I|my|we|our|I'm|I've|the|The|My|Our|We)\b){_REST}{_ENDING}",
        *(NOTE, "note"),
    ),
)
_NOUNS = r"(?:(?!(?:is|are|was|were|that|which|what|who|has|have)\b)[\w'-]+ )"
_OF_IT = r"(?: (?:for|of|in|with|at|on) (?:the |our |my )?[\w' -]{3,40}?)?"
_SUM = (
    r"(?P<value>[$\u20ac\u00a3]?\d+(?:[.,]\d+)*k?(?: ?(?:dollars|euros?|pounds|EUR|USD|GBP|bucks|francs)\b)?)(?![\w%])"
)
_BE = r"(?:is|was changed to|has changed to|changed to|was moved to)(?: (?:now|actually|currently))?"
_OF_THE = (
    _one(
        rf"(?:[Tt]he|[Oo]ur|[Mm]y) (?P<slot>{_NOUNS}{{0,3}}{_THING}{_OF_IT}) {_BE} "
        rf"(?:(?:set|listening|running) )?(?:(?:to|at|on|in|called|port) )*{_TOKEN}{_VALUE_END}",
        SETTING,
    ),
    _one(
        rf"(?:[Tt]he|[Oo]ur|[Mm]y) (?P<slot>{_NOUNS}{{1,4}}?)(?:now )?(?:listens|runs|lives"
        r"|is(?: (?:currently )?(?:listening|running|served|hosted|reachable))?) (?:now )?(?:on|at|under) "
        r"(?:the )?(?:address |url )?`?(?P<value>(?:port )?\d{4,5}|port \d{2,3}|host [\w.-]+|[\w.-]+:\d{2,5}"
        rf"|https?://[^\s,]+[\w/]|\d+\.\d+\.\d+\.\d+(?::\d+)?)`?{_VALUE_END}"
        r"(?! (?:o'clock|am|pm|%|percent|years|items|points))",
        SETTING,
    ),
    _one(
        rf"(?:[Tt]he|[Oo]ur|[Mm]y) (?P<slot>{_NOUNS}{{1,6}}?)(?:is|are|lives|live|sits|sit|is located|is stored"
        r"|are stored) "
        rf"(?:now )?(?:in|at|under) `?(?P<value>(?:~|\.{{0,2}})/[\w./~+-]*\w/?)`?{_VALUE_END}",
        SETTING,
    ),
    _one(
        rf"(?:[Tt]he|[Oo]ur|[Mm]y) (?P<slot>{_NOUNS}{{1,4}}?(?:on|in|at|of|under|for) {_NOUNS}{{1,4}}"
        rf"|{_NOUNS}{{1,4}}?)has the "
        rf"(?:address|number|port|IP|id|ID|code|serial number|version) {_TOKEN}{_VALUE_END}",
        SETTING,
    ),
    _one(
        rf"(?:[Tt]he|[Oo]ur|[Mm]y) (?P<slot>{_NOUNS}{{0,3}}(?:deadline|due date|release date|launch date"
        rf"|cut-?off){_OF_IT}) is "
        rf"(?:now |on |set for |set to )*(?P<value>{_WHEN})(?![\w/])",
        SETTING,
    ),
    _one(
        rf"(?:[Tt]he|[Oo]ur|[Mm]y) (?P<slot>{_NOUNS}{{1,4}}?)(?:was|is|has been|got) (?:now )?(?:moved|rescheduled"
        r"|postponed|pushed"
        rf"|brought forward) (?:back )?to (?P<value>{_WHEN}(?: at \d[\d:.]*(?: ?[ap]\.?m)?)?)(?![\w/])",
        SETTING,
    ),
    _one(
        rf"(?:[Tt]he|[Oo]ur) (?P<slot>{_NOUNS}?{_NUMBER}{_OF_IT}) is `?(?P<value>"
        rf"(?=[^\s,]*\d)[\w+][\w+/#.-]*\w)`?{_VALUE_END}",
        SETTING,
    ),
    _one(
        rf"(?:[Tt]he|[Oo]ur|[Mm]y) (?P<slot>{_NOUNS}{{0,2}}budget{_OF_IT}) is "
        rf"(?:around |about |set at |limited to |capped at |now |roughly )?{_SUM}",
        SETTING,
    ),
    _one(
        rf"(?:[Tt]he|[Oo]ur|[Mm]y) (?P<slot>{_NOUNS}{{1,3}}?)(?:is|are) (?:called"
        rf"|named) `?(?P<value>{_WORD}(?: {_WORD}){{0,3}})`?{_END}",
        SETTING,
    ),
)
_AS = (
    _form(
        rf"[Aa]s an? (?P<value>\d{{2}})[- ]year[- ]old(?: {_job('occupation')})?(?: (?:(?:living|based) )?(?:in"
        rf"|from) (?P<home>{_PLACE}))?(?=,? (?:I|I'm|my)\b)",
        *(IDENTITY, "age", None, True, True),
    ),
    _form(
        rf"As an? {_job('value')}(?: (?:(?:living|based) )?(?:in|from) (?P<home>{_PLACE}))?"  # no user story
        r"(?=, (?:I'm|I've|my|I (?!want|need|can|should|would|must|may|will|expect)\w+)\b)",
        *(IDENTITY, "occupation", None, True, True),
    ),
)
_CALL = (
    _one(
        rf"(?:[Pp]lease |[Yy]ou can |[Jj]ust )?[Cc]all me (?P<value>{_NAME})(?=[.!]|$|,| from| instead)",
        IDENTITY,
        "name",
    ),
)

_BY_HEAD: Mapping[str, Sequence[Form]] = {
    "my": (*_OF_MY, *_OF_THE),
    "i": (*_OF_I, *_USES, *_DECISIONS, *_NOTES),
    "we": (*_USES, *_DECISIONS, *_OF_I),
    "our": (*_OF_MY, *_OF_THE),
    "the": _OF_THE,
    "as": _AS,
    "call": _CALL,
    "just": _CALL,
    "you": _CALL,
    **dict.fromkeys(("let's", "lets", "let"), _LETS),
    "going": (*_ORDERS, *_LETS),
    "please": (*_CALL, *_ORDERS, *_CONSENT, *_NOTES),
    **dict.fromkeys(
        ("from", "always", "never", "don't", "do", "when", "whenever", "in", "keep", "make"),
        (*_ORDERS, *_CONSENT, *_NOTES),
    ),
    **dict.fromkeys(
        (
            "use",
            "write",
            "answer",
            "reply",
            "respond",
            "speak",
            "talk",
            "give",
            "put",
            "include",
            "add",
            "format",
            "stop",
        ),
        _ORDERS,
    ),
    **dict.fromkeys(("remember", "take", "bear", "can", "could", "for", "fyi", "note", "also"), _NOTES),
}
FORMS: Mapping[str, Sequence[Form]] = {
    **_BY_HEAD,
    **{f"{head}'{ending}": _BY_HEAD[head] for head in ("i", "we") for ending in ("m", "ve", "re", "ll")},
}
"""Forms by the lower-case word that they begin with."""
