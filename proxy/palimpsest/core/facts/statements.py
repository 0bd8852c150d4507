"""
Statements in users' own prose that carry a fact: what they say of themselves, decide, order or ask to be remembered.

A statement begins at its head, where a clause may begin. What stands in front of it and behind it must not make it a
question, a supposition, somebody else's words or a part of another clause.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from palimpsest.core.facts.contexts import clause_start, is_presupposed, is_supposed, is_taken_back, opening
from palimpsest.core.facts.form import CONFIDENCE, Form
from palimpsest.core.facts.own_endings import OWN_ENDS_OF_I, OWN_ENDS_OF_MY, OWN_ENDS_OF_ORDERS, OWN_OPENERS
from palimpsest.core.facts.own_forms import OF_AS, OF_CALL, OF_I, OF_MY
from palimpsest.core.facts.project_endings import ENDS_OF_ORDERS, ENDS_OF_THE, ENDS_OF_WE
from palimpsest.core.facts.project_endings import OPENERS as PROJECT_OPENERS
from palimpsest.core.facts.project_forms import CONSENT, DECISIONS, LETS, NOTES, ORDERS, SETTINGS, USES
from palimpsest.core.facts.sentences import Sentence, sentences
from palimpsest.core.facts.vocabulary import DAY_OR_MONTH
from palimpsest.domain import NO_LONGER, NO_LONGER_ANY, USER_SUBJECT, FactCategory, FactProposal

ORDER_ENDS = (*OWN_ENDS_OF_ORDERS, *ENDS_OF_ORDERS)
OPENERS = (*OWN_OPENERS, *PROJECT_OPENERS)
"""Forms that begin a sentence, with whatever word."""


def _forms_by_head(heads: str, forms: Sequence[Form]) -> Mapping[str, Sequence[Form]]:
    return dict.fromkeys(heads.split(), forms)


_BY_HEAD: Mapping[str, Sequence[Form]] = {
    **_forms_by_head("my our", (*OWN_ENDS_OF_MY, *ENDS_OF_THE, *OF_MY, *SETTINGS)),
    "i": (*OWN_ENDS_OF_I, *ENDS_OF_WE, *OF_I, *USES, *DECISIONS, *NOTES),
    "we": (*OWN_ENDS_OF_I, *ENDS_OF_WE, *USES, *DECISIONS, *OF_I),
    "the": (*OWN_ENDS_OF_MY, *ENDS_OF_THE, *SETTINGS),
    **_forms_by_head("moved relocated they", (*OWN_ENDS_OF_I, *ENDS_OF_WE)),
    "as": OF_AS,
    "call": OF_CALL,
    "just": (*OF_CALL, *OWN_ENDS_OF_I, *ENDS_OF_WE),
    "you": (*OF_CALL, *ORDER_ENDS),
    **_forms_by_head("let's lets let", LETS),
    "going": (*ORDERS, *LETS),
    "please": (*OF_CALL, *ORDER_ENDS, *ORDERS, *CONSENT, *NOTES),
    **_forms_by_head("from always never when whenever in keep make", (*ORDERS, *CONSENT, *NOTES)),
    **_forms_by_head("don't do", (*ORDER_ENDS, *ORDERS, *CONSENT, *NOTES)),
    **_forms_by_head("use write answer reply respond speak stop", (*ORDER_ENDS, *ORDERS)),
    **_forms_by_head("talk give put include add format", ORDERS),
    **_forms_by_head("no forget scratch switch go feel quit email", ORDER_ENDS),
    **_forms_by_head("remember take bear can could for fyi note also", NOTES),
}
FORMS: Mapping[str, Sequence[Form]] = {
    **_BY_HEAD,
    **{f"{head}'{ending}": _BY_HEAD[head] for head in ("i", "we") for ending in ("m", "ve", "re", "ll")},
}
"""Forms by the lower-case word that they begin with, in the order in which they are tried."""


MOST_VALUE_CHARS = 170  # a longer clause says more than one thing
LEAST_VALUE_CHARS = 2

_GROUPS = frozenset({"subject", "slot", "value"})  # of a form; others are slots themselves
_MANY = frozenset({"allergic to"})  # slots among them that hold several values
_SENTENCES = frozenset({FactCategory.INSTRUCTION, FactCategory.NOTE})  # whole ones, in whatever words
_HEAD = re.compile(rf"(?<![\w'/.-])(?:{'|'.join(sorted(FORMS, key=len, reverse=True))})(?![\w'/])", re.IGNORECASE)
_ASKED_FOR = re.compile(r"(?:can|could) you\b", re.IGNORECASE)
_DEICTIC = re.compile(  # stands for what was said elsewhere
    r"\b(?:this|those|these|them|it|you|your|yours|above|below|the latter|the former|the same|here|there|that one|he"
    r"|she|him|her|his|each other|one of my|following|the two|the other|the others|that (?:they|it|you|he|she)"
    r"|(?:to|of|in|at|with|within|for|on|from) that)\b|\bthat$|^(?:that|which|what|how|why)\b",
    re.IGNORECASE,
)
_POINTING = re.compile(
    r"(?:this|that|it|these|those|they|he|she|there)\b|.*\b(?:above|below|following|the chat)\b"
    r"|.*\b(?:it|them|this|that|these|those)$",
    re.IGNORECASE,
)
_CUT = re.compile(r"\\|\.\.\.?$|\u2026$")  # formulas have stops of their own
_NO_TASTE = re.compile(  # an order at the counter ("I like a latte please"), a place, or what runs on into a new clause
    r".*\b(?:please|if possible)\b|.* more$|(?:on|in|at|by|from|with) "
    r"|.* I (?:also|think|like|love|was|am|guess|would|really)\b"
)
_NEEDED = re.compile(r"I (?:only |just )?(?:need|want)\b")  # for what is done at the moment
_REMOVED = re.compile(r"\[(?:redacted|withheld)\b")  # what stood there was a credential
_CREDENTIAL = re.compile(
    r"\b(?:password|passwd|passcode|passphrase|pin|secret|api[ -]?key|access key|private key|token|credentials?)\b"
    r"(?: \w+){0,4} (?:is|are|to|=|:)",
    re.IGNORECASE,
)
_NO_VALUE = re.compile(
    r"(?:not|no|a|an|the|one|ones|so|something|anything|nothing|everything|what|whatever|as|on|to|very|too|also|both"
    r"|option \w+|to do so|him|her|us|me|dr|prof|.* instead"
    r"|an? [\w-]+ (?:approach|way|method)|(?:early |late )?(?:morning|evening|night|weekend)s?(?: sessions?\b.*)?)$"
    r"|(?:tip|option|number|point|version|idea|question|step|design|answer)s? (?:number )?#?\d|(?:not sure|never|so"
    r"|too|very|going|getting|being) ",
    re.IGNORECASE,
)  # "the market instead": instead of what was said before
_ELLIPTICAL = re.compile(  # of what, was said before
    r"(?:decided|agreed) (?:on|to) (?:a |an )?(?:[$\u20ac\u00a3`]|\d)"
    r"|(?:decided|agreed|chose|chosen|picked)(?: to| on)?(?: \w+)? the \w+$"
    r"|(?:chose|chosen|picked|dropped) \S+$|(?:decided|agreed) to (?:wait|try|do|go|continue|proceed|start|stop|stay"
    r"|help|reassess|revisit|meet|talk|discuss)"
    r"(?: (?:for an? \w+|(?:in|on|at) .*))?$"
    r"|(?:decided|agreed) to (?:\w+,|(?:take|spend) (?:some |more |the )?(?:time|day|break)\b)"
    r"|(?:decided|agreed|chose|chosen|opted) to \w+ the (?:[a-z-]+ ){1,2}(?:in|to|on|first)\b"
    r"(?!.* (?:over|rather than|instead of) )"
    r"|(?:decided|agreed) that I (?:want|need)\b"
    r"|(?:go|going) with (?!.* (?:for|as|instead of|over|rather than)\b)"  # what was offered, or a companion
    r"|(?:decided|agreed) (?:on|upon) (?:version|option|number|step) |.* (?:option|one)$"
    r"|(?:use|go with|stick (?:with|to)|switch to|settle on|stay (?:with|on)|keep using)"
    r" (?:the [a-z]|(?:an? )?\d|.* first$)"
)
_NAMING = re.compile(  # a decision says of what it is: by a name, a version, what is left for it, or whose it is
    rf"(?!(?:{DAY_OR_MONTH}|AM|PM|I)\b)\b[\w-]*[A-Z]|[`\"_]|\d\.\d|\bmy\b|\b(?:over|rather than|instead of) "
    r"|^(?:switch|mov|migrat)\w+ (?:\S+ ){0,3}?from |^(?:decided|agreed) that "
    r"|^(?:decided|agreed) (?:the|our) (?:[\w-]+ ){1,3}(?:listens|runs|uses|stays|goes|lives|is|are|will|should"
    r"|must)\b"
)
_CURRENT = re.compile(r"^(?:current|new|actual|present) ")
_TOO = re.compile(
    r",? (?:and|even|for sure|lol|haha|ha|personally|too|as well|though|again|anyway|right now|you know|now"
    r"|these days|nowadays)$"
)
_PAIRS = {'"': '"', "'": "'", "`": "`", "*": "*", "_": "_", "\u201c": "\u201d", "\u2018": "\u2019"}


def stated(text: str) -> Iterator[FactProposal]:
    """The facts that a user's text states; those of one statement share its place."""
    for sentence in sentences(text):
        stop = 0
        for at, forms in _heads(sentence.text):
            if at < stop:
                continue
            for form in forms:
                match = form.pattern.match(sentence.text, at)
                if match is not None and _begins(sentence, at, form) and _is_statement(sentence, match, form):
                    inner = [*_inner(text, sentence, match)] if form.category is FactCategory.NOTE else []
                    yield from inner or _facts(text, sentence, match, form)
                    stop = match.end()
                    break


def _heads(text: str) -> Iterator[tuple[int, Sequence[Form]]]:
    """Where a statement may begin in a sentence, and its forms: with the sentence, or at a head."""
    yield len(text) - len(text.lstrip()), OPENERS
    for head in _HEAD.finditer(text):
        yield head.start(), FORMS[head[0].lower()]


def _begins(sentence: Sentence, at: int, form: Form) -> bool:
    """Whether a statement of this form may begin there, for what stands before it."""
    leading = sentence.text[:at]
    if sentence.is_quoted(at) or is_supposed(leading):
        return False
    return form.is_presupposed or clause_start(leading).allows(form.category)


def _inner(text: str, sentence: Sentence, match: re.Match[str]) -> Iterator[FactProposal]:
    """The exact fact that a note consists of ("remember that my name is Ada")."""
    at = match.start("value")
    head = _HEAD.match(sentence.text, at)
    for form in FORMS[head[0].lower()] if head is not None else ():
        found = form.pattern.match(sentence.text, at)
        if (
            found is not None
            and sentence.text[found.end() :].strip(" .!?") == ""
            and _is_statement(sentence, found, form)
        ):
            yield from _facts(text, sentence, found, form)
            return


def _is_statement(sentence: Sentence, match: re.Match[str], form: Form) -> bool:
    """Whether a match is a statement, for what stands behind it, and its value names something."""
    value, trailing = _TOO.sub("", match["value"].strip(" ,.;:'\"*_`")), sentence.text[match.end() :]
    if _CUT.search(value) or value.count("(") != value.count(")") or (sentence.is_cut and not trailing):
        return False
    if len(value) < LEAST_VALUE_CHARS or _REMOVED.search(value) or _CREDENTIAL.search(match[0]):
        return False
    if form.is_presupposed:
        return not _NO_VALUE.match(value)
    if is_taken_back(trailing):
        return False
    if form.category in _SENTENCES:
        is_need = form.category is FactCategory.NOTE and _NEEDED.match(value) is not None
        return not (is_need or _POINTING.match(value)) and (
            not sentence.is_question or _ASKED_FOR.match(match[0]) is not None
        )
    is_asked = sentence.is_question and not trailing.strip(" ?!\"')*")
    if is_asked and not is_presupposed(sentence.text[: match.start()]):
        return False
    if form.category is FactCategory.DECISION:
        is_about = opening(sentence.text[: match.start()]) is not None
        if _ELLIPTICAL.match(value) or not (is_about or _NAMING.search(value)):
            return False
    elif _NO_VALUE.match(value) or (form.category is FactCategory.PREFERENCE and _NO_TASTE.match(value)):
        return False
    return len(value) <= MOST_VALUE_CHARS and (form.category is FactCategory.IDENTITY or not _DEICTIC.search(value))


def _facts(text: str, sentence: Sentence, match: re.Match[str], form: Form) -> Iterator[FactProposal]:
    """The facts that a match of a form states: its value, and one for each other group that matched."""
    subject = form.subject or _normal_name(match["subject"])
    slot = form.slot if form.slot.strip() and form.slot != NO_LONGER else f"{form.slot}{_normal_name(match['slot'])}"
    about = opening(sentence.text[: match.start()]) if form.category is FactCategory.DECISION else None
    for group, said in match.groupdict().items():
        if said is not None and (group == "value" or group not in _GROUPS):
            first, last = match.span(group)
            first = first if about is None else about
            is_of_named = group == "age" and subject != USER_SUBJECT  # a user has several friends, of several ages
            yield FactProposal(
                subject=f"{subject} {match['value']}" if is_of_named else subject,
                slot=slot if group == "value" else _slot_of(group, slot),
                value=_trimmed(text[sentence.start + first : sentence.start + last]),
                category=form.category,
                start=sentence.start + min(match.start(), first),
                stop=sentence.start + match.end(),
                is_single=form.is_single if group == "value" else not _is_many(group),
                confidence=CONFIDENCE[form.category],
            )


def _slot_of(group: str, slot: str) -> str:
    """The slot of a further group of a match; `no_longer` and `no_longer_any` end a value of the form's own slot."""
    name = group.replace("_", " ")
    return f"{name} {slot}" if f"{name} " in (NO_LONGER, NO_LONGER_ANY) else name


def _is_many(group: str) -> bool:
    name = group.replace("_", " ")
    return name in _MANY or name.startswith(NO_LONGER.strip())


def _normal_name(words: str) -> str:
    """The name of a slot or subject: the same for what is current, and in British and American spelling."""
    name = _CURRENT.sub("", " ".join(words.lower().split()))
    return name.replace("favourite", "favorite").replace("colour", "color").replace("e-mail", "email")


def _trimmed(value: str) -> str:
    """A value without the signs around it; quotation marks go where they enclose all of it."""
    value = _TOO.sub("", value.strip(" ,;:").rstrip("."))
    while len(value) > 1 and _PAIRS.get(value[0]) == value[-1]:
        value = value[1:-1].strip()
    return value
