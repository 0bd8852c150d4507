"""
The chunking of messages: passages, full-text terms, tags and kind, by rule and without a model.

A passage is a window of the *readable* text: what the message says, then one line for each tool call. Its terms are
what full text search sees: lower-case stems, and identifiers (paths, versions, hashes, ticket ids) both whole and in
parts, so that an exact question and a loose one both find them (CALMem names exact identifiers as its gap).
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Container, Iterator, Sequence
from itertools import chain

from py_rust_stemmers import SnowballStemmer  # type: ignore[import-untyped]

from palimpsest.core.recall import utterance
from palimpsest.core.recall.dates import MONTHS
from palimpsest.core.recall.human_text import spoken
from palimpsest.core.recall.precautions import is_precaution
from palimpsest.core.recall.utterance import ENGLISH, folded, function_words, language
from palimpsest.core.recall.wishes import is_lasting_wish
from palimpsest.domain import BLOCK_OPEN, TOOL_ROLES, Passage
from palimpsest.domain.word_cache import word_cache
from palimpsest.wire.frame import own_words
from palimpsest.wire.pieces import pieces

WINDOW_CHARS = 1000  # LANTERN 3.1; MiniLM reads 256 tokens, about as much English prose
OVERLAP_PART = 5  # of a window, 200 characters of 1,000 (LANTERN 3.1): a sentence on the edge is whole in one of two
MAX_PASSAGES = 256  # a longer text is findable by its two ends; it is archived whole all the same
MAX_TAG_CHARS = 300  # room for a URL
ASKING_CHARS = 300  # a longer text tells more than it asks
ASKING_END_CHARS = 80  # a question may be followed by a caption or a greeting
ASKS = "?"  # the tag of a text that asks
WISHES = "!"  # the tag of a user's wish that holds from now on
WARNS = "^"  # the tag of what a user told that may harm somebody
TELLS = "="  # opens the tag that says how surely a text tells something: =0 to =9, how many of these edges it reaches
TELLING_EDGES = (-3.0, -2.0, -1.2, -0.5, 0.0, 0.5, 1.2, 2.0, 3.0)  # log-odds; what tells anything is above the first
# Of those edges, at most, for what a text tells beside its questions: without a limit, chats behind millions of
# characters get 15 tokens a turn more for a fact less, and BEAM finds as much in 6,000 characters.
MIXED_LEVEL = 4
UNJUDGED = 0.3  # what texts of every kind tell on average; those that were stored before texts were judged
TERM_CHARS = 80  # longer runs without white space are data, not words
BEGINNING_CHARS = 5  # of a word, where its language has no stemmer here (McNamee and Mayfield 2004)
CACHED_WORDS = 20_000  # of each of five caches, some 14 MB together; a conversation uses 5 to 10 thousand

# A private-use letter opens every scope token. FTS5's ascii tokenizer takes it for a letter, as all that is not ASCII;
# Python's \w does not, and terms consist of \w and joiners only: no text can forge a scope.
SCOPE_MARK = "\ue000"

# Function words, and those that only ask, agree or thank. Dropped from questions; kept in documents, at no cost.
STOP_WORDS = frozenset(
    """
    a about after again all also am an and any are as at be because been before being between both but by bye can
    could did do does doing don't done down during each few for from further get go goes going got great had has
    have having he hello her here hers hey hi him his how i if in into is it it's its just kindly let's like made
    make many may me might mine more most much must my no nor not now of off oh ok okay on once one only or other
    our ours out over own please same say shall she should so some such sure than thank thanks that the their theirs
    them then there these they this those through to too under until up us very was we were what what's when where
    which while who whom whose why will with would yeah yes you your yours
    """.split()  # noqa: SIM905 - a list of 140 quoted words is no easier to read
)

# When, not who: every memory is dated, whether or not its text says so.
TIMES = frozenset((*MONTHS, "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"))

# A line break of a text that is quoted in JSON or source code: "first\nsecond" are two words, C:\new\tools is a path.
_QUOTED_BREAK = re.compile(r"\b[A-Za-z]:\\[^\s\"']*|(?<!\\)\\+[nrt]")
# Vowel signs of Indic scripts and Thai are no letters to Python.
_LETTER = r"[\w\u0300-\u036f\u0900-\u0dff\u0e00-\u0e7f]"
_RUN = re.compile(rf"\w{_LETTER}*(?:['./:@\\#+-]+\w{_LETTER}*)*")
_CJK = re.compile(
    r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"
)  # written without spaces: pairs of characters are terms
_INDIC = re.compile(r"[\u0900-\u0dff]")
_PART = re.compile(r"[A-Z]+(?![a-z])[\d]*|[A-Z]?[a-z\d]+|[^\W_A-Za-z]+")
_HUMP = re.compile(r"[a-z\d][A-Z]")
_YEAR = re.compile(r"(?:19|20)\d\d")
_COUNTED = re.compile(r"\d[\d.,:/-]*[a-z]{1,3}")  # 2nd, 1990s, 5km, 7:30pm: amounts, no names
_DOTTED = re.compile(r"(?:\w+/)+\w+\.\w+|\w{2,}(?:\.\w{2,})+")  # src/main.c, main.py, api.example.com; not "e.g"
_stem = SnowballStemmer("english").stem_word

_TAGS = re.compile(  # on one white-space separated word at a time: whole texts cost ten times as much
    r"""
      (?P<url>https?://[^\s<>"'`)\]}]+[^\s<>"'`)\]}.,;:!?])
    | (?P<path>(?<![\w/])(?:~|\.{1,2})?(?:/[\w.@+-]+){2,}/?|\b[\w.@+-]+(?:[/\\][\w.@+-]+)+\.\w{1,8}\b
        |\b[\w-]+\.(?:c|cc|cfg|conf|cpp|cs|css|csv|env|go|h|html|ini|ipynb|java|js|json|jsx|kt|lock|log|md|php|proto|py|rb
        |rs|scss|sh|sql|swift|toml|ts|tsx|txt|vue|xml|ya?ml)\b)
    | (?P<error>\b[A-Z]\w*(?:Error|Exception|Fault|Warning)\b|\bE[A-Z]{4,}\b|\b[A-Z]{1,4}\d{3,5}\b)
    | (?P<ticket>\b[A-Z][A-Z\d]+-\d+\b|(?<!\w)\#\d+\b)
    | (?P<key>\b[A-Z][A-Z\d]*(?:_[A-Z\d]+)+\b|(?<!\w)--[a-z][\w-]+|\b[a-z_][\w.-]*(?==[^=\s]))
    | (?P<version>\bv?\d+\.\d+\.\d+[\w.+-]*\b|\bv\d+(?:\.\d+)*\b)
    | (?P<port>(?<=[a-z\d\]]:)\d{4,5}\b(?![:\d]|\.\d))
    | (?P<name>\b\w+(?=\(\))|\b[a-z\d]+(?:_[a-z\d]+)+\b|\b(?:[A-Z]?[a-z\d]+(?:[A-Z][a-z\d]+)+)\b)
    | (?P<hash>\b(?=[a-f]*\d)(?=\d*[a-f])[\da-f]{7,40}\b)
    """,
    re.VERBOSE,
)
_COMMAND = re.compile(
    r"(?:^ *\$ +|`)((?:apt|cargo|curl|docker|git|go|kubectl|make|np[mx]|pip|poetry|pytest|python3?|uv|yarn) +[\w./-]+)",
    re.MULTILINE,
)
_SPEAKER = re.compile(r"^([A-Z]\w+)(?: [A-Z]\w+)?: ", re.MULTILINE)  # "Ann: ...", as transcripts begin a line
_NAME = re.compile(r"(?<=[^\s.!?:]\s)([^\W\d_a-z][^\W\d_A-Z]+)(?!\w)(?:['\u2019]s\b)?")  # Ann, Ann's
_DEFINES = ("class ", "def ", "enum ", "fn ", "func ", "function ", "interface ", "struct ", "trait ")
_DEFINED = re.compile(r"\b(?:class|def|enum|fn|func|function|interface|struct|trait) (\w+) ?[(:{<]")
_STEPS = re.compile(r"```|^ *(?:\d+[.)]|\$|[Ss]tep \d+:?) +\S.*\n+ *(?:\d+[.)]|\$|[Ss]tep \d+:?) ", re.MULTILINE)
_LASTING_SIGNS = (
    *("always", "never", "prefer", "favo", "is called", "stands for"),
    *("My ", "my ", "e use", "emember that", "convention"),
)
_LASTING = re.compile(
    r"(?:always|never|prefers?|favou?rite|is called|stands for|[Mm]y \w+ is|[Ww]e use|[Rr]emember that|convention)\b"
)


def split_into_passages(text: str, role: str, window_chars: int = WINDOW_CHARS, block: str = "") -> tuple[Passage, ...]:
    """
    Cut one message into findable passages, in order.

    Args:
        text: what a message says and does, as `readable` puts it.
        role: who says it; what a tool answers is an episode, even when it lists steps, and what an assistant repeats
            out of a block (`frame.own_words`) is not findable as its own words, nor is as a user's what a client
            writes beside them (`human_text.spoken`).
        window_chars: of a passage at most, >= 5.
        block: that the assistant was shown, if it is known.

    Returns:
        Passages whose `start` and `stop` are character offsets into the text; none for a blank message, nor for the
        result of a tool that quotes memory. Windows of 1,000 characters overlap by a fifth and end at white space
        (LANTERN 3.1, CALMem 3.4). Of a text with more than 256 windows the first and the last 128 are kept.
    """
    if role in TOOL_ROLES and BLOCK_OPEN in text:  # memory does not find what memory found
        return ()
    whole = own_words(text, block) if role == "assistant" else spoken(text) if role == "user" else [(0, len(text))]
    spans = [(first + a, first + b) for first, last in whole for a, b in _windows(text[first:last], window_chars)]
    if len(spans) > MAX_PASSAGES:
        spans = spans[: MAX_PASSAGES // 2] + spans[-MAX_PASSAGES // 2 :]
    passages = []
    for start, stop in spans:
        piece = text[start:stop]
        if words := terms(piece):
            passages.append(Passage(start, stop, words, (*tags(piece), *judged(piece, role)), kind(piece, role)))
    return tuple(passages)


def terms(text: str) -> tuple[str, ...]:
    """
    Full-text terms of a text, in order, repeats kept.

    Words are lower-case English stems. An identifier comes whole (lower case, not stemmed), then as its parts; scripts
    written without spaces come as pairs of characters. Longer words of texts in other languages also come as `#` and
    their first five letters. No term contains white space or `SCOPE_MARK`.

    Source: Snowball, Porter 2001. Beginnings of words serve as stems in any language that inflects at the end: McNamee
    and Mayfield, Information Retrieval 7, 2004. Identifiers whole and in parts answer a gap that CALMem names.
    """
    terms_of = _english_terms_of if language(text) == ENGLISH else _foreign_terms_of
    if (
        text.isascii() and len(max(words := text.split(), key=len, default="")) <= TERM_CHARS
    ):  # no run spans white space
        return tuple(chain.from_iterable(map(terms_of, words)))
    return tuple(chain.from_iterable(map(terms_of, _runs(text))))


def query_terms(text: str) -> tuple[str, ...]:
    """The different terms of a question that carry meaning, in order of appearance: `terms` without function words."""
    code = language(text)
    if code == ENGLISH:
        return tuple(dict.fromkeys(term for term in terms(text) if term not in _STOP_TERMS))
    idle = function_words(code)
    runs = (run for run in _runs(text) if folded(run) not in idle)
    found = (term for run in runs for term in _beginning_of(run) or _terms_of(run))
    return tuple(dict.fromkeys(term for term in found if term not in _STOP_TERMS))  # "a" stands in any English text


def word_terms(word: str, code: str) -> tuple[str, ...]:
    """The terms by which `query_terms` looks for a word of a text in this language (`utterance.language`)."""
    return _english_terms_of(word) if code == ENGLISH else _beginning_of(word) or _terms_of(word)


def identifiers(text: str, among: Container[str] | None = None) -> tuple[str, ...]:
    """The different terms of a text that name one thing exactly, whole: paths, versions, hashes, ids, long numbers."""
    lowered = ((run, run.lower()) for run in _runs(text))
    return tuple(dict.fromkeys(low for run, low in lowered if (among is None or low in among) and _is_identifier(run)))


def names(text: str) -> tuple[str, ...]:
    """
    The different capitalised words inside the sentences of a text, in order: whom and what a question names.

    The first word of a sentence is none, it is capitalised anyway; nor are identifiers, acronyms, months and weekdays.
    """
    found = (word for word in _NAME.findall(text) if word[0].isupper() and word.lower() not in TIMES)
    return tuple(dict.fromkeys(found))


def tells_time(term: str) -> bool:
    """Whether a term of `terms` is a month, a weekday or a year."""
    return term in _TIME_TERMS or bool(_YEAR.fullmatch(term))


def without_names(text: str) -> str:
    """A text without the capitalised words that `names` finds."""
    return _NAME.sub(lambda found: "" if found[1][0].isupper() else found[0], text)


def tags(text: str) -> tuple[str, ...]:
    """
    What a text names by pattern, lower case, sorted, each once: URLs, paths, errors, ticket ids, config keys, versions,
    ports, commands, function and class names, hashes; `ann:` where its first speaker is Ann; `?` where a short text
    ends by asking. A tag holds no white space (`git commit` is `git_commit`).

    Source: LANTERN 3.1 (tags by pattern).
    """
    text = _without_quoted_breaks(text)
    found = set(chain.from_iterable(map(_tags_of, text.split())))
    if "`" in text or "$ " in text:
        found.update("_".join(command.lower().split()) for command in _COMMAND.findall(text))
    if any(opening in text for opening in _DEFINES):
        found.update(name.lower() for name in _DEFINED.findall(text))
    if ": " in text and (speaker := _SPEAKER.search(text)):
        found.add(f"{speaker[1].lower()}:")
    if len(text) <= ASKING_CHARS and "?" in text[-ASKING_END_CHARS:]:
        found.add(ASKS)
    return tuple(sorted(found))


def judged(text: str, role: str) -> tuple[str, ...]:
    """Judge a text: tags that say how surely it tells something, and whether it is a lasting wish or a precaution."""
    if role in TOOL_ROLES:
        return ()
    level = bisect_right(TELLING_EDGES, utterance.informativeness(text))
    told = utterance.without_questions(text) if utterance.has_question(text) else text
    if level < MIXED_LEVEL and told != text:  # "My oven is gas, which pan do I need?" tells, too
        level = max(level, min(MIXED_LEVEL, bisect_right(TELLING_EDGES, utterance.informativeness(told))))
    found = [f"{TELLS}{level}"]
    if role == "user" and (is_lasting_wish(text) or (told != text and is_lasting_wish(told))):
        found.append(WISHES)
    if role == "user" and is_precaution(told):
        found.append(WARNS)
    return tuple(found)


def certainty_of(named: Sequence[str]) -> float:
    """How surely a text with these tags tells something, 0..1; one that was never judged tells as much as most do."""
    return next((int(tag[1:]) / len(TELLING_EDGES) for tag in named if tag.startswith(TELLS)), UNJUDGED)


def names_something(tag: str) -> bool:
    """Whether a tag names a thing, and does not judge the text or tell its speaker."""
    return tag not in (ASKS, WISHES, WARNS) and not tag.endswith(":") and not tag.startswith(TELLS)


def kind(text: str, role: str) -> str:
    """`procedural` (steps, code), `semantic` (said to hold for long) or `episodic` (what happened): LANTERN 3.1."""
    if role == "tool":
        return "episodic"
    if ("\n" in text or "```" in text) and _STEPS.search(text):
        return "procedural"
    may_last = any(sign in text for sign in _LASTING_SIGNS)  # mostly not: this takes a tenth of the search
    return "semantic" if may_last and _LASTING.search(text) else "episodic"


def scope_terms(tenant_id: int, conversation_id: int) -> tuple[str, str]:
    """Two full-text tokens that confine a search to one tenant and one conversation; no stored text contains them."""
    return f"{SCOPE_MARK}t{tenant_id}", f"{SCOPE_MARK}c{conversation_id}"


def _runs(text: str) -> Iterator[str]:
    """Runs of word characters and the signs that join them, in composed form; of longer ones the joined words."""
    plain = text if text.isascii() else _composed(text).replace("\u2019", "'")
    for run in _RUN.findall(_without_quoted_breaks(plain)):
        if len(run) <= TERM_CHARS:
            yield run
        else:
            yield from (word for word in re.split(r"\W+", run) if len(word) <= TERM_CHARS)


def _composed(text: str) -> str:
    """A text in composed form, piece by piece: Python sorts a run of marks in the square of its length."""
    return "".join(unicodedata.normalize("NFKC", text[start:stop]) for start, stop in pieces(text, WINDOW_CHARS))


def _without_quoted_breaks(text: str) -> str:
    return _QUOTED_BREAK.sub(lambda found: " " if found[0][0] == "\\" else found[0], text) if "\\" in text else text


def _windows(text: str, window_chars: int) -> Iterator[tuple[int, int]]:
    """Cut a text into windows that overlap, at spaces where there are some."""
    start, overlap_chars = 0, window_chars // OVERLAP_PART
    while start < len(text):
        stop = start + window_chars
        if stop >= len(text):
            yield start, len(text)
            return
        stop = _space_before(text, start + window_chars // 2, stop) or stop
        yield start, stop
        start = _space_before(text, stop - 2 * overlap_chars, stop - overlap_chars) or stop - overlap_chars


def _space_before(text: str, lowest: int, highest: int) -> int:
    """Offset just behind the last white space in text[lowest:highest], 0 if there is none."""
    piece = text[lowest:highest]
    if piece[-1:].isspace():
        return highest
    end = piece.rsplit(None, 1)[-1:]
    return highest - len(end[0]) if end and len(end[0]) < len(piece) else 0


@word_cache(CACHED_WORDS)
def _tags_of(word: str) -> tuple[str, ...]:
    """Tags inside one word, punctuation and all. Longer ones are data."""
    if word.isalpha() and word[1:].islower():
        return ()
    return tuple(match[0].lower() for match in _TAGS.finditer(word)) if len(word) <= MAX_TAG_CHARS else ()


@word_cache(CACHED_WORDS)
def _english_terms_of(word: str) -> tuple[str, ...]:
    """The terms of one word of an English text, punctuation and all."""
    return tuple(term for run in _runs(word) for term in _terms_of(run))


@word_cache(CACHED_WORDS)
def _foreign_terms_of(word: str) -> tuple[str, ...]:
    """The terms of one word of a text in another language."""
    return tuple(term for run in _runs(word) for term in (*_terms_of(run), *_beginning_of(run)))


@word_cache(CACHED_WORDS)
def _terms_of(run: str) -> tuple[str, ...]:
    """The terms of one run of word characters and joiners."""
    if run.isascii() and run.isalpha() and not _HUMP.search(run):
        return (_stem(run.lower()),)
    if _INDIC.search(run):
        return (run,)
    if _CJK.search(run):
        return tuple(run[i : i + 2] for i in range(max(len(run) - 1, 1)))
    found = [run.lower()] if _is_identifier(run) else []
    for word in re.split(r"[^\w']+|_+", run):
        plain = word.lower()
        if plain not in found:
            found.append(_stem(plain).replace("'", ""))
        if _HUMP.search(word):
            found += [_stem(part.lower()) for part in _PART.findall(word) if len(part) > 1]
    return tuple(filter(None, found))


@word_cache(CACHED_WORDS)
def _beginning_of(run: str) -> tuple[str, ...]:
    """The beginning of one longer word, marked; nothing of short words, identifiers and scripts without spaces."""
    if (not run.isalpha() and not _INDIC.search(run)) or _CJK.search(run) or _is_identifier(run):
        return ()
    word = folded(run)
    return (f"#{word[:BEGINNING_CHARS]}",) if len(word) > BEGINNING_CHARS else ()


def _is_identifier(run: str) -> bool:
    """Whether a run names one thing: humps, underscores, letters beside digits, several joiners, a long number."""
    if "'" in run:
        return False
    if run.isdigit():
        return len(run) >= 4 and not _YEAR.fullmatch(run)
    mixed = any(c.isdigit() for c in run) and any(c.isalpha() for c in run) and not _COUNTED.fullmatch(run.lower())
    joined = "_" in run or "@" in run or "\\" in run or max(run.count(c) for c in "/.-") > 1
    return mixed or joined or bool(_HUMP.search(run)) or bool(_DOTTED.fullmatch(run))


_TIME_TERMS = frozenset(term for word in TIMES for term in terms(word))
_STOP_TERMS = frozenset(term for word in STOP_WORDS for term in terms(word))
