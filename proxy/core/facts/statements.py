"""
Statements in users' own prose that carry a fact: what they say of themselves, decide, order or ask to be remembered.

A statement begins at its head ("I", "my", "we", "the", "always"), where a clause may begin. What stands in front of it
and behind it must not make it a question, a supposition, somebody else's words or a part of another clause.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from proxy.core.facts.sentences import Sentence, sentences
from proxy.domain import PROJECT_SUBJECT, USER_SUBJECT, FactCategory, FactProposal

CONFIDENCE = 0.95
MOST_VALUE_CHARS = 160  # a longer clause says more than one thing
LEAST_VALUE_CHARS = 2

IDENTITY, PREFERENCE, INSTRUCTION, DECISION, NOTE, SETTING = FactCategory


@dataclass(frozen=True, slots=True)
class Rule:
    """
    One form of statement. The group `value` is the fact's value.

    `slot` and `subject` are named by the groups of these names where they are empty.
    """

    pattern: re.Pattern[str]
    category: FactCategory
    subject: str
    slot: str
    is_single: bool


# A clause ends at a stop that is no part of a word, and where another clause begins.
_END = (
    r"(?=\s*(?:[.!?;:](?:[\s)\"'*]|$)|$|\)|\(| [-\u2013\u2014] "
    r"|,? (?:but|so|because|since|which|who|when|while|although|though|however|as (?:I|it|we|you|they)|if|unless|or)\b"
    r"|,? and (?:I|I'm|we|my|our|it|this|that|he|she|they|you|there|then|want|need|am|was|have|had|can|could|would"
    r"|will)\b"
    r"|, (?:I|I'm|we|my|please|it|that|this|they|he|she|you|maybe|also|then|can|could|do|does|did|is|are|what|how"
    r"|where)\b))"
)
_CLAUSE = rf"(?P<value>[^\n]{{2,160}}?){_END}"
_NAME = r"[A-Z][\w'-]+(?: (?:de |van |von |of |the )?[A-Z][\w'-]+){0,3}"
_PLACE = r"[A-Z][\w.'-]+(?:,? (?:de |del |of |the |la )?[A-Z][\w.'-]+){0,3}"
_THING = r"[A-Z0-9`][\w.@+/:-]*`?"
_AM = r"(?:I'm|I am)"
_PERSON = (
    r"(?:wife|husband|partner|spouse|girlfriend|boyfriend|fianc[\u00e9e]e?|mother|mom|mum|father|dad|sister|brother|son"
    r"|daughter|grandmother|grandma|grandfather|grandpa|aunt|uncle|cousin|nephew|niece|best friend|boss|manager"
    r"|roommate|flatmate|neighbou?r|dog|cat|puppy|kitten|horse|parrot|rabbit|hamster)"
)
_ORDER = (
    r"add|address|answer|apply|ask|avoid|call|check|cite|commit|create|delete|do|ensure|explain|follow|format|give"
    r"|include|keep|make|mention|name|prefer|provide|push|put|read|refer|reply|respond|return|run|say|send|show|sort"
    r"|speak|start|state|suggest|tell|test|translate|treat|use|validate|verify|warn|wrap|write"
)


def _rule(
    pattern: str, category: FactCategory, slot: str = "", is_single: bool = False, subject: str = USER_SUBJECT
) -> Rule:
    is_own = category in (IDENTITY, PREFERENCE)
    return Rule(re.compile(pattern), category, subject if is_own else PROJECT_SUBJECT, slot, is_single)


_OF_MY = (
    _rule(rf"[Mm]y (?:full )?name(?: is|'s) (?P<value>{_NAME}){_END}", IDENTITY, "name", True),
    _rule(
        rf"[Mm]y (?P<subject>{_PERSON})(?:'s name is| is called| is named|, named) (?P<value>{_NAME}){_END}",
        *(IDENTITY, "name", False, ""),
    ),
    _rule(rf"[Mm]y (?P<slot>favou?rite(?: [\w-]+){{1,3}}?) (?:is|are) {_CLAUSE}", PREFERENCE, "", True),
)
_OF_I = (
    _rule(rf"(?:{_AM} (?:based|living)|I live) in (?P<value>{_PLACE}){_END}", IDENTITY, "home", True),
    _rule(rf"I work (?:at|for) (?P<value>{_NAME}){_END}", IDENTITY, "employer", True),
    _rule(rf"{_AM} allergic to {_CLAUSE}", PREFERENCE, "allergic to"),
    _rule(rf"I (?:decided|agreed) (?P<value>(?:to|on|against|that) .{{4,160}}?){_END}", DECISION, "decided"),
)
_OF_WE = (
    _rule(
        rf"[Ww]e(?:'ve| have)? (?:finally |just )?(?:decided|agreed) "
        rf"(?P<value>(?:to|on|against|that) .{{4,160}}?){_END}",
        *(DECISION, "decided"),
    ),
)
_ORDERS = (
    _rule(r"(?:[Ff]rom now on|[Gg]oing forward),? (?P<value>.{8,200}?)(?=[.!]|$)", INSTRUCTION, "always"),
    _rule(
        rf"(?:[Pp]lease )?(?P<value>(?:[Aa]lways|[Nn]ever) (?:{_ORDER}) .{{4,200}}?)(?=[.!]|$)", INSTRUCTION, "always"
    ),
    _rule(r"(?:[Pp]lease )?[Rr]emember(?: that|:) (?P<value>.{8,200}?)(?=[.!]|$)", NOTE, "note"),
)
_OF_THE = (
    _rule(
        rf"(?:[Tt]he |[Oo]ur )(?P<slot>(?:[\w-]+ ){{0,2}}(?:port|host|database|branch|version|region))"
        rf" is (?P<value>{_THING})(?=[\s.,;]|$)",
        *(SETTING, "", True),
    ),
)
_RULES: Mapping[str, Sequence[Rule]] = {
    "my": _OF_MY,
    "i": _OF_I,
    "i'm": _OF_I,
    "we": _OF_WE,
    "we've": _OF_WE,
    "the": _OF_THE,
    "our": _OF_THE,
    **dict.fromkeys(("from", "going", "always", "never", "please", "remember"), _ORDERS),
}
_HEAD = re.compile(rf"(?<![\w'-])(?:{'|'.join(_RULES)})(?![\w'-])", re.IGNORECASE)
_MAY_LEAD = re.compile(
    r"(?:[,;:\u2014\u2013-]|\b(?:and|but|so|because|since|as|now|way|remember that|that's|well|ok|yes))\s*$",
    re.IGNORECASE,
)
_UNSURE = re.compile(
    r"\b(?:if|suppose|supposing|imagine|pretend|assume|assuming|unless|whether|wish|would|could|might|may|maybe|perhaps"
    r"|probably|thinking|considering|wondering|wonder|said|says|told|asked|example|e\.g|let's say|hypothetically"
    r"|used to|in case)\b",
    re.IGNORECASE,
)
_ASKING = re.compile(
    r"\s*(?:do|does|did|is|are|am|was|were|can|could|will|would|should|what|which|who|how|why|when|where)"
    r"\b",
    re.IGNORECASE,
)
_DEICTIC = re.compile(r"\b(?:this|those|these|them|it|you|your|above|below|latter|former|same)\b", re.IGNORECASE)
_NO_VALUE = re.compile(
    r"(?:not|no|a|an|the|one|ones|so|something|anything|nothing|everything|what|whatever|here|there|as|on|to|very|too"
    r"|\[redacted.*|\[withheld.*)$|(?:not|never|what|so|too|very|going|getting|being) ",
    re.IGNORECASE,
)


def stated(text: str) -> Iterator[FactProposal]:
    """The facts that a user's text states."""
    for sentence in sentences(text):
        stop = 0
        for head in _HEAD.finditer(sentence.text):
            if head.start() < stop or not _may_begin(sentence, head.start()):
                continue
            for rule in _RULES[head[0].lower()]:
                match = rule.pattern.match(sentence.text, head.start())
                if match is not None and _holds(sentence, match, rule):
                    stop = match.end()
                    yield _proposal(text, sentence, match, rule)
                    break


def _may_begin(sentence: Sentence, at: int) -> bool:
    """Whether a statement may begin there."""
    leading = sentence.text[:at]
    if sentence.is_quoted(at) or _UNSURE.search(leading) or _ASKING.match(leading):
        return False
    return not leading.strip(" -*\u2022\"'(") or _MAY_LEAD.search(leading) is not None


def _holds(sentence: Sentence, match: re.Match[str], rule: Rule) -> bool:
    value, trailing = match["value"].strip(" ,.;:'\"*_`"), sentence.text[match.end() :]
    if not len(value) >= LEAST_VALUE_CHARS:
        return False
    if sentence.is_question and not trailing.strip(" ?"):
        return False
    if re.match(r",? (?:if|unless|or|when)\b", trailing):
        return False
    is_free = rule.category in (INSTRUCTION, NOTE)  # a sentence of its own, in whatever words
    return is_free or (len(value) <= MOST_VALUE_CHARS and not _NO_VALUE.match(value) and not _DEICTIC.search(value))


def _proposal(text: str, sentence: Sentence, match: re.Match[str], rule: Rule) -> FactProposal:
    first, last = match.span("value")
    value = text[sentence.start + first : sentence.start + last].strip(" ,.;:'\"*_`")
    return FactProposal(
        subject=rule.subject or match["subject"].lower(),
        slot=rule.slot or " ".join(match["slot"].lower().split()),
        value=value,
        category=rule.category,
        start=sentence.start + match.start(),
        stop=sentence.start + match.end(),
        is_single=rule.is_single,
        confidence=CONFIDENCE,
    )
