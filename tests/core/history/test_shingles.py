from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from palimpsest.core.history.shingles import MAX_WORDS, shingles

from tests.core.driving import KEY, prose

SUMMARY = prose(60, "summary")


def shared(one: str, other: str) -> int:
    return len({*shingles(one, KEY)} & {*shingles(other, KEY)})


def test_text_echoes_in_itself():
    assert shared(SUMMARY, SUMMARY) == len(shingles(SUMMARY, KEY)) > 5


@pytest.mark.parametrize(
    "heard",
    [
        f"Here is a summary of the conversation to date:\n\n{SUMMARY}\n\nGo on from there.",
        f"<state_snapshot>\n<goal>{SUMMARY}</goal>\n</state_snapshot>",
        SUMMARY.upper().replace(" ", "\n\n  "),
        SUMMARY.replace(" ", ", "),
        SUMMARY.replace(" ", "<b> </b>", 3),
    ],
    ids=["wrapped", "tagged", "in other case and white space", "punctuated", "tagged inside"],
)
def test_wrapping_tags_case_white_space_and_punctuation_do_not_count(heard: str):
    assert shared(SUMMARY, heard) == len(shingles(SUMMARY, KEY))


def test_trimmed_text_still_echoes():
    assert shared(SUMMARY, SUMMARY[: len(SUMMARY) // 2]) >= 2


def test_other_words_do_not_echo():
    assert shared(SUMMARY, prose(4000, "something else")) == 0


def test_words_in_another_order_do_not_echo():
    assert shared(SUMMARY, " ".join(reversed(SUMMARY.split()))) == 0


@pytest.mark.parametrize("text", ["", "seven words are not enough to quote", "…!?", "<a>" * 50])
def test_fewer_than_eight_words_leave_no_trace(text: str):
    assert shingles(text, KEY) == []


def test_another_key_gives_other_prints():
    assert not {*shingles(SUMMARY, KEY)} & {*shingles(SUMMARY, b"another key")}


def test_letters_beyond_ascii_count():
    text = "Fünf müde Jäger tränken überm Hügel ihre Gäule, ehe der Bär zurück in die Höhle kömmt. " * 2
    assert shared(text, f"«{text}»") == len(shingles(text, KEY)) > 0


def test_only_the_start_of_an_endless_text_is_read():
    endless = " ".join(f"w{n}" for n in range(MAX_WORDS + 1000))
    assert shingles(endless, KEY) == shingles(" ".join(endless.split()[:MAX_WORDS]), KEY)


@given(st.text(max_size=300))
def test_prints_are_distinct_and_fit_a_signed_64_bit_column(text: str):
    prints = shingles(text * 3, KEY)
    assert len(prints) == len(set(prints)) and all(0 <= fingerprint < 2**63 for fingerprint in prints)
