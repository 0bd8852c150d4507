"""
Lasting wishes: whether a person asks for something that holds from now on ("never suggest pork", "we squash here").

Orders for once ("write a letter"), habits ("I always take the train") and facts share their words. What tells them
apart is the form: a clause that opens with an order, a condition ("when you list medicines, ..."), a lasting word, what
future answers consist of ("recipes", "commit messages") beside a denial, and that nobody narrates.

The weights are a logistic regression over texts of several authors in 14 languages and over messages of recorded talks
(`scripts/fit_wishes.py`), checked with each set left out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from palimpsest.core.recall import wish_words
from palimpsest.core.recall.utterance import (
    ENGLISH,
    OWN,
    STATEMENT_CHARS,
    Utterance,
    has_question,
    read_utterance,
    words,
)

WISH = "wish"  # the signal of a lasting wish or a precaution that comes without being asked for
NOTE = "note"  # ... of a note of a project: see `core/work/project_notes.py`
SURE_ODDS = 1.5  # from which on a text of any form is surely a wish
LEAST_ODDS = 0.5  # of an author whom no weight has seen, two of three wishes have more, and one of eight other texts
WORDY_WORDS, WORDY_STEP, MOST_WORDY = 20, 20, 2.0  # from which on each further step makes a wish less probable
BRIEF_WORDS = 4

_MATERIAL = re.compile(r"```|\{|\n.*\n")
_QUOTED = re.compile(
    r'(?<!\d)"[^"\n]*|`[^`\n]*|[\u201c\u00ab\u300c][^\u201d\u00bb\u300d\n]*'
)  # up to the mark that closes it
NAME_CHARS = 30  # in quotes, with the mark: what is longer is material, if it is half of the text, too
_SENTENCE = re.compile(r"[^.!?\n\u3002\uff01\uff1f\u061f]+")
_CLAUSE = re.compile(
    r"[,;:\u2013\u2014\uff0c\u3001()]| - "
    r"| (?:and|und|et|y|e|en|i|и|because|since|weil|parce que|porque|want|bo|потому что|so) "
)
_REMINDER = re.compile(r"\b(?:(?:make|be) sure(?: (?:to|that|you))*|remember to|don'?t forget to) ")
_SOFTENERS = frozenset(words(wish_words.SOFTENERS))
_ORDERS, _MANNERS, _LASTING = (
    frozenset(word for entries in table.values() for word in words(entries))
    for table in (wish_words.ORDERS, wish_words.MANNERS, wish_words.LASTING)
)
_DENIALS, _CONDITIONS = (
    {code: frozenset(words(entries)) for code, entries in table.items()}
    for table in (wish_words.DENIALS, wish_words.CONDITIONS)
)
_NONE: frozenset[str] = frozenset()
_WISH = frozenset(words(wish_words.WISH_IN_ENGLISH))
_LASTING_PHRASE = re.compile(
    r"\b(?:from (?:now|here|today|this point) on|from here on out|for all \w+ from now|going forward"
    r"|(?:in|for) (?:the )?future|by default|every time|at all times|as a rule|any time|no matter"
    r"|in this (?:repo|project|codebase|chat)|around here"
    r"|(?:our|house) (?:style|rule)|ab (?:jetzt|sofort)|von nun an|in zukunft|dorenavant|a l'avenir"
    r"|a partir de (?:ahora|agora)|de (?:ahora|agora) em?n?|d'ora in (?:poi|avanti)|vanaf nu|od teraz"
    r"|с этого момента|bundan (?:sonra|boyle))\b"
)
_COMMANDED = re.compile(r"(?:(?:please|yes|ok),? )*(always |never |from now on,? )?(\w+)")  # how most people put a rule
_ALWAYS_LAST = re.compile(r"[^.!?]*(?<!\bas)[\s,.;:]+always\W*$")  # "sign it with the name of our firm, always"
_STRICT = re.compile(  # "No dogs that bite, no exceptions"
    r"\bunder no circumstances\b(?! (?:would|did|have|has|could)\b)"
    r"|(?:^|[.!?]\s+)(?:please )?(?:no|never|always|only|don'?t(?! worry)|do not|nobody|nothing)\b"
    r"(?:(?!fail|error|warning|\blog|test|\bsaw\b|found)[^.!?])*\b(?:no|without) exceptions?"
    r"(?: (?:since|for|please)\b|\s*(?:[.!?]|$))"
)
_COMMANDS = frozenset(words(wish_words.ORDERS["en"])) | frozenset(  # "always fails" and "always nice" command nothing
    words(
        "push pull deploy merge rebase force delete remove drop rename edit modify change touch install upgrade log "
        "print hardcode expose share store save send import export return throw catch call create generate verify "
        "validate lint place assume offer order buy respond do review build format sign open close wait report"
    )
)
_BEHIND_SUBJECT = (["is"], ["are"], ["goes"], ["runs"])  # "deploy is fly, the app is called shop-eu" orders nothing
_ASKS_WHY = re.compile(  # and no "that's why we never ..."
    r"(?<!that's )(?<!that is )(?<!this is )(?<!which is )\bwhy (?:we|you|they|i) "
    r"(?:don't|do not|never|always|no longer|only)\b"
)
_ONE_OFF = re.compile(  # "Give me five title ideas for a story": a task, whatever else it says
    r"(?:(?:now|please|ok(?:ay)?|then|and|can you|could you|would you|great|good|nice|perfect|cool|thanks|thank you)\b"
    r"[,.!]? ?)*"
    r"(?:write|give|make|create|provide|suggest|list|name|show|draw|illustrate|tell|generate|propose|recommend|draft"
    r"|compose|plan|find|come up with|think of) (?:me |us )?"
    r"(?:an?|one|two|three|four|five|six|seven|eight|nine|ten|twelve|twenty|\d+|some|several|another) "
    r"(?!.*\b(?:always|whenever|each|every|first)\b)"
)
_WANTS = re.compile(
    r"\bi(?:'d| would)? (?:like|want|need|expect|prefer)(?: it)?(?: if)? "
    r"(?:you|all|every|any|my|the|to|answers|replies)\b"
    r"|\bi'?d (?:rather|prefer|appreciate)\b"
    r"|\byou(?: must|'re not| are not| may| should| shall| can)(?: only)? (?:never|always|not|to|ask)\b"
    r"|\b(?:must|should|has to|have to|needs? to|goes?)(?: always| never| only)? "
    r"(?:be|have|run|use|go|come|stay|start|end|follow|written|in|by|not)\b"
    r"|\bwe (?:only|always|never|don't|do not|use|write|stick|keep|prefer|call|format)\b"
)
_ASKS_YOU = re.compile(
    r"\b(?:i'?d|i would|we'd) (?:like|prefer|rather|appreciate|love|want)(?: it)?(?: if)? (?:you|that you)\b"
    r"|\b(?:like|want|need|expect|prefer|trust|remind) you to\b|\bif you(?:'d| would| could)\b"
    r"|\byou (?:can|may|should|must|need|have|don't need|needn't)\b|\bit (?:would|'d) help\b"
    r"|\b(?:make|be) sure\b|\bremember (?:to|that|i'm|i am|not)\b|\bdon'?t forget\b"
    r"|\btell me (?:outright|straight|if|when)\b|\bask (?:me )?(?:first|before)\b|\blet me know (?:if|when|before)\b"
    r"|\blet'?s (?:keep|stick|always|not|use|leave)\b|\b(?:stop|quit) \w+ing\b|\bno more\b"
)
_CONSEQUENCE = re.compile(
    r"\bso (?:please )?(?:no|nothing|don'?t|do not|never|always|only|keep|leave|use|give|skip|swap|avoid|make|treat"
    r"|count|break|plan|put|write|explain|flag|mention|convert|i want|i need|i'd like|you should)\b"
)
_OUTPUT = re.compile(  # what answers of the future consist of
    r"\b(?:your (?:replies|answers|responses|reply|answer|output|suggestions|emails|explanations|summaries|code)"
    r"|replies|answers|responses|recipes?|meal plans?|menus?|suggestions?|recommendations?|explanations?"
    r"|summar(?:y|ies)|bullet points?|emojis?|jargon|disclaimers?|metaphors?|units|metric|celsius|fahrenheit|grams"
    r"|kilomet(?:er|re)s|format|spelling|tone|spoilers|commits?|commit messages?|branch(?:es)?|pull requests?"
    r"|migrations?|type hints|docstrings?|tests?|linter|tabs|spaces|indentation|dependencies|semicolons|snippets?"
    r"|scripts?|sources?|citations?|prices?|currency|dates|time ?stamps?|24.?h(?:our)?|estimates"
    r"|everything you \w+|whatever you \w+|anything (?:you|i) \w+|texts?|letters|emails?|newsletters?"
    r"|in (?:english|german|french|spanish|dutch|italian|portuguese|polish|russian))\b"
)
_WHEN_YOU = re.compile(
    r"\b(?:when(?:ever)?|if|before|after|every time|any ?time|while|once) (?:you|u|i|we)(?:'re|'m)? "
    r"(?!was\b|were\b|had\b|did\b|went\b)\w"
)
_ADDRESSED = re.compile(
    r"\b(?:you|your|you're|yourself|me|du|mir|mich|dein|tu|te|moi|vous|ti|mi|je|jij|ci|mnie|ты|вы|мне|bana|sen)\b"
)
_NARRATED = re.compile(
    r"\b(?:was|were|had|did|went|got|made|came|took|said|told|\w{3,}ed|since|ago|yesterday|last"
    r"|war|hatte|wurde|ist|etait|fue|era|foi|byl|был|была)\b"
)
_OF_OTHERS = re.compile(
    r"(?:he|she|they|it|there|there's|the|this|that|it's|that's|my|nobody|everyone|thanks|yes|yeah|ok|sounds)\b"
)
_UNSPACED_REQUEST = re.compile(
    "请|別|别|不要|先|避开|ください|てほしい|お願い|ないで|こと。|てね|주세요|줘|마세요|지 마|세요"
)
_UNSPACED_LASTING = re.compile(
    "以后|每次|凡是|一律|统一|时候|時|总是|始终|今後|必ず|いつも|とき|には|場合|앞으로|항상|때는|꼭|때마다"
)

WEIGHTS: Mapping[str, float] = {
    **{"opens": 0.66, "opens_text": -1.12, "manner": 1.74, "denies": 1.34, "conditional": 1.2},
    **{"lasts": 0.51, "wants": 0.9, "asks_you": 0.48, "consequence": 1.75, "output": 2.16},
    **{"addressed": 1.1, "wish": 0.89, "narrated": -1.08, "of_others": -0.35, "lasting_order": 0.98},
    **{"denied_output": -0.43, "addressed_order": -0.16, "wished_order": -0.45, "order_on_condition": 0.56},
    **{"lasts_abroad": -0.06, "requests_unspaced": 0.85, "lasting_unspaced": 1.61, "wish_elsewhere": 0.53},
    **{"elsewhere": -0.35, "not_english": 0.84},
    **{"brief": -0.34, "own": 1.33, "opens_own": -0.67, "asks": -3.05, "one_off": -4.0, "digit": -1.11},
    **{"lines": -1.29, "wordy": -2.68, "small": -0.76, "function": -1.14, "bias": -1.77},
}
"""
Per unit of the form of that name; "bias" is the constant. "one_off" is not fitted: it outweighs what else such a task
says, and no wish of the three files of wishes has its form.
"""


def is_lasting_wish(text: str) -> bool:
    """Whether a person's words are a wish that holds from now on, and no task or material for one."""
    return not is_material(text) and (log_odds(text) >= LEAST_ODDS or _commands(text.lower()))


def is_sure_wish(text: str) -> bool:
    """Whether a text is so surely a lasting wish that it may be told whatever is asked."""
    return _commands(text.lower()) or log_odds(text) >= SURE_ODDS


def _commands(plain: str) -> bool:
    """Whether a sentence opens with what is always to be done, or never, or forbids without exception."""
    starts = [sentence.end() - len(sentence[0].lstrip()) for sentence in _SENTENCE.finditer(plain)]
    opened = (_COMMANDED.match(plain, start) for start in starts)
    orders = [found[1] or _ALWAYS_LAST.match(plain, found.end()) for found in opened if found and found[2] in _COMMANDS]
    return any(orders) or bool(_STRICT.search(plain.replace("\u2019", "'")))


def is_material(text: str) -> bool:
    """Whether a text brings something to work on: it is long, quotes a passage or code, or has several lines."""
    return len(text) > STATEMENT_CHARS or bool(_MATERIAL.search(text)) or _quotes_passage(text)


def _quotes_passage(text: str) -> bool:
    """Whether more than a name, or than the form of a greeting, stands between quotation marks."""
    at = 0
    while quoted := _QUOTED.search(text, at):
        if len(quoted[0]) > max(NAME_CHARS, len(text) / 2):
            return True
        at = quoted.end() + 1  # behind the mark that closes it, which opens nothing
    return False


def log_odds(text: str) -> float:
    """Log-odds that a text of at most 350 characters is a lasting wish."""
    return sum(weight * value for weight, value in zip(WEIGHTS.values(), (*form(text).values(), 1.0), strict=True))


def form(text: str) -> dict[str, float]:
    """The form of a text by the names of `WEIGHTS`, without the constant."""
    text = text.strip()
    of, plain = read_utterance(text), text.lower().replace("\u2019", "'")
    is_english = of.language == ENGLISH
    opens, opens_text, manner, denies, conditional = _clauses(plain, of)
    spoken = words(text)
    lasts = not _LASTING.isdisjoint(spoken) or bool(_LASTING_PHRASE.search(plain))
    wish = _says_wish(plain, spoken) if is_english else of.wish > 0
    addressed = bool(_ADDRESSED.search(plain))
    output = is_english and bool(_OUTPUT.search(plain))
    requests = bool(_UNSPACED_REQUEST.search(text))
    found = {
        "opens": opens,
        "opens_text": opens_text,
        "manner": manner,
        "denies": denies,
        "conditional": conditional,
        "lasts": lasts,
        "wants": is_english and bool(_WANTS.search(plain)),
        "asks_you": is_english and bool(_ASKS_YOU.search(plain)),
        "consequence": is_english and bool(_CONSEQUENCE.search(plain)),
        "output": output,
        "addressed": addressed,
        "wish": wish,
        "narrated": bool(_NARRATED.search(plain)),
        "of_others": bool(_OF_OTHERS.match(plain)),
        "lasting_order": lasts and (opens or denies),
        "denied_output": output and denies,
        "addressed_order": addressed and opens,
        "wished_order": wish and opens,
        "order_on_condition": opens and is_english and bool(_WHEN_YOU.search(plain)),
        "lasts_abroad": lasts and not is_english,
        "requests_unspaced": requests,
        "lasting_unspaced": requests and bool(_UNSPACED_LASTING.search(text)),
        "wish_elsewhere": wish and of.language not in wish_words.ORDERS,
        "elsewhere": of.language not in wish_words.ORDERS,
        "not_english": not is_english,
        "brief": of.words < BRIEF_WORDS,
        "own": of.own > 0,
        "opens_own": of.opens & OWN > 0,
        "asks": has_question(text) or bool(_ASKS_WHY.search(plain)),
        "one_off": bool(_ONE_OFF.match(plain)) and not (_LASTING_PHRASE.search(plain) or _WHEN_YOU.search(plain)),
        "digit": bool(re.search(r"\d", text)),
        "lines": "\n" in text,
    }
    return {name: float(value) for name, value in found.items()} | {
        "wordy": max(0.0, min((of.words - WORDY_WORDS) / WORDY_STEP, MOST_WORDY)),
        "small": of.small_share,
        "function": of.function_share,
    }


def _clauses(plain: str, of: Utterance) -> tuple[bool, bool, bool, bool, bool]:
    """Whether a clause opens with an order, the text does, a clause with one of manner, a denial, or a condition."""
    denials, conditions = _DENIALS.get(of.language, _NONE), _CONDITIONS.get(of.language, _NONE)
    opens = opens_text = manner = denies = conditional = False
    for sentence in _SENTENCE.findall(_REMINDER.sub("", plain)):
        is_first = True
        for clause in _CLAUSE.split(sentence):
            all_words = words(clause)
            rest = all_words
            while rest and rest[0] in _SOFTENERS:
                rest = rest[1:]
            if not rest:
                continue
            is_subject = rest[1:2] in _BEHIND_SUBJECT
            if (rest[0] in _ORDERS and not is_subject) or (len(all_words) > 1 and all_words[0] in ("do", "let")):
                opens, opens_text = True, opens_text or is_first
            manner |= rest[0] in _MANNERS
            denies |= all_words[0] in denials
            conditional |= is_first and all_words[0] in conditions
            conditional |= opens and not conditions.isdisjoint(all_words[1:])
            is_first = False
    return opens, opens_text, manner, denies, conditional


def _says_wish(plain: str, spoken: list[str]) -> bool:
    return "don't" in plain or not _WISH.isdisjoint(spoken)
