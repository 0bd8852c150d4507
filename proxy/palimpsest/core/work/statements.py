"""
Statements in lost messages that work goes on from: decisions, and values under a name, each as it was said.

They are told by their form alone: "Decision: ...", "we settled on ...", "port 7431", "a backoff of 2 and 8 seconds".
"""

from __future__ import annotations

import re
from itertools import pairwise, takewhile

from palimpsest.core.archive.chunking import query_terms
from palimpsest.core.recall.utterance import says_nothing
from palimpsest.core.work.names import names
from palimpsest.core.work.need import SPEAKERS, LostText
from palimpsest.core.work.standing import stands

SENTENCE = re.compile(  # no dot of a name or of `a command . with one` ends it
    r"(?:`[^`\n]*`|[^.!?\n])+(?:[.!?](?!\s|$)(?:`[^`\n]*`|[^.!?\n])*)*[.!?]*"
)
_DECIDES = re.compile(  # of an assistant, which says what it will do next in nearly every other form
    r"(?i)^\W*decisions?:|\b(?:decided|settled) (?:on|to|that|for|against)\b|\bagreed (?:on|to|that)\b"
    r"|(?<!if )(?<!whether )(?<!unless )(?<!should )(?<!could )"
    r"\bwe(?:['\u2019]ll| will| should)? (?:keep|stay with|stick (?:to|with)|go with|chose|went with)\b"
)
_CHOOSES = re.compile(  # of a user, who has the say
    r"(?i)\b(?:let['\u2019]?s (?:use|take|keep|drop|go with|sta(?:y|rt) with|stick (?:to|with)|switch to)"
    r"|we(?:['\u2019]ll| will) (?:use|take|drop|switch to|do without))\b"
    r"(?! (?:going|it|that|this|an? (?:\w+ )?(?:look|break|step|moment|minute))\b|[^,;]{0,80} in mind\b)"
    r"|\bI(?:['\u2019]d)? prefer\b(?! (?:not to|that)\b)|\binstead of [^,;]{1,80}?,? (?:we|use|take)\b"
    r"|^\W*no [^\W\d][^,;]*[,;] (?:use|take|we)\b"
    r"|^\W*(?:ok(?:ay)?,? )?(?:(?:take|go with) (?:option|variant|version|number)|go with the)\b"
)
_CHOOSES_NAMED = re.compile(  # ... where a name follows: "OK, do it then." and "Change of plans." tell nothing
    r"(?i)^\W*ok(?:ay)?,(?= \S+(?: \S+)? then\W*$)|\bchange of plans?\b"
)
_NAMED = re.compile(r"(?<=\S )\W{0,4}(?!I\b)[A-Z]|\d|`|\w[_/@.]\w")  # a capital letter, but for that of a sentence
_UNIT = r" ?(?:%|percent\b|(?:[mµn]?s|sec(?:ond)?s?|min(?:ute)?s?|h(?:ours?)?|days?|weeks?|[kKMGT]i?B|tokens)\b)"
_VALUE = re.compile(  # a word, a number or several, and a unit
    r"(?<![\w./:-])([A-Za-z][\w-]{2,30})((?: (?:of|is|at|to|by|until|every)| ?=|:)? )"
    rf"(\d(?:[\d.,]*\d)?(?:(?:, | and | or | to )\d(?:[\d.,]*\d)?)*)({_UNIT})?(?![\w/:-])"
)
_SET = re.compile(  # what has a value that is chosen, and no unit
    r"(?i)(?:port|version|limit|timeout|max\w*|min(?!us|imal|ute)\w*|threshold|budget|day|retr(?:y|ies)|attempts|workers|batch"
    r"|issue|ticket|release|build|python|node|year|room|page|status)$"
)
PLACES = frozenset({"first", "last", "next", "top"})  # what a number of lines or bytes is counted from
_MEASURED = re.compile(r"\d\.\d+ ?(?:[mµn]?s|sec(?:ond)?s?)$")  # how long something took
_NEGATES = re.compile(
    r"\b(?:not|never|no|nor|without|cannot|instead of|against|(?:do|does|is|ca|wo)nt)\b|n['\u2019]t\b", re.IGNORECASE
)
_ELSEWHERE = re.compile(  # another machine
    r"(?i)\b(?:host|remote|prod(?:uction)?)\b|\w\.(?:com|dev|int|internal|io|lan|net|org)\b|(?<!127)(?:\.\d+){3}"
)
_CLAUSE_END = re.compile(r"[,;](?! ?\d)")
_REJECTS = re.compile(  # the word behind a negation, or behind its verb: "not 262144", "do not touch src/legacy.py"
    r"(?:\b(?:not|never|(?<!there is )(?<!there are )(?<!there's )no|nor|without|cannot|instead of)\b|n['\u2019]t\b)\W+"
    r"(?:(?:use|touch|edit|change|run|restart|delete|the|to|on|in|with|at)\W+){0,3}(\S+)(?!\S)(?![^,;]{0,60}\byet\b)",
    re.IGNORECASE,
)
_REPLACES = re.compile(r"(?i)\bnot (?:the )?(\S+?)[,;] *(?!not\b)\w")  # "NOT safe_cast, string": another in its place
_BINDS = re.compile(  # words of what is to hold, more than of what is to be done next
    r"(?i)\b(?:always|never|nobody|must|only|do not|don['\u2019]?t (?!see|know|think|get|have)|avoid|without|forbidden"
    r"|keep|stick to|rather than|prefers?|leave|hands off|wants? (?!to)|ask (?:me|us)|tell me before|ignore|until"
    r"|from now on|whenever|by default|as a rule|make sure|we use|go(?:es)? through"
    r"|(?:is|are|be) (?:run|done|made|kept|called) (?:by|with|in|from))\b|(?:^|[,;:])\W{0,4}(?:no|not|use)\b"
    r"|\bunder no\b|\bnext time,? (?!i\b|we\b|you\b|in\b|at\b)\w"
)
BRIEF_WORDS = 10
_ORDER = re.compile(
    r"(?i)(?:(?:ok(?:ay)?|yes|good|great|thanks|now|and|then|please|next)\b[ ,.:;!]*)*(?:run|rerun|test|build|commit"
    r"|push|merge|rebase|deploy|release|ship|fix|format|lint|try|continue|proceed|go on|start|restart|undo|revert"
    r"|publish|(?:open|create|make) (?:a|the) (?:pr|pull request|mr|release))\b"
    r"(?!.*\b(?:which|what|when|where|who|whether|if|how)\b)"
)
_LASTS = re.compile(r"(?i)\b(?:is|are|has|have|uses?|lives?|needs?|must)\b|[=:]|n['\u2019]t\b")
_ORDERS_THIS = re.compile(  # for once, where it stands alone: "Write it.", "ok, do that now."
    r"(?i)(?:(?:ok(?:ay)?|yes|please|then|now)\b,? ?)*(?:write|do|fix|send|try|draft|make|change|add|update|finish"
    r"|print|reply to|answer|post) (?:it|this|that|them)(?: (?:now|please|then|again))?[.!]+$"
)
_OF_LAST = re.compile(r"(?i)\s*(?:always|never|every time|each time)\W*(?:,|$)")  # "Always, before you commit."
_HASH = re.compile(r"\b[0-9a-f]{7,40}\b")
_PRINTED = re.compile(  # code, tables, quotations, and what stands in columns
    r"```.*?(?:```|\Z)|^(?:[ \t]*[|+>]|[ \t]{2,})[^\n]*$|^[^\n]*\S {3,}\S[^\n]*$", re.MULTILINE | re.DOTALL
)


def decisions(text: LostText) -> list[str]:
    """The sentences of a person or a model that state a decision."""
    said = SENTENCE.findall(without_printed(text))
    return [
        one
        for one in said
        if not one.endswith("?") and (_DECIDES.search(one) or (text.role == "user" and _is_chosen(one)))
    ]


def _is_chosen(sentence: str) -> bool:
    named = _CHOOSES_NAMED.search(sentence)
    return _CHOOSES.search(sentence) is not None or (named is not None and names_something(sentence, named.end()))


def names_something(sentence: str, start: int = 0) -> bool:
    """Whether a sentence holds a name or a number from a place on."""
    return _NAMED.search(sentence, start) is not None


def values(text: LostText) -> list[str]:
    """The values, and ports `of_here`, that a person or a model names with what they are of; none that is negated."""
    found = []
    said = without_printed(text)
    here = of_here(said)
    clauses = (part for one in SENTENCE.findall(said) for part in _CLAUSE_END.split(one) if not _NEGATES.search(part))
    for value in (value for clause in clauses for value in _VALUE.finditer(clause)):
        if value[1].lower() == "port" and value[0] not in here:
            continue
        is_amount = value[4] and value[2] != " " and not _MEASURED.search(value[0])  # "the past 7 days" has no name
        is_set = is_amount or _SET.match(value[1]) or "=" in value[2]
        if is_set and query_terms(value[1]) and value[1].lower() not in PLACES:
            found.append(value[0])
    return found


def binds(text: LostText) -> bool:
    """Whether a user's message holds a decision, an order that forbids something, or a value."""
    said = (one for one in SENTENCE.findall(without_printed(text)) if not one.rstrip().endswith("?"))
    return any(_BINDS.search(one) or stands(one.strip()) for one in said) or bool(decisions(text) or values(text))


def told_from(text: str) -> int:
    """Where a message begins to tell something, behind thanks and orders for once: 10 in "Write it. Sign as Deb."."""
    sentences = [*SENTENCE.finditer(text)]
    for sentence, after in pairwise(sentences):
        said = sentence[0].strip()
        is_order_for_once = _ORDERS_THIS.match(said) and not _OF_LAST.match(after[0])
        if negates(said) or not (says_nothing(said) or is_order_for_once):
            return sentence.end() - len(sentence[0].lstrip())
    return sentences[-1].end() - len(sentences[-1][0].lstrip()) if len(sentences) > 1 else 0


def is_order(text: str) -> bool:
    """Whether a text only orders the next step of a work: "ok. run the tests", "commit this"."""
    return _ORDER.match(text) is not None and tells_nothing(text)


def tells_nothing(text: str) -> bool:
    """Whether a brief text holds no name, value or state that lasts: "Seven pass.", "Committed as c77e910."."""
    plain = _HASH.sub("", text)
    return len(plain.split()) <= BRIEF_WORDS and not (
        _LASTS.search(plain) or names(plain) or values(LostText(0, "user", plain))
    )


def of_here(said: str) -> str:
    """The sentences of a text that name no other machine, a line each, up to the clause that negates something."""
    parts = (_CLAUSE_END.split(one) for one in SENTENCE.findall(said) if not _ELSEWHERE.search(one))
    return "\n".join(filter(None, (",".join(takewhile(lambda part: not _NEGATES.search(part), one)) for one in parts)))


def negates(said: str) -> bool:
    """Whether a text says of something that it is not so, or not to be done."""
    return _NEGATES.search(said) is not None


def rejected(said: str) -> list[str]:
    """The words that a text says are not to be used, without questions and things that do not exist yet."""
    sentences = (one for one in SENTENCE.findall(said) if not one.rstrip().endswith("?"))
    return [word for one in sentences for word in _REJECTS.findall(one)]


def replaced(said: str) -> list[str]:
    """The words in whose place a text puts others: "not safe_cast, string"."""
    return _REPLACES.findall(said)


def without_printed(text: LostText) -> str:
    """What a person or a model said, without code, tables and quotations; "" of a tool, and where a client wrote it."""
    is_said = text.role in SPEAKERS and not text.prose.startswith(("<", "["))
    return _PRINTED.sub("", text.prose) if is_said else ""
