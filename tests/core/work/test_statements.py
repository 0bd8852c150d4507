"""Statements in lost messages: decisions, and values under a name."""

import pytest
from palimpsest.core.work.need import LostText
from palimpsest.core.work.statements import (
    binds,
    decisions,
    is_order,
    of_here,
    rejected,
    tells_nothing,
    told_from,
    values,
)

from tests.growing import exponent, repeated


def said(prose: str, role: str = "assistant") -> LostText:
    return LostText(1, role, prose)


@pytest.mark.parametrize(
    "sentence",
    [
        "Decision: keep Postgres.",
        "We settled on the small parser.",
        "We agreed to drop Windows.",
        "We will go with uv.",
        "We'll go with Postgres.",
    ],
)
def test_a_decision_is_the_sentence_that_states_it(sentence: str) -> None:
    assert [one.strip() for one in decisions(said(f"That took long. {sentence} More tomorrow."))] == [sentence]


@pytest.mark.parametrize(
    "sentence",
    [
        "Let's use Redis for the queue.",
        "No Kafka, use NATS.",
        "Change of plan: NATS out, Kafka in.",
        "Instead of JWT we use opaque tokens.",
        "I prefer option B.",
        "Take variant 2, the ring buffer.",
        "OK, Redis then.",
        "Okay, option 2 then!",
        "OK, the row_cache then.",
    ],
)
def test_what_a_user_chooses_is_decided_and_what_an_assistant_proposes_is_not(sentence: str) -> None:
    assert [one.strip() for one in decisions(said(f"Thanks. {sentence}", "user"))] == [sentence]
    assert decisions(said(f"Thanks. {sentence}")) == []


@pytest.mark.parametrize(
    "sentence",
    [
        "I prefer not to decide yet.",
        "I prefer that you ask.",
        "OK, do it then.",
        "Ok, I see then.",
        "Ok, thanks then.",
        "Okay, bye then!",
        "Change of plans.",
        "Let's keep going.",
        "Let's take a break.",
        "Let's take a quick look at the log first.",
        "We'll take a look at the log tomorrow.",
        "Let's keep that in mind.",
        "Let's keep the row cache in mind.",
        "Let's drop it for now.",
        "Take the file and sort it.",
    ],
)
def test_what_a_user_says_in_passing_is_not_decided(sentence: str) -> None:
    assert decisions(said(sentence, "user")) == []


@pytest.mark.parametrize(
    "prose",
    [
        "I decided nothing yet.",
        "Let me look at it.",
        "```\nDecision: keep it.\n```",
        "> We settled on a port.",
        "Do we keep it?",
        "If we go with option 1, old files stay as they are...",
        "I wonder whether we keep the grammar.",
    ],
)
def test_other_sentences_code_and_quotations_state_none(prose: str) -> None:
    assert decisions(said(prose)) == []


def test_a_value_comes_with_what_it_is_of() -> None:
    prose = "It listens on port 7431, with a backoff of 2, 8 and 30 seconds; 12 people came, and it took 0.12 seconds."
    assert values(said(prose)) == ["port 7431", "backoff of 2, 8 and 30 seconds"]


def test_an_amount_without_the_name_of_what_it_is_of_is_no_value() -> None:
    prose = "Repo-map: using 1024 tokens, for the past 7 days minus 2 days, which took 70s. The timeout: 30 seconds."
    assert values(said(prose)) == ["timeout: 30 seconds"]


def test_a_sentence_that_negates_something_or_names_another_machine_is_not_of_this_one() -> None:
    said = (
        "Never run it against the shared database on port 5439. The canary is relay-c2.int on port 9403. Use port 5544."
        " Try http://127.0.0.1:8080."
    )
    assert of_here(said).split("\n") == [" Use port 5544.", " Try http://127.0.0.1:8080."]


def test_a_value_of_a_sentence_that_negates_something_is_not_told_alone() -> None:
    assert values(said("Do not use port 5439. The scratch database is on port 5544.", "user")) == ["port 5544"]


@pytest.mark.parametrize(
    ("prose", "told"),
    [
        ("The limit is 250 ms, not 500.", ["limit is 250 ms"]),
        ("Keep timeout = 30 s, never more.", ["timeout = 30 s"]),
        ("The remote host has a timeout of 30 s.", ["timeout of 30 s"]),
        ("Use port 7431, not 5432.", ["port 7431"]),
        ("Do not use the shared database, port 5439.", []),
        ("The dev host listens on port 7431.", []),
    ],
)
def test_a_value_is_told_unless_its_own_clause_negates_it_and_a_port_only_of_this_machine(
    prose: str, told: list[str]
) -> None:
    assert values(said(prose, "user")) == told


@pytest.mark.parametrize(
    ("prose", "words"),
    [
        ("Not 262144, the phones cannot take it.", ["262144,", "take"]),
        ("Do not touch src/legacy.py", ["src/legacy.py"]),
        ("Please fix the crash when run against tests/data/big_input.csv.", []),
        ("There is no src/row_cache.py yet, please write it.", []),
        ("There is no src/row_cache.py, please write it.", []),
        ("Why does it not use config.yaml?", []),
    ],
)
def test_what_is_used_asked_about_or_missing_is_not_rejected(prose: str, words: list[str]) -> None:
    assert rejected(prose) == words


@pytest.mark.parametrize("text", [said("port 7431", "tool"), said("<notice>port 7431</notice>", "user")])
def test_what_a_tool_or_a_client_wrote_states_nothing(text: LostText) -> None:
    assert values(text) == [] and decisions(text) == []


@pytest.mark.parametrize(
    "prose",
    [
        "Please don't push to origin, I push myself after review.",
        "Tests are run with `./scripts/test -k NAME`, plain pytest picks up the wrong config.",
        "Use port 5544 for the scratch database, 5439 is production.",
        "Keep public function names as they are, the plug-ins import them.",
        "The customer wants the CSV with semicolons and a BOM, because Excel.",
        "Let's go with a ring buffer for the queue.",
    ],
)
def test_what_a_user_orders_forbids_or_decides_is_to_hold(prose: str) -> None:
    assert binds(said(prose, "user"))


@pytest.mark.parametrize(
    "prose",
    [
        "What does commands/doctor/disk.py do?",
        "Have a look at wire/encoding.py, something there seems slow.",
        "Should we keep the queue?",
        "It still does not work, the button is grey.",
        "Next, look at shop/orders3.py and tidy the imports.",
    ],
)
def test_questions_tasks_and_reports_are_not_to_hold(prose: str) -> None:
    assert not binds(said(prose, "user"))


@pytest.mark.parametrize("fragment", [",", "instead of ", "no x, ", "not ", "let's take a "])
def test_how_long_a_message_is_read_grows_with_its_length(fragment: str) -> None:
    assert exponent(lambda text: binds(said(text, "user")), repeated(fragment), 4_000, 16_000) < 1.6  # 2 is quadratic


@pytest.mark.parametrize(
    ("text", "brings_nothing"),
    [
        *(("Seven pass.", True), ("Committed as c77e910.", True), ("All 12 tests pass.", True), ("Done.", True)),
        *(("Deploy target is eu-west-1", False), ("the port is 7431 now", False), ("Deployed to eu-west-1.", False)),
    ],
)
def test_a_report_without_name_value_or_state_tells_nothing_that_lasts(text: str, brings_nothing: bool) -> None:
    assert tells_nothing(text) is brings_nothing


def test_an_order_for_the_next_step_names_nothing() -> None:
    assert all(map(is_order, ("ok. run the tests", "commit this", "fix it and run the tests", "open the PR")))
    assert not any(
        map(
            is_order,
            ("deploy to eu-west-1 please", "tests are run with `make test-fast`", "Where is it?", "open the window"),
        )
    )


@pytest.mark.parametrize(
    ("opening", "rest"),
    [
        ("Write it. ", "Sign as Deb, and never offer refunds in writing."),
        ("Thanks! ok, do that now. ", "From now on answer in German."),
        ("", "I'm vegan. Write it down."),
        ("", "Never do that. Ask me first."),
        ("", "Write it. Always, before you commit."),
        ("", "Hate it. Onions make me ill."),
        ("", "Thanks!"),
    ],
)
def test_a_message_tells_something_behind_thanks_and_orders_for_once(opening: str, rest: str) -> None:
    assert told_from(opening + rest) == len(opening)
