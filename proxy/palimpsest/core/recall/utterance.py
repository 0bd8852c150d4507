"""
The analysis of one utterance without a model: its language, and whether it asks, tells or is small talk.

People who ask for what they once told say "my", "did we", "which", "again"; who asks what anybody could, says "a", "how
do I", "explain". Function words of that kind are few, in every language, and tell the two apart where the nearness of
meanings cannot. The weights below are logistic regressions over questions, statements and small talk of 21 languages;
with each language and set left out in turn, the area under the curve is .74 to .98 (median .91) for `personal` and .93
to 1.0 (median .99) for `informativeness`.
"""

from __future__ import annotations

import math
import re
import struct
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from palimpsest.core.recall import languages
from palimpsest.domain.frozen import frozen
from palimpsest.domain.word_cache import word_cache
from palimpsest.wire.pieces import SPACED_AND_LOWER

READ_CHARS = 600  # who wants something says so at the beginning; the rest is material
LONG_CHARS = 200  # a longer question brings material of its own
STATEMENT_CHARS = 350  # a longer statement is a text to work on
CHARS_PER_WORD = 2  # where no spaces part them
# Log-odds, a probability of .7. Of 614 requests 3 tell as much by their form, of 743 statements 262: "My son Tobias has
# his recital on 21 June" needs nothing of what else was told of a son.
LEAST_SURELY_TELLING = 0.85
# Share of words of small talk and grammar, where some ask to go on. Of 17,600 messages of up to 400 characters in ten
# data sets, 22 have as many and are no small talk: agreements of an airline's customers (13), and thanks for the most.
LEAST_AGREEING = 0.8
NAMING = 2  # words behind "my" or "the" that may name the thing: "my new bike"
VOTES = 2  # of a word that stands for a language; one of small talk has half as many, as languages share those
COUNTER_BITS = 16  # of a tally: an unsigned short
CACHED = 4096  # utterances; a question is read by several rules
ENGLISH: Final = "en"

FUNCTION, OWN, BACK, SMALL, WISH, PARTICULAR, GENERAL, GO_ON = (1 << bit for bit in range(8))
_TABLES = {
    FUNCTION: languages.FUNCTION,
    OWN: languages.OWN,
    BACK: languages.BACK,
    SMALL: languages.SMALL,
    WISH: languages.WISH,
    PARTICULAR: languages.PARTICULAR,
    GENERAL: languages.GENERAL,
    GO_ON: languages.GO_ON,
}
# Letters that one language has and its neighbours have not: short texts often hold no other sign of it.
_LETTERS = {
    **{"cs": "řěů", "da": "æ", "de": "ßäöü", "es": "ñ¿¡", "hu": "őű", "pl": "łąęśżź", "pt": "ãõ", "ro": "țșăţş"},
    **{"ru": "ыэъё", "sv": "åä", "tr": "ığş", "uk": "іїєґ", "vi": "đơư"},
}
_SCRIPTS = (
    ("ja", re.compile("[\u3040-\u30ff]")),
    ("ko", re.compile("[\uac00-\ud7af]")),
    ("th", re.compile("[\u0e00-\u0e7f]")),
    ("zh", re.compile("[\u4e00-\u9fff]")),
)
_SPELT = str.maketrans({"\u2019": "'", "ß": "ss", "ı": "i", "ø": "o", "æ": "ae", "ł": "l", "đ": "d"})
_ACCENTS = re.compile("[\u0300-\u036f]+")
_WORD = re.compile(r"[^\W_]+(?:[\u0900-\u0dff]+[^\W_]*)*")  # vowel signs of Indic scripts are no letters to Python
_SENTENCE = re.compile(r"[^.!?\u3002\uff01\uff1f\u061f\n]+[.!?\u3002\uff01\uff1f\u061f]*")
QUESTION_MARKS = ("?", "\uff1f", "\u061f")
_FULL_STOPS = (".", "!", "\u3002", "\uff01")
_WHOLE_SENTENCE = re.compile(  # "v3.5" and addresses have dots of their own
    r"(?:[^.!?\u3002\uff01\uff1f\u061f\n]|[.!?](?=\S))+[.!?\u3002\uff01\uff1f\u061f]*"
)
_ASKING = "can|could|would|will|do|does|did|is|are|should|shall|may|what|how|which|why|who|where|when|any|have"
_ASKS_FIRST = re.compile(rf"(?i)\s*(?:{_ASKING})\b")
_ASKS_FROM = re.compile(  # where a question begins behind a statement
    rf"(?i)(?:[,;]|\b(?:so|and|but|or)\b)\s*(?:(?:so|and|but|or|also|then|maybe) ){{0,3}}(?:{_ASKING})\b"
)
_QUOTED = re.compile('["\u201c\u00ab\u300c]')
_MATERIAL = re.compile('["\u201c\u00ab\u300c`{]')
_DIGIT = re.compile(r"\d")
_NO_LETTERS = re.compile(r"[\s\W]+")
_NAME = re.compile(r"(?<=[^\s.!?:]\s)[^\W\d_a-z][^\W\d_A-Z]+")  # a capitalised word inside a sentence

# Weights of logistic regressions, per unit of the feature of that name; "bias" is the constant.
PERSONAL = {
    **{"own": 1.61, "back": 2.26, "small": 0.01, "particular": 1.27, "general": -1.0, "function": 1.43},
    **{"log_words": 0.37, "long": -2.69, "name": -0.29, "quotes": -4.06, "small_talk": -3.35, "bias": -2.68},
}
TELLING = {
    **{"own": 1.19, "own_twice": 0.36, "back": 0.93, "small": -0.06, "particular": -0.04, "general": -1.31},
    **{"function": -1.22, "log_words": 2.41, "asks": -2.37, "only_asks": -1.87, "digit": 1.86, "name": 0.45},
    **{"material": -2.46, "wish": 0.45, "opens_own": 0.63, "opens_general": -1.83, "long": -3.03, "small_talk": -1.62},
    **{"full_stop": 2.48, "not_english": 1.12, "lines": -5.34, "colon": -0.56, "bias": -8.2},
}


@frozen
class Utterance:
    """
    What the words of one text are, as far as `languages` knows them.

    Counts are of words, or of entries found where a language writes no spaces; shares are 0..1 of all words. `opens`
    says of which kinds (bits as `OWN`) the first word is.
    """

    language: str
    words: float
    own: int
    back: int
    particular: int
    general: int
    wish: int
    go_on: int
    small_share: float
    function_share: float
    opens: int

    @property
    def is_small_talk(self) -> bool:
        """Whether every word thanks, greets, agrees, laughs or asks to go on."""
        return self.small_share > 0.99


def folded(text: str) -> str:
    """Lower case, without accents and umlauts on Latin, Greek and Cyrillic letters."""
    if text.isascii():
        return text.lower()
    plain = _ACCENTS.sub("", text.lower().translate(_SPELT))  # to sort a run of them takes time squared
    spelt = unicodedata.normalize("NFKD", plain)
    return unicodedata.normalize("NFC", _ACCENTS.sub("", spelt))


def words(text: str) -> list[str]:
    """The words of a text in lower case and without accents."""
    if text.isascii():  # as below, in a quarter of the time
        return text.encode().translate(SPACED_AND_LOWER).decode().split()
    return _WORD.findall(folded(text))


def language(text: str) -> str:
    """ISO 639-1 code of the language, English where nothing tells."""
    return read_utterance(text).language


def described_things(said: Sequence[str], code: str, openers: Collection[str]) -> list[tuple[str, ...]]:
    """The words behind each of these openers, folded, as they may name a thing: "new" and "bike" of "my new bike"."""
    idle = function_words(code)
    found: list[tuple[str, ...]] = []
    left = 0
    for word in said:
        plain = folded(word)
        left = NAMING if plain in openers else 0 if plain in idle else left - 1
        if plain in openers:
            found.append(())
        elif left >= 0 and plain not in idle:
            found[-1] += (word,)
    return [named for named in found if named]


def spoken_words(text: str) -> list[str]:
    """The words of a text as they are written."""
    return [*_WORD.findall(text[:READ_CHARS])]


def kin(word: str, code: str) -> frozenset[str]:
    """All words of a language for the relative that a word stands for, lower case; nothing for any other word."""
    return _KIN.get((code, folded(word)), frozenset())


def is_unspaced(code: str) -> bool:
    """Whether the language is written without spaces between words."""
    return code in languages.UNSPACED["own"]


def function_words(code: str) -> frozenset[str]:
    """Folded words of a language that carry no meaning of their own."""
    return _FUNCTION_WORDS.get(code, frozenset())


def read_utterance(text: str) -> Utterance:
    """The reading of a text's first 600 characters."""
    return _count_words(text[:READ_CHARS])  # the cache keeps no more of a text than is read


@word_cache(CACHED)
def _count_words(text: str) -> Utterance:
    """Count the kinds of words in a text, in the language that most of them vote for."""
    is_ascii = text.isascii()
    for code, letters in () if is_ascii else _SCRIPTS:
        if letters.search(text):
            return _unspaced(code, text)
    found = words(text)
    votes = _summed(found, _VOTES, _COUNTERS_OF_LANGUAGES)
    if not is_ascii:
        lowered = text.lower()
        for code, letters_of in _LETTERS.items():
            votes[_CODES.index(code)] += VOTES * sum(letter in lowered for letter in letters_of)
    at = votes.index(max(votes))  # the first of several: English
    kinds, counts = _OF_LANGUAGE[at]
    own, back, particular, general, wish, go_on, small, function = _summed(found, counts, _COUNTERS_OF_KINDS)
    count = max(len(found), 1)
    return Utterance(
        language=_CODES[at],
        words=len(found),
        own=own,
        back=back,
        particular=particular,
        general=general,
        wish=wish,
        go_on=go_on,
        small_share=small / count,
        function_share=function / count,
        opens=kinds.get(found[0], 0) if found else 0,
    )


def personal(text: str) -> float:
    """Log-odds that an utterance asks for something that was told before, from its form alone; -6 to 5."""
    return _log_odds(question_form(text), PERSONAL, -6.0, 5.0)


def informativeness(text: str) -> float:
    """Log-odds that a person's words tell something worth keeping, and ask for nothing; -5 to 5."""
    return _log_odds(stating(text), TELLING, -5.0, 5.0)


def is_telling(text: str) -> bool:
    """Whether a text surely tells something: who does asks for nothing."""
    return informativeness(text) >= LEAST_SURELY_TELLING


def has_question(text: str) -> bool:
    """Whether a text has a question mark anywhere."""
    return any(mark in text for mark in QUESTION_MARKS)


def without_questions(text: str) -> str:
    """What a text says beside its questions: "I prefer neutral ones" of "I prefer neutral ones, do you have any?"."""
    told = ""
    for sentence in _WHOLE_SENTENCE.findall(text[:READ_CHARS]):
        if not sentence.endswith(QUESTION_MARKS):
            told += sentence
        elif not _ASKS_FIRST.match(sentence) and (asks := _ASKS_FROM.search(sentence)):
            told += sentence[: asks.start()]
    return told.strip() or text


def says_nothing(text: str) -> bool:
    """Whether a text is small talk, or only agrees to go on: "Yes, please proceed with the upgrade"."""
    said = read_utterance(text)
    agrees = said.go_on > 0 and said.small_share >= LEAST_AGREEING
    return said.is_small_talk or (agrees and not _DIGIT.search(text) and not has_question(text))


def question_form(text: str) -> tuple[float, ...]:
    """The form of a question, in the order of `PERSONAL`."""
    of = read_utterance(text)
    most = 1 if is_unspaced(of.language) else 2  # where words are not parted, one entry stands in several words
    return (
        float(min(of.own, most)),
        float(min(of.back, 1)),
        of.small_share,
        float(min(of.particular, 1)),
        float(min(of.general, most)),
        of.function_share,
        math.log1p(of.words),
        float(len(text) > LONG_CHARS),
        float(bool(_NAME.search(text[:READ_CHARS]))),
        float(bool(_QUOTED.search(text[:READ_CHARS]))),
        float(of.is_small_talk),
    )


def stating(text: str) -> tuple[float, ...]:
    """The form of a statement, in the order of `TELLING`."""
    of = read_utterance(text)
    text = text[:READ_CHARS].strip()
    sentences = [one.strip() for one in _SENTENCE.findall(text) if one.strip()]
    asked = sum(one.endswith(QUESTION_MARKS) for one in sentences)
    return (
        float(of.own > 0),
        float(of.own > 1),
        float(of.back > 0),
        of.small_share,
        float(of.particular > 0),
        float(min(of.general, 2)),
        of.function_share,
        math.log1p(of.words),
        float(asked > 0),
        float(asked == len(sentences)),
        float(bool(_DIGIT.search(text))),
        float(bool(_NAME.search(text))),
        float(bool(_MATERIAL.search(text))),
        float(of.wish > 0),
        float(bool(of.opens & OWN)),
        float(bool(of.opens & (GENERAL | PARTICULAR))),
        float(len(text) > STATEMENT_CHARS),
        float(of.is_small_talk),
        float(text.endswith(_FULL_STOPS)),
        float(of.language != ENGLISH),
        float("\n" in text),
        float(text.endswith((":", "\uff1a"))),
    )


def _log_odds(form: tuple[float, ...], weights: Mapping[str, float], least: float, most: float) -> float:
    odds = sum(weight * value for weight, value in zip(weights.values(), (*form, 1.0), strict=True))
    return min(max(odds, least), most)


def _summed(found: Sequence[str], tallies: Mapping[str, int], counters: struct.Struct) -> list[int]:
    """The sums of the tallies of these words."""
    tally = sum(filter(None, map(tallies.get, found)))
    return list(counters.unpack(tally.to_bytes(counters.size, "little")))


def _unspaced(code: str, text: str) -> Utterance:
    """The reading of a text in a script without spaces: entries are looked for anywhere in it."""
    joined = _NO_LETTERS.sub("", text)
    kinds = {kind: entries[code] for kind, entries in languages.UNSPACED.items()}

    def holding(kind: str) -> int:
        return sum(entry in joined for entry in kinds[kind].split())

    rest = joined
    for entry in sorted(f"{kinds['small']} {kinds['go_on']}".split(), key=len, reverse=True):
        rest = rest.replace(entry, "")
    return Utterance(
        language=code,
        words=len(joined) / CHARS_PER_WORD,
        **{kind: holding(kind) for kind in ("own", "back", "particular", "general", "wish", "go_on")},
        small_share=1 - len(rest) / max(len(joined), 1),
        function_share=0.5,  # not told apart
        opens=0,
    )


_OF_WORDS: dict[str, dict[str, int]] = {}  # kinds by language
for _kind, _table in _TABLES.items():
    for _code, _entries in _table.items():
        for _entry in words(_entries):
            _of = _OF_WORDS.setdefault(_entry, {})
            _of[_code] = _of.get(_code, 0) | _kind
_FUNCTION_WORDS = {
    code: frozenset(word for word, known in _OF_WORDS.items() if known.get(code, 0) & (FUNCTION | OWN))
    for code in languages.FUNCTION
}
POSSESSIVES, ARTICLES = (
    {code: frozenset(words(table.get(code, ""))) for code in languages.FUNCTION | languages.UNSPACED["own"]}
    for table in (languages.POSSESSIVE, languages.ARTICLE)
)
_KIN: dict[tuple[str, str], frozenset[str]] = {}
for _code, _entries in languages.KIN.items():
    for _relative in map(str.split, _entries.split(",")):
        for _entry in _relative:
            _KIN[_code, folded(_entry)] = _KIN.get((_code, folded(_entry)), frozenset()) | {*_relative}
# The same as tallies: integers with a counter for each language, or each kind, so that one addition counts a word in
# all of them. A text that is read has no more than 600 words.
_CODES = tuple(languages.FUNCTION)
_COUNTED = (OWN, BACK, PARTICULAR, GENERAL, WISH, GO_ON, SMALL | FUNCTION | OWN | GO_ON, FUNCTION)


_COUNTERS_OF_LANGUAGES, _COUNTERS_OF_KINDS = (struct.Struct(f"<{len(these)}H") for these in (_CODES, _COUNTED))


def _tally_of(bits: int) -> int:
    return sum(bool(bits & counted) << (COUNTER_BITS * at) for at, counted in enumerate(_COUNTED))


def _votes_of(kinds: int) -> int:
    return VOTES if kinds & (FUNCTION | OWN) else VOTES // 2 if kinds & SMALL else 0


_SHIFTS = {code: COUNTER_BITS * at for at, code in enumerate(_CODES)}
_VOTES = {word: sum(_votes_of(of[code]) << _SHIFTS[code] for code in of) for word, of in _OF_WORDS.items()}
_KINDS = [{word: of[code] for word, of in _OF_WORDS.items() if code in of} for code in _CODES]
_TALLIES = {bits: _tally_of(bits) for bits in {bits for kinds in _KINDS for bits in kinds.values()}}
_OF_LANGUAGE = [(kinds, {word: _TALLIES[bits] for word, bits in kinds.items()}) for kinds in _KINDS]
"""For each language the kinds of its words, and their tallies."""
