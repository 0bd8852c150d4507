from __future__ import annotations

import itertools
import re
import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st
from palimpsest.core.archive import chunking as digests
from palimpsest.core.archive.chunking import (
    SCOPE_MARK,
    certainty_of,
    identifiers,
    judged,
    kind,
    names,
    query_terms,
    scope_terms,
    split_into_passages,
    tags,
    tells_time,
    terms,
    without_names,
)
from palimpsest.domain import ToolCall
from palimpsest.wire.message import readable

from tests.growing import seconds

PROSE = "The quick brown fox jumps over the lazy dog and runs into the dark green forest. "


def test_short_message_is_one_passage_over_its_whole_text():
    (passage,) = split_into_passages("We moved to Lyon.", "user")
    assert (passage.start, passage.stop) == (0, 17)
    assert "lyon" in passage.terms


def test_blank_message_has_no_passage():
    assert split_into_passages(" \n\t", "user") == ()


def test_windows_overlap_by_about_200_characters_and_end_at_white_space():
    text = PROSE * 60
    passages = split_into_passages(text, "user")
    assert passages[0].start == 0 and passages[-1].stop == len(text)
    for before, after in itertools.pairwise(passages):
        assert 900 < before.stop - before.start <= 1000
        assert text[before.stop - 1].isspace() and text[after.start - 1].isspace()
        assert 200 <= before.stop - after.start <= 400


@given(st.text(alphabet=st.sampled_from("ab \n\u4f60"), max_size=5000))
def test_passages_cover_every_word_of_the_text_in_order(text: str):
    passages = split_into_passages(text, "user")
    covered = {i for p in passages for i in range(p.start, p.stop)}
    assert all(i in covered or text[i].isspace() or not text.split() for i in range(len(text)))
    assert [p.start for p in passages] == sorted({p.start for p in passages})
    assert all(0 <= p.start < p.stop <= len(text) and p.stop - p.start <= digests.WINDOW_CHARS for p in passages)


def test_what_a_client_writes_beside_the_words_of_a_person_is_in_no_passage():
    notes = "<system-reminder>\nEnd commit messages with a trailer.\n</system-reminder>\n"
    text = f"{notes}We decided on port 7431.\n{notes}And on Postgres.<command-name>/cost</command-name>"
    found = [text[p.start : p.stop].strip() for p in split_into_passages(text, "user")]
    assert found == ["We decided on port 7431.", "And on Postgres."]
    assert len(split_into_passages(text, "tool")) == 1, "a file may hold such elements"
    open_ended = "Why is <system-reminder> never closed?"
    assert len(split_into_passages(open_ended, "user")) == 1


def test_of_a_giant_text_both_ends_stay_findable():
    text = "beginning " + "x" * 1_000_000 + " ending"
    passages = split_into_passages(text, "tool")
    assert len(passages) <= digests.MAX_PASSAGES
    assert "begin" in passages[0].terms and "end" in passages[-1].terms


def test_tool_calls_are_read_behind_the_text():
    call = ToolCall("c1", "write_file", '{"path": "src/main.py"}')
    assert readable("Writing.", (call,)) == 'Writing.\nwrite_file({"path": "src/main.py"})'
    assert readable("Writing.") == "Writing."


def test_words_are_stemmed_and_identifiers_are_kept_whole_and_in_parts():
    found = terms("Running tests in src/app/main.py calls parseHTTPResponse and snake_case; see PROJ-123 at v1.2.3")
    assert {"run", "test", "src/app/main.py", "main", "parsehttpresponse", "http", "respons"} <= set(found)
    assert {"snake_case", "snake", "proj-123", "v1.2.3"} <= set(found)


def test_question_and_statement_meet_in_their_terms():
    assert set(query_terms("Where was John's sister hiking?")) == {"john", "sister", "hike"}
    assert set(query_terms("Where was John\u2019s sister hiking?")) <= set(terms("John's sisters hiked there"))


def test_line_breaks_of_quoted_texts_end_words_and_identifiers():
    quoted = r'write_file({"text": "import os\nfrom parse_args import main\n\nLines: 3\tend\\nlast_one"})'
    assert {"parse_args", "line", "last_one"} <= {*terms(quoted)}
    assert not any(term.startswith(("nfrom", "nline", "tend", "nlast")) for term in terms(quoted))
    assert identifiers(r"see:\nfirst_name C:\new\tools.py") == ("first_name", r"c:\new\tools.py")
    assert "main.py" in tags(r"first\nmain.py\nlast")


def test_question_of_function_words_has_no_terms():
    assert query_terms("What was it that they did to you then?") == ()
    assert query_terms("Thanks, that was great! OK, go on.") == ()


def test_scripts_without_spaces_become_pairs_of_characters():
    assert set(terms("\u5317\u4eac\u5927\u5b66")) == {"\u5317\u4eac", "\u4eac\u5927", "\u5927\u5b66"}


def test_long_runs_give_their_words_and_no_data():
    assert "deepest" in terms("https://example.org/" + "/".join(["folder"] * 20) + "/deepest")
    assert terms("x" * 500) == ()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("look at src/app/main.py, please", "src/app/main.py"),
        ("release v1.2.3 broke it", "v1.2.3"),
        ("commit a1b2c3d4e", "a1b2c3d4e"),
        ("ticket 48213", "48213"),
        ("set MAX_RETRIES", "max_retries"),
        ("at localhost:8080.", "localhost:8080"),
    ],
)
def test_identifier_is_recognised(text: str, expected: str):
    assert expected in identifiers(text)
    assert (identifiers(text, {expected}), identifiers(text, ())) == ((expected,), ())
    assert expected in terms(text)


@pytest.mark.parametrize("text", ["in May 2023", "on the 2nd", "e.g. he/she", "at 7:30pm", "well-known", "don't", "17"])
def test_everyday_words_and_amounts_are_no_identifiers(text: str):
    assert identifiers(text) == ()


@pytest.mark.parametrize(
    ("text", "tag"),
    [
        ("see https://example.org/a?b=1.", "https://example.org/a?b=1"),
        ("edit /etc/nginx/nginx.conf", "/etc/nginx/nginx.conf"),
        ("the README.md", "readme.md"),
        ("raised TypeError:", "typeerror"),
        ("got ECONNREFUSED", "econnrefused"),
        ("error TS2345", "ts2345"),
        ("PROJ-12", "proj-12"),
        ("fixes #77", "#77"),
        ("DATABASE_URL=x", "database_url"),
        ("pass --dry-run", "--dry-run"),
        ("version 3.11.4", "3.11.4"),
        ("on localhost:8484", "8484"),
        ("$ git rebase main", "git_rebase"),
        ("run `npm install left-pad`", "npm_install"),
        ("class Parser(Base):", "parser"),
        ("call load() first", "load"),
        ("commit 9f8e7d6c", "9f8e7d6c"),
        ("8 May 2023\nAnn: Hello!", "ann:"),
        ("Ann: How are you?", "?"),
    ],
)
def test_tag_is_found_by_pattern(text: str, tag: str):
    assert tag in tags(text)


def test_long_text_that_ends_with_a_question_does_not_count_as_asking():
    assert "?" not in tags("We have found the fault. " * 20 + "Shall I go on?")


def test_prose_has_no_tags():
    assert tags(PROSE + "I moved to Lyon last spring, and I'm happy.") == ()


@given(st.text(max_size=300))
def test_no_text_can_forge_a_scope_or_hold_white_space_in_a_term(text: str):
    for term in terms(SCOPE_MARK + text + SCOPE_MARK + "t1"):
        assert SCOPE_MARK not in term and term.split() == [term]
    assert all(tag.split() == [tag] for tag in tags(text))


def test_scope_terms_are_single_tokens_of_the_full_text_index():
    db = sqlite3.connect(":memory:")
    db.execute("CREATE VIRTUAL TABLE t USING fts5(tokens, tokenize = 'unicode61 remove_diacritics 0')")
    for rowid, (tenant, conversation) in enumerate([(1, 1), (1, 11), (11, 1)], start=1):
        db.execute("INSERT INTO t(rowid, tokens) VALUES (?, ?)", (rowid, " ".join(scope_terms(tenant, conversation))))
    tenant, conversation = scope_terms(1, 1)
    assert db.execute("SELECT rowid FROM t WHERE t MATCH ?", (f'"{tenant}" AND "{conversation}"',)).fetchall() == [(1,)]
    db.close()


@pytest.mark.parametrize(
    ("text", "role", "expected"),
    [
        ("1. Open the box\n2. Take it out\n", "user", "procedural"),
        ("My sister is a nurse", "user", "semantic"),
        ("We met at the station", "user", "episodic"),
        ("1. Open the box\n2. Take it out\n", "tool", "episodic"),
    ],
)
def test_kind_follows_from_how_it_is_said(text: str, role: str, expected: str):
    assert kind(text, role) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("What did Ann tell Ben about Ann?", ("Ann", "Ben")),
        ("When is Ann's birthday? Ben asked.", ("Ann",)),
        ("Where does Élodie live?", ("Élodie",)),
        ("What did Ann do on Monday, May 3?", ("Ann",)),
        ("What does getUser in FooBar say to the API, then to README.md?", ()),
        ("东京 在 哪里?", ()),
    ],
)
def test_capitalised_words_inside_sentences_are_names(text: str, expected: tuple[str, ...]):
    assert names(text) == expected


def test_months_weekdays_and_years_tell_time():
    assert [term for term in terms("Where was Tim in November 2023, the Tuesday before?") if tells_time(term)] == [
        *terms("November 2023 Tuesday")
    ]


def test_a_text_without_its_names_says_the_rest():
    assert without_names("When is Ann's birthday, and what does Ben bring?").split() == (
        ["When", "is", "birthday,", "and", "what", "does", "bring?"]
    )
    assert without_names("What does the 东京 office say?") == "What does the 东京 office say?"


@given(st.text(st.sampled_from("AbÉé 东.?'s"), max_size=60))
def test_a_text_without_its_names_has_none_of_those_words(text: str):
    left = re.findall(r"\w+", without_names(text))
    assert len(left) <= len(re.findall(r"\w+", text)) and (names(text) or without_names(text) == text)


def test_a_long_run_of_backslashes_costs_no_more_than_words() -> None:
    words = seconds(lambda text: split_into_passages(text, "user"), "some words of text " * 5_000)
    assert seconds(lambda text: split_into_passages(text, "user"), "\\" * 95_000) < 2 * words


def test_other_languages_are_found_by_the_beginnings_of_their_words() -> None:
    told, asked = "Meine Schwester heiratet im August.", "Wann hat meine Schwester geheiratet?"
    assert "#schwe" in terms(told) and "#schwe" in query_terms(asked)
    assert not {"wann", "hat", "meine"}.intersection(query_terms(asked)), "function words say nothing"
    assert query_terms("a dlaczego tak?") == (), "nor do those that English has, too"
    assert terms("मेरी नौकरी बैंक में है")[1] == "नौकरी", "vowel signs belong to their words"


@given(st.text(st.sampled_from("ab Z0_-./:\\\"'@+#\x0b\x1c\n\t"), max_size=120))
def test_a_letter_beyond_ascii_changes_no_term_but_its_own(text: str) -> None:
    assert (*terms(text), "\u03c9") == terms(f"{text} \u03c9")


def test_words_that_are_remembered_are_bounded_together() -> None:
    caches = [value for value in vars(digests).values() if hasattr(value, "cache_parameters")]
    assert caches and sum(cache.cache_parameters()["maxsize"] for cache in caches) <= 100_000


def test_a_word_is_a_term_up_to_eighty_characters_within_a_longer_run_too() -> None:
    longest, longer = "a" * 80, "b" * 81
    assert longest in terms(f"{longest}/{'c' * 30}") and longer not in terms(f"{longer}/{'c' * 30}")
    assert longest in terms(longest) and longer not in terms(longer)


def test_a_name_with_a_capital_inside_is_a_tag_wherever_that_stands() -> None:
    assert {"iphone", "ebay"} <= {*tags("My iPhone and an eBay listing")}
    assert tags("Mine and another listing") == ()


def test_a_message_that_asks_tells_what_it_says_besides_but_less_surely_than_one_that_only_tells() -> None:
    asking = "Which pan do I need for the oven at home?"
    mixed = "I prefer shoes with a sleek look in neutral colors, do you have any ideas for me?"
    telling = "My shoe size is 43.5, narrow fit."
    levels = [certainty_of(judged(text, "user")) for text in (asking, mixed, telling)]
    assert levels[0] < levels[1] < 0.5 < levels[2]
