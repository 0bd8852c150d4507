"""The words of the forms of statements, as parts of patterns: names, dates, people, professions, orders."""

from __future__ import annotations


def any_of(phrases: str) -> str:
    """A pattern of any of these phrases, parted by commas; each may itself be a pattern."""
    return f"(?:{'|'.join(' '.join(phrase.split()) for phrase in phrases.split(','))})"


def group(name: str, pattern: str) -> str:
    """A pattern whose text has a name."""
    return f"(?P<{name}>{pattern})"


# --- ends ----------------------------------------------------------------------------------------

# What begins another clause behind a comma.
_NEXT = any_of(
    """I, I'm, I've, I'd, I'll, we, my, our, please, kindly, it, it's, that, that's, this, they, he, she, you, maybe,
    also, then, can, could, would, will, should, do, does, did, is, are, was, were, what, what's, how, where, when,
    why, any, so, but, because, since, which, who, whose, while, although, though, however, given, considering,
    especially, right, even, if, unless, like, you know, kinda, sorta, not, now, by far"""
)
# And behind "and".
_ADDED = any_of(
    """I, I'm, I've, I'd, I'll, we, my, our, it, it's, this, that, he, she, they, you, there, then, now, want, need, am,
    was, have, had, can, could, would, will, wondering, how, what, do, does, is, are, not"""
)
_STOPS = (  # a stop that is no part of a word, or another clause
    r"(?<!\bSt)(?<!\b[DMSJ]r)(?<!\bMs)(?<!\bMrs)(?<!\bvs)[.!?;:]+(?:[\s)\"'*]|$)"
    r"|$|\)|(?<=\s)\(| [-\u2013\u2014]+ "
    r"|,? (?:but|so|because|since|which|although|though|however|whereas)\b"
    rf"|, {_NEXT}\b|,? (?:and|plus) (?:{_ADDED}|the (?:\w+ ){{1,2}}(?:is|are|was|were))\b|,? '?cause\b"
    r"|, the (?:\w+ ){1,4}(?:is|are|was|sounds|seems|looks|has)\b"
)
NEXT_CLAUSE = rf", {_NEXT}\b"
_LATELY = (
    r"(?: (?:now|these days|nowadays|instead|btw|by the way|since \w+(?: \d{4})?"
    r"|(?:last|this) (?:week|weekend|month|summer|year)))"
)
END = rf"(?={_LATELY}?\s*(?:{_STOPS}|,? (?:and|who|when|while|as|if|unless|or|for|with|at|where|in|on)\b|,))"
"""Behind a name or a number."""
CLAUSE_END = rf"(?=\s*(?:{_STOPS}))"
CLAUSE = rf"(?P<value>\S.{{1,170}}?){CLAUSE_END}"
SENTENCE_END = r"(?=[.!]*\s*$)"
TOKEN_END = r"(?=[\s,;)!?]|\.(?:\s|$)|$)"

# --- names, dates, numbers -----------------------------------------------------------------------

_NO_NAME = any_of(  # though they have a capital
    """I, Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday, January, February, March, April, May, June,
    July, August, September, October, November, December, Mr, Mrs, Christmas, Easter, God, OK, Ok, No, Yes, So, And,
    But, The, My, We, In, On, At, If, Is, American, British, Canadian, Indian, German, French, Chinese, European,
    African, Asian, English, Google, AI, IT, HR, PT, TV, PR"""
)
CAPITALISED = rf"(?!{_NO_NAME}\b)[A-Z\u00c0-\u00de](?:[\w'-]*\w|&[A-Z]\b)"
NAME = rf"{CAPITALISED}(?: (?:de |van |von |der |of |& )?{CAPITALISED}){{0,3}}"
PERSON_NAME = rf"(?:(?:Dr|Prof)\.? )?{CAPITALISED}(?<!'s)(?: {CAPITALISED}(?<!'s))?"
PLACE = rf"{CAPITALISED}(?:,? (?:de |del |of |the |la |and )?{CAPITALISED}){{0,4}}"
NO_PERSON = any_of(
    "South, North, East, West, New, Native, Latin, Puerto, Costa, Saudi, Sri, Roman, Type, Team, Gen, Level"
)
_NO_PLACE = any_of(  # what else people move to
    """Linux, Ubuntu, Debian, Windows, Mac, MacOS, Android, Apple, Google, Microsoft, Amazon, Firefox, Chrome, Safari,
    Python, Rust, Go, Java, Kotlin, Swift, Ruby, Kubernetes, Docker, Podman, Terraform, Postgres, Redis, Mongo, Kafka,
    Jenkins, Outlook, Gmail, Slack, Teams, Zoom, Discord, Notion, Obsidian, Vim, Neovim, Helix, Emacs, Azure, Heroku,
    Netlify, React, Vue, Svelte, Angular, Django, Flask, Excel, Figma, GitHub, GitLab, Gitea, Claude, ChatGPT, Senior,
    Junior, Management, Marketing, Sales, Support, Design, Product, Engineering, Plan, Step, Section, Chapter,
    Version, Phase"""
)
TOWN = rf"(?!{_NO_PLACE}\b){PLACE}"
_MONTH = any_of(
    """Jan(?:uary)?, Feb(?:ruary)?, Mar(?:ch)?, Apr(?:il)?, May, June?, July?, Aug(?:ust)?, Sep(?:t(?:ember)?)?,
    Oct(?:ober)?, Nov(?:ember)?, Dec(?:ember)?"""
)
_DAY = r"\d{1,2}(?:st|nd|rd|th)?"
DATE = (
    rf"(?:(?:the )?{_DAY} (?:of )?{_MONTH}|{_MONTH} (?:the )?{_DAY}|\d{{4}}-\d\d-\d\d"
    r"|\d{1,2}[/.]\d{1,2}[/.]\d{2,4})"
)
CLOCK = r"\d[\d:.]*\d(?: ?[ap]\.?m)?"
_WEEKDAY = r"(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day"
DAY_OR_MONTH = rf"(?:{_WEEKDAY}|{_MONTH})"
WHEN = (
    rf"(?:{DATE}(?:,? \d{{4}})?|(?:next |this |on )?{_WEEKDAY})"
    rf"(?:,? at (?:{CLOCK}|\d{{1,2}} ?[ap]\.?m|noon|midnight))?"
)
SUM = r"[$\u20ac\u00a3]?\d+(?:[.,]\d+)*k?(?: ?(?:dollars|euros?|pounds|EUR|USD|GBP|bucks|francs)\b)?"
TOKEN = r"(?=[^\s]*[\d/.:_@])[\w.@+/:~#%\u20ac$-]*[\w/]"  # of a machine: a number, path, host or address
ADDRESS = (  # under which a program is reached
    r"(?:(?:port )?\d{4,5}|port \d{2,3}|host [\w.-]+|[\w.-]+:\d{2,5}|https?://[^\s,]+[\w/]"
    r"|\d+\.\d+\.\d+\.\d+(?::\d+)?)"
)
PATH = r"(?:~|\.{0,2})/[\w./~+-]*\w/?"
VERSIONED = r"[A-Z][\w.+#-]*(?: [A-Z][\w.+#-]*){0,2} v?\d+(?:\.\d+)+\w*"
PRONOUNS = r"\w+/\w+(?:/\w+)?"
MAIL = r"[\w.+-]{1,64}@[\w-]{1,60}(?:\.[\w-]{1,60}){1,4}"

# --- changes -----------------------------------------------------------------------------------

JUST = any_of("just, recently, finally, now, actually, also, already, since, officially, both, all")
WE = rf"(?:I|[Ww]e)(?:'ve| have)?(?: {JUST}){{0,2}}"
ANY_MORE = r" (?:any ?more|any longer|after all)"
ENDS = rf"(?={ANY_MORE}\b|,| these days| now\b|\s*[.!;]|\s*$)"  # of what is denied
NOT_NOW = rf"(?:no longer|(?:do not|don't)(?= [^.!?]*{ANY_MORE}))"
NOW = r"(?: (?:now|again|these days|nowadays|from now on|going forward|instead))"

# --- people --------------------------------------------------------------------------------------

DEAR = any_of("close, best, good, dear, new, old, late, great, former, beloved, long-?time, childhood, little, rescue")
KIN = r"(?:(?:older|younger|big|elder|eldest|oldest|youngest|twin|step|half|thesis)[- ]?)?" + any_of(
    """wife, husband, partner, spouse, girlfriend, boyfriend, fianc[\u00e9e]e?, mother, mom, mum, father, dad, sister,
    brother, son, daughter, grandmother, grandma, grandfather, grandpa, aunt, uncle, cousin, nephew, niece,
    (?:mother|father|sister|brother|son|daughter)-in-law, friend, boss, manager, colleague, co-?worker, roommate,
    flatmate, neighbou?r, mentor, therapist, dentist, supervisor, advisor, coach, tutor, attorney, lawyer, accountant,
    landlord, landlady"""
)
PARTNER = "partner"
PET = any_of("dog, cat, puppy, kitten, horse, pony, parrot, rabbit, hamster, turtle, guinea pig")
ANYBODY = f"(?:{KIN}|{PET})"
_PROFESSION = r"(?:(?!(?:and|or|an?|the|of|who|with|at|for|in|to|as)\b)[a-z][\w/-]* ){0,3}" + any_of(
    """accountant, actor, actress, administrator, analyst, architect, artist, author, baker, barista, biologist,
    carpenter, chef, chemist, clerk, colou?r technologist, consultant, cook, counsell?or, dancer, dentist, designer,
    developer, doctor, driver, economist, editor, electrician, engineer, farmer, film-?maker, firefighter, freelancer,
    intern, journalist, judge, lawyer, lecturer, librarian, manager, mechanic, musician, nurse, paralegal, paramedic,
    pastor, personal assistant, pharmacist, photographer, physicist, pilot, plumber, postdoc, producer, professor,
    programmer, psychologist, receptionist, recruiter, researcher, scientist, secretary, singer, student, surgeon,
    teacher, technician, technologist, therapist, translator, tutor, undergraduate, veterinarian, vet, waiter,
    waitress, welder, writer"""
)
_NO_PROFESSION = any_of(  # "a slow writer", "an aspiring actor"
    """good, bad, better, great, terrible, decent, slow, fast, big, huge, natural, born, night, aspiring, former, ex,
    future, would-be, wannabe, potential, new, lousy, poor, real, budding, visual, quick, beginner, hobby, amateur,
    home, few, fellow, little, bit, lot, non, careful"""
)


def job(name: str) -> str:
    """A profession, as the group of this name."""
    return (
        rf"(?!(?:[\w-]+ )*{_NO_PROFESSION}\b)(?P<{name}>{_PROFESSION})(?![\w-])"
        r"(?! (?:of|or|and (?!I\b)|friend|account|role|position)\b)"
    )


# --- verbs and things ----------------------------------------------------------------------------

ORDER = any_of(
    """add, address, answer, apply, ask, assume, avoid, back, begin, break, bring, build, call, change, check, choose,
    cite, clarify, close, combine, commit, compare, confirm, consider, convert, create, define, delete, deploy,
    describe, detail, display, do, double-check, draw, edit, emphasi[sz]e, end, ensure, explain, favou?r, flag, focus,
    follow, format, generate, give, go, greet, guide, handle, help, highlight, identify, ignore, illustrate, include,
    indicate, install, keep, label, let, link, list, log, look, make, mention, merge, modify, name, note, offer, open,
    outline, output, point, prefer, present, print, prioriti[sz]e, propose, prove, provide, push, put, quote, read,
    recommend, refer, reference, relate, remind, remove, reply, report, respond, return, round, run, say, send, set,
    share, show, sign, simplify, skip, sort, speak, specify, start, state, stick, stop, store, suggest, summari[sz]e,
    take, talk, tell, test, track, translate, treat, try, update, use, validate, verify, warn, wrap, write"""
)
LANGUAGE = r"(?:British |American |plain |simple )?" + any_of(
    """Arabic, Bengali, Bulgarian, Catalan, Chinese, Croatian, Czech, Danish, Dutch, English, Estonian, Finnish, French,
    German, Greek, Hebrew, Hindi, Hungarian, Indonesian, Irish, Italian, Japanese, Korean, Latvian, Lithuanian, Malay,
    Mandarin, Norwegian, Persian, Polish, Portuguese, Romanian, Russian, Serbian, Slovak, Slovene, Spanish, Swahili,
    Swedish, Tagalog, Tamil, Thai, Turkish, Ukrainian, Urdu, Vietnamese, Welsh"""
)
DIET = (
    r"(?:(?:strict|lifelong) )?(?:vegetarian|vegan|pescatarian|(?:lactose|gluten)[- ]intolerant|coeliac|celiac"
    r"|diabetic|teetotal)"
)
_HOW_MUCH = any_of(
    "really, also, still, always, usually, generally, much, strongly, personally, typically, definitely, actually, just"
)
OFTEN = f"(?:{_HOW_MUCH} )?"
VERY = any_of("badly, severely, really, highly, deathly, very, quite, seriously, mildly, also, super")
NOT_LIKED = any_of(  # how a remark goes on, and no lasting taste
    """the, this, that, these, those, it, its, them, you, your, how, when, what, where, who, which, seeing, hearing,
    being, having, his, her, their, him, all, every, both, each, a, an, one, some, any, to see, to hear, getting to,
    to get, knowing, our, my, to be, to know, and, not, to ask,
    to say, to admit"""
)
_IDENTIFIER = r"(?:number|no\.?|id|ID|code|reference)"
NUMBER = (  # by which others know somebody for years
    r"(?:"
    + any_of(
        """customer, employee, membership, member, frequent flyer, loyalty, policy, account, phone, mobile, cell,
    telephone, office, room, registration, licen[cs]e plate, flat, apartment, locker, contract, student, passport,
    tax"""
    )
    + rf" {_IDENTIFIER}|(?:user ?|customer |student |employee )(?:id|ID|name)|username|zip code|postcode|postal code"
    r"|shoe size|blood type)"
)
NUMBER_OF_ONE = (  # of an order or a journey; there are many, so it says something only with what it is for
    any_of("reservation, booking, order, confirmation, tracking, invoice, case, ticket, reference, flight")
    + f" {_IDENTIFIER}"
)
THING = any_of(  # that a project sets
    """port, host, hostname, host name, server, database, db, branch, version, region, bucket, queue, topic, cluster,
    namespace, path, directory, folder, url, URL, endpoint, base url, base URL, IP, IP address, ip, ip address,
    timeout, rate limit, batch size, threshold, schema, project id, project ID, account id, account ID, repo,
    repository, domain, subnet, node, registry, environment, ticket, issue, build, release, tag, port number,
    extension, error code, room, gate, seat, flight number"""
)
NOUN = r"(?:(?!(?:is|are|was|were|that|which|what|who|has|have)\b)[\w'-]+ )"  # a word of what a thing is called
_OF = r" (?:for|of|in|with|at|on) "
OF_IT = rf"(?:{_OF}(?:the |our |my )?[\w' -]{{3,40}}?)?"
_OF_ONE = any_of(  # there are many of them, and only what it is for tells one from the others
    "ticket, issue, build, error code, room, gate, seat, deadline, due date, cut-?off, budget, order total"
)
_OF_THAT = rf"(?:{_OF}(?:my|our|this|that|the|these|those) (?:order|booking|reservation|flight|trip|account)s?)?"
NAMELESS = (
    r"(?! (?:(?:current|new|actual|old|final|correct|right|first|last|next|same|other|only"
    r"|flight|booking|trip) )?"
    rf"(?:{_OF_ONE}|{NUMBER_OF_ONE}|{NUMBER}){_OF_THAT} (?:is|was|has|changed|got)\b)"
)
