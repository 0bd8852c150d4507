"""
Standing rules: what a user asked to hold from now on, in the words in which it was asked, and what files of rules say.

Clients quote such files (CLAUDE.md, AGENTS.md) in front of a session, between tags, and some drop them in a compaction.

A later rule takes the place of an earlier one where both cannot hold: it allows what was forbidden or forbids what was
asked for, gives another value ("answer in English" after "in German"), or says the same and more. Those that only share
words hold both ("run the linter before each commit", "run the tests before each commit"): to tell one too many costs a
line, and the newest stands last; to drop one that holds breaks it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from palimpsest.core.archive.chunking import query_terms
from palimpsest.core.recall import wish_words
from palimpsest.core.recall.human_text import untagged_words
from palimpsest.core.recall.utterance import ENGLISH, words
from palimpsest.core.recall.wishes import is_lasting_wish
from palimpsest.core.work.standing import stands
from palimpsest.core.work.statements import SENTENCE
from palimpsest.domain import AccountLine, frozen

RULE_CHARS = 200  # of one rule: a longer sentence tells more than it asks
RULES_CHARS = 400  # of all rules of a block
MOST_RULES = 100  # of a user's, the newest: each is compared with each, and some twenty have room
LEAST_SHARED = 2  # words: a single one stands in rules about anything
LEAST_CHARS = 12  # "never mind" is no rule
# Of a message in which a sentence without a lasting word may be a rule: a longer one was pasted. 8 are taken for one,
# mostly wrongly, in 793 messages of coding sessions, 42 in 1,699 of ShareGPT.
TYPED_CHARS = 600

_LASTS = re.compile(
    r"(?i)\b(?:always|never|from now on|in (?:the )?future|every time|whenever|by default|do not ever|don't ever"
    r"|remember to|make sure (?:to|you|that you) (?:always|never))\b"
)
_LASTS_ELSEWHERE = frozenset(  # in other languages than English
    word for code, entries in wish_words.LASTING.items() if code != ENGLISH for word in words(entries)
)
_ORDERS = re.compile(r"(?i)\b(?:always|never|must(?: not)?|do not|don't|only ever|make sure)\b")  # in a file of rules
_TAG = re.compile(r"<([A-Za-z][\w-]*)[^<>\n]{0,80}>")
_FILE = re.compile(  # as Claude Code, Codex and opencode quote them
    r"(?:Contents of [^\n]{1,300}\.md[^\n]{0,100}:\n|# AGENTS\.md instructions[^\n]{0,300}\n+<INSTRUCTIONS>"
    r"|Instructions from: [^\n]{1,300}\.md\n)"
    r"(.*?)(?=\nContents of |\nInstructions from: |</(?:system-reminder|INSTRUCTIONS)>|\Z)",
    re.DOTALL,
)
_TELLS = re.compile(
    r"(?i)\b(?:is|are|was|were|be|been|has|have|had|it|they|that|which|this|who|I|we)(?: \w+)? (?:always|never)\b"
)
_FORBIDS = re.compile(r"(?i)\b(?:never|do not|don't|must not|mustn't|no longer|avoid|stop)\b")
_VALUE = re.compile(r"(?i)\b(?:in|with|as|to|under|by|at|than|me|every) (?:the |an? |at most )?([\w.+#-]+\w)")
# A sentence that opens with a prohibition holds for the rest of a work, lasting word or not, unless it says until when:
# 5 of 1,179 messages of recorded sessions.
_PROHIBITS = re.compile(
    r"(?i)(?:please |pls |and |but |so )?(?:(?:(?:we )?(?:do not|don'?t)|(?:you )?must ?n[o']t)"
    r" (?!think|need|worry|know|understand|see|have|want|mind|care|get|like|forget|remember|bother|stop|really|tell"
    r"|apologi|be )\w+|we never (?!\w+ed\b)\w+|under no circumstances|no (?:\w+ ){1,4}without \w+ing"
    r"|ask me (?:first|before)|hands off)\b(?!.*\b(?:yet|now|for this one|this time|for the moment|today)\b)"
)
# What was forbidden is allowed: "you may touch it now", "go ahead and push", "delete the branch now".
_ALLOWS = re.compile(r"(?i)(?:\byou (?:may|can|could|should)\b|\bgo ahead\b|\bis (?:fine|ok|okay|allowed)\b|\bnow\b)")
_EXCEPTS = re.compile(  # "But hotfixes may go in.", and no next step: "But first, fix the test."
    r"(?i)(?!.*(?:\b(?:now|first|then|today|yesterday)\b|\?))\s*(?:(?:but|aber|mais|pero)\b.*\b"
    r"(?:may|can|allowed|fine|ok(?:ay)?|d\xfcrf\w+|peu\w+|pued\w+)\b|(?:except|unless|au\xdfer|sauf|salvo)\b)"
)
_IDLE = frozenset(query_terms("always never now every time whenever future default remember sure make ever"))  # stems
_PASTED = re.compile(  # fenced, quoted, or a comment of code
    r"```.*?(?:```|\Z)|^[ \t]*(?:[+-][ \t]*)?(?://|/\*|\*/|>)[^\n]*$", re.MULTILINE | re.DOTALL
)
_DIFFERENCE = re.compile(r"^(?:diff --git |@@ -\d)", re.MULTILINE)
_CHANGED = re.compile(r"^(?:[-+ \t@\\]|diff |index )[^\n]*$", re.MULTILINE)
_MARKUP = re.compile(r"^[\s>*#\-\d.)]+")


@frozen
class _Rule:
    text: str
    occurrence: int
    about: frozenset[str]
    values: frozenset[str]  # words of it that say in what, with what, how much
    forbids: bool
    is_sure: bool  # it says that it lasts, or is from a file


def rules(said: Iterable[tuple[int, str]], visible: str) -> tuple[AccountLine, ...]:
    """
    The rules that hold, in at most 400 characters: what says that it lasts has room first and stands last, by age.

    Args:
        said: occurrence and text of what the user said, in its order.
        visible: what the model still sees: its rules are not told again, but take the place of earlier ones.
    """
    holding: list[_Rule] = []
    written: list[_Rule] = []  # in files of rules: what the user says himself overrules them
    for occurrence, text in said:
        allowed = _allowed(text) if holding else ()
        holding = [
            rule for rule in holding if not (rule.forbids and rule.about and any(map(rule.about.issubset, allowed)))
        ]
        for rule in _rules_of(_untagged(untagged_words(text)), occurrence):
            holding = [other for other in holding if not _replaces(rule, other)]
            if len(holding) == MOST_RULES:
                holding.remove(next((other for other in holding if not other.is_sure), holding[0]))
            holding.append(rule)
        for file in _FILE.finditer(text):
            written += _rules_of(file[1], occurrence, is_file=True)
    newest = {rule.text: rule for rule in written if not any(_replaces(own, rule) for own in holding)}
    holding = [*reversed(newest.values()), *holding]  # a file begins with what matters most
    still = _rules_of(visible, 0) if holding else ()
    lines: list[AccountLine] = []
    room = RULES_CHARS
    for rule in sorted(reversed(holding), key=lambda rule: not rule.is_sure):
        if rule.text in visible or any(_replaces(seen, rule) for seen in still):
            continue
        line = AccountLine("user", rule.text, (rule.occurrence,))
        if line.chars <= room:
            lines.append(line)
            room -= line.chars
    return tuple(reversed(lines))


def _allowed(text: str) -> list[frozenset[str]]:
    """The terms of each sentence of a user's that allows something and forbids nothing."""
    said = (one for one in SENTENCE.findall(text) if _ALLOWS.search(one) and not _FORBIDS.search(one))
    return [frozenset(query_terms(one)) for one in said]


def _rules_of(text: str, occurrence: int, is_file: bool = False) -> Sequence[_Rule]:
    """The sentences of a text that state a lasting rule."""
    found = []
    sentences = SENTENCE.findall(text) if not is_file or _lasts(text, is_file) else []
    for sentence, after in zip(sentences, [*sentences[1:], ""], strict=False):
        rule = _MARKUP.sub("", sentence).strip()
        if not LEAST_CHARS <= len(rule) <= RULE_CHARS or rule.endswith("?"):
            continue
        is_sure = _lasts(rule, is_file) and (is_file or _asks(rule))
        is_sure |= not is_file and _PROHIBITS.match(rule) is not None
        is_typed = not is_file and len(text) <= TYPED_CHARS and not rule.endswith("!")
        if is_sure or (is_typed and sentence.lstrip()[:1] != "#" and stands(rule)):
            values = frozenset(query_terms(" ".join(_VALUE.findall(rule))))
            about = frozenset(query_terms(rule)) - _IDLE
            whole = f"{rule} {after.strip()}" if _EXCEPTS.match(after) else rule
            told = whole if len(whole) <= RULE_CHARS else rule
            found.append(_Rule(told, occurrence, about, values, bool(_FORBIDS.search(rule)), is_sure))
    return found


def _lasts(text: str, is_file: bool) -> bool:
    """Whether a text has words of what is to hold: of orders in a file of rules, else of how long."""
    if is_file:
        return _ORDERS.search(text) is not None
    return _LASTS.search(text) is not None or not _LASTS_ELSEWHERE.isdisjoint(words(text))


def _untagged(text: str) -> str:
    """A text without what clients put into it between tags, without the rules of files, and without pasted code."""
    parts, at, unclosed = [], 0, set[str]()  # what closes nowhere behind one tag closes behind no later one
    while tag := _TAG.search(text, at):
        stop = -1 if (close := f"</{tag[1]}>") in unclosed else text.find(close, tag.end())
        unclosed |= {close} if stop < 0 else set()
        parts.append(text[at : tag.start() if stop >= 0 else tag.end()])
        at = stop + len(close) if stop >= 0 else tag.end()
    text = _PASTED.sub("", _FILE.sub("", "".join([*parts, text[at:]])))
    return _CHANGED.sub("", text) if _DIFFERENCE.search(text) else text


def _asks(rule: str) -> bool:
    """Whether a sentence asks for something, and does not tell what always happens."""
    return (is_lasting_wish(rule) and not _TELLS.search(rule)) or bool(
        re.match(r"(?i)(?:please )?(?:always|never|from now on|whenever|do not|don't)\b", rule)
    )


def _replaces(new: _Rule, old: _Rule) -> bool:
    """Whether a later rule replaces an earlier one, or says all of it."""
    changed = new.about ^ old.about
    is_one_word = len(changed) == 2 and len(new.about) == len(old.about)
    if not new.is_sure:  # it may be a report: only another value of the same kind replaces one
        are_numbers = {any(map(str.isdigit, word)) for word in changed}
        is_other_value = len(are_numbers) == 1 and (are_numbers == {True} or changed <= new.values | old.values)
        return not old.is_sure and bool(new.about) and (not changed or (is_one_word and is_other_value))
    if new.about == old.about:
        return bool(new.about)
    shared, both_forbid = new.about & old.about, new.forbids and old.forbids
    if len(shared) >= LEAST_SHARED and old.about <= new.about:
        return not both_forbid  # what is forbidden under more conditions is forbidden less
    if new.forbids != old.forbids:
        return bool(shared) and new.about <= old.about and len(old.about) <= len(shared) * LEAST_SHARED
    return not both_forbid and bool(shared) and is_one_word and changed <= new.values | old.values
