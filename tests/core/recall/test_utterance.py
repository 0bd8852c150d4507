"""What an utterance is, told from its words alone, in 21 languages."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import mean

import pytest
from hypothesis import given
from hypothesis import strategies as st
from palimpsest.core.recall.utterance import (
    ARTICLES,
    PERSONAL,
    POSSESSIVES,
    TELLING,
    _count_words,
    described_things,
    folded,
    informativeness,
    kin,
    language,
    personal,
    question_form,
    read_utterance,
    says_nothing,
    spoken_words,
    stating,
    without_questions,
    words,
)

LINES: dict[str, dict[str, list[str]]] = json.loads(
    Path(__file__).with_name("utterances.json").read_text(encoding="utf-8")
)
LANGUAGES = sorted(LINES)


@pytest.mark.parametrize("code", LANGUAGES)
def test_the_language_of_short_lines_is_mostly_known(code: str) -> None:
    lines = [line for kind in LINES[code].values() for line in kind]
    assert mean(language(line) == code for line in lines) >= 0.65


@pytest.mark.parametrize("code", LANGUAGES)
def test_no_question_and_no_task_is_taken_for_small_talk(code: str) -> None:
    assert not [line for line in LINES[code]["general"] if says_nothing(line)]
    assert mean(read_utterance(line).is_small_talk for line in LINES[code]["past"]) <= 0.1


@pytest.mark.parametrize("code", LANGUAGES)
def test_thanks_greetings_and_assent_are_small_talk_where_every_word_of_them_is(code: str) -> None:
    assert mean(read_utterance(line).is_small_talk for line in LINES[code]["small"]) >= 0.3
    assert not [line for line in LINES[code]["past"] if says_nothing(line) and read_utterance(line).go_on]


@pytest.mark.parametrize(
    ("line", "is_nothing"),
    [
        ("Yes, please proceed with the cancellation. Thank you!", True),
        ("I'm fine with that. Please go ahead with the changes.", True),
        ("Go on with step 3, please.", False),
        ("Could you please go on and look at it in the other folder?", False),
        ("Continue with the German translation of chapter two.", False),
        ("Yes, please go ahead with the changes\uff1f", False),
    ],
)
def test_who_only_agrees_to_go_on_says_nothing(line: str, is_nothing: bool) -> None:
    assert says_nothing(line) is is_nothing and not read_utterance(line).is_small_talk


HELPED = """
nvm, figured it out|no worries, you're a star|danke dir, hat super geklappt|merci mille fois, ça marche
mil gracias, me has ayudado mucho|obrigadíssimo, ajudou mesmo muito|bedankt, gelukt!|díky moc, pomohlo
wielkie dzięki, pomogło|teşekkürler, yaradı|спасибо огромное, выручила|शुक्रिया, मज़ा आया|شكرًا جزيلًا، رائع
助かりました、感謝します|넵 덕분에 큰 도움 됐어요|没事
"""  # noqa: RUF001


@pytest.mark.parametrize("line", HELPED.replace("\n", "|").strip("|").split("|"))
def test_who_says_that_it_helped_or_to_let_it_be_asks_for_nothing(line: str) -> None:
    assert read_utterance(line).is_small_talk


@pytest.mark.parametrize("code", LANGUAGES)
def test_who_asks_for_something_told_before_asks_otherwise_than_who_asks_what_anybody_could(code: str) -> None:
    past, general = (mean(map(personal, LINES[code][kind])) for kind in ("past", "general"))
    assert past > general + 1


@pytest.mark.parametrize("code", LANGUAGES)
def test_nothing_of_all_this_tells_anything_worth_keeping(code: str) -> None:
    lines = [line for kind in LINES[code].values() for line in kind]
    assert mean(informativeness(line) > 0 for line in lines) <= 0.1


@pytest.mark.parametrize(
    ("more", "less"),
    [
        ("My shoe size is 43.5, narrow fit.", "What shoe size do I have?"),
        ("We decided to move the review to Thursday at 15:30.", "When is the review?"),
        ("Meine Schwester heiratet im August in Tromsø.", "Wann heiratet meine Schwester?"),
        ("我老婆怀孕五个月了，医生说一切正常。", "谢谢"),  # noqa: RUF001
        ("I gave up coffee in January.", "Write me a poem about coffee."),
    ],
)
def test_statements_tell_more_than_questions_tasks_and_thanks(more: str, less: str) -> None:
    assert informativeness(more) > informativeness(less)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("I prefer neutral colors like gray, do you have any ideas for me?", "I prefer neutral colors like gray"),
        ("Lena is allergic to hazelnuts. Which cake could I bake?", "Lena is allergic to hazelnuts."),
        ("Wer kommt alles? Lena verträgt keine Nüsse.", "Lena verträgt keine Nüsse."),
        ("I write in the mornings and would a schedule help me?", "I write in the mornings"),
        ("Which port does it use?", "Which port does it use?"),
        ("Does my code from v3.5 still run, and on what?", "Does my code from v3.5 still run, and on what?"),
        ("My code is of v3.5, does it still run?", "My code is of v3.5"),
        ("我喜欢灰色。你有什么建议？", "我喜欢灰色。"),  # noqa: RUF001
        ("The port is 5433.", "The port is 5433."),
    ],
)
def test_a_text_without_its_questions_is_what_it_tells_besides_and_one_that_only_asks_stays(
    text: str, told: str
) -> None:
    assert without_questions(text) == told


def test_words_are_folded_so_that_accents_make_no_difference() -> None:
    assert folded("Où ÉTAIT l'hôtel?") == "ou etait l'hotel?"
    assert words("Straße, słońce") == ["strasse", "slonce"]
    assert words("मेरी बीवी") == ["मेरी", "बीवी"], "vowel signs belong to their words"


@given(st.text(st.characters(codec="ascii")))
def test_a_letter_beyond_ascii_changes_no_other_word(text: str) -> None:
    assert [*words(text), "ω"] == words(f"{text} ω")


def test_an_utterance_without_words_is_english_small_talk_of_nothing() -> None:
    of = read_utterance("")
    assert (of.language, of.words, of.own, of.is_small_talk) == ("en", 0, 0, False)


def test_every_feature_has_a_weight() -> None:
    assert len(question_form("Which port?")) + 1 == len(PERSONAL)
    assert len(stating("It is 9417.")) + 1 == len(TELLING)


def test_only_the_beginning_of_a_long_text_is_read() -> None:
    assert read_utterance("a " * 10_000 + "my") == read_utterance("a " * 300)


def test_a_reading_keeps_no_more_of_a_text_than_it_reads() -> None:
    long = "one long message " * 100_000
    read_utterance(long)
    known = _count_words.cache_info().hits
    read_utterance(long + "that ends otherwise")
    assert _count_words.cache_info().hits == known + 1, "what is not read is no part of the key"


@pytest.mark.parametrize(
    ("text", "owned"),
    [
        ("Where can I take my father for his birthday?", [("father",)]),
        ("Help me choose lights for my new bike, please.", [("new", "bike")]),
        ("How do I read a CSV file?", []),
        ("Was backe ich zum Geburtstag meiner Tochter?", [("Tochter",)]),
        ("Que puis-je offrir à ma sœur ?", [("sœur",)]),
        ("Что подарить моей сестре?", [("сестре",)]),
    ],
)
def test_the_words_behind_a_possessive_name_what_is_the_speakers(text: str, owned: list[tuple[str, ...]]) -> None:
    code = language(text)
    assert described_things(spoken_words(text), code, POSSESSIVES[code]) == owned


def test_the_words_behind_an_article_name_what_is_known() -> None:
    said = spoken_words("Restart the staging server, then the router.")
    assert described_things(said, "en", ARTICLES["en"]) == [("staging", "server"), ("router",)]
    assert described_things(spoken_words("Was ist im Keller?"), "de", ARTICLES["de"]) == [("Keller",)]


def test_all_words_for_a_relative_stand_for_it() -> None:
    assert kin("Dad", "en") == kin("father", "en") != kin("mum", "en")
    assert {"husband", "wife"} <= kin("partner", "en") and "wife" not in kin("husband", "en")
    assert kin("Mere", "fr") == kin("maman", "fr") and kin("bike", "en") == frozenset()
