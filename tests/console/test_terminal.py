import io
from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from palimpsest.console.terminal import excerpt, explanation, safe, search_results
from palimpsest.domain import Candidate, Json, Memory, Recalled
from rich.console import Console, RenderableType

TOLD: dict[str, Any] = {
    "event": "compaction:summary",
    "role": "main",
    "evidence": ["12 old messages are gone", "the summary echoes an earlier answer"],
    "pressure": {"prompt_tokens": 12_000, "window_tokens": 128_000, "ratio": 0.09375, "tier": "calm"},
    "note": None,
    "kind": "restore",
    "budget": {"chars": 6000, "passage_chars": 1000},
    "query": {"text": "which port does the broker listen on?", "context": "broker"},
    "gate": {"admitted": True, "reason": "cosine 0.61"},
    "elapsed_ms": {"recall": 12.5},
    "candidates": [
        {
            "memory": 1,
            "occurrence": 10,
            "position": 2,
            "score": 0.0325,
            "signals": {"dense": [1, 0.61], "text": [3, 8.2]},
            "packed": True,
            "why": "",
        },
        {
            "memory": 2,
            "occurrence": 11,
            "position": 3,
            "score": 0.0161,
            "signals": {"importance": [1, 0.5], "dense": [0, 0.0], "speaker": [1, 0.0]},
            "packed": False,
            "why": "budget",
        },
    ],
    "added": {"tokens": 1502, "share": 0.125},
    "block": {"chars": 5811, "tokens": 1402, "occurrences": [10]},
}


TURN: dict[str, Any] = {"key": "t-0a", "number": 5, "turns": 7, "conversation": "c-1", "created_at": 0.0}


def shown(parts: Iterable[RenderableType]) -> str:
    out = io.StringIO()
    console = Console(file=out, width=160, markup=False, highlight=False, force_terminal=False)
    for part in parts:
        console.print(part)
    return out.getvalue()


def explained(texts: Mapping[int, str], **told: Any) -> str:
    return shown(explanation(TURN | {"explain": TOLD | told}, texts))


@pytest.mark.parametrize(
    ("stored", "written"),
    [
        ("\x1b[31mred\x1b[0m", r"\x1b[31mred\x1b[0m"),
        ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
        ("a\u202eb", r"a\u202eb"),
        ("\x9b1m", r"\x9b1m"),
        ("a\u2028b", r"a\u2028b"),
        ("\ud800", r"\ud800"),
        ("\U000e0041", r"\U000e0041"),
        ("[bold]x[/bold] :smile:", "[bold]x[/bold] :smile:"),
        ("köln → 東京", "köln → 東京"),
    ],
)
def test_a_terminal_obeys_nothing_that_was_stored(stored: str, written: str) -> None:
    assert safe(stored).plain == written
    assert shown([safe(stored)]) == written + "\n"


def test_an_excerpt_is_one_line_of_limited_length() -> None:
    assert excerpt("a\n\tb").plain == "a b"
    assert excerpt("x" * 50, 10).plain == "x" * 9 + "…"


def test_explanation_shows_event_evidence_tier_budget_and_query() -> None:
    text = explained({10: "port 7431", 11: "hello"})
    assert "t-0a: 5 of 7 of c-1, 19" in text
    for words in (
        "compaction:summary",
        "12 old messages are gone",
        "the summary echoes an earlier answer",
        "12,000 of 128,000 tokens, 9%: calm",
        "6,000 characters, 1,000 a passage",
        "“which port does the broker listen on?”",
        "open: cosine 0.61",
        "recall 12.5 ms",
        "restore: 5,811 characters, 1,402 tokens",
        "1,502 tokens, 12% of the client's own",
    ):
        assert words in text


def test_explanation_shows_each_candidates_signals_and_what_became_of_it() -> None:
    packed, cut = explained({10: "port 7431", 11: "hello"}).split("port 7431")[1].split("hello")
    assert all(words in packed for words in ("0.0325", "dense 1 (0.61)", "text 3 (8.20)", "packed"))
    assert all(words in cut for words in ("0.0161", "importance 1 (0.50)", "cut: budget"))
    assert "0 (" not in cut.replace("0.0161", "") and "speaker" not in cut


def test_explanation_is_readable_on_a_narrow_terminal() -> None:
    out = io.StringIO()
    console = Console(file=out, width=80, markup=False, highlight=False, force_terminal=False)
    for part in explanation(TURN | {"explain": TOLD}, {10: "port 7431", 11: "hello"}):
        console.print(part)
    lines = [line.strip() for line in out.getvalue().splitlines()]
    assert "score 0.0325; dense 1 (0.61), text 3 (8.20)" in lines, "one line, with nothing broken off"
    assert "cut: budget" in lines


def test_of_what_no_signal_found_the_score_alone_is_shown() -> None:
    unfound = TOLD["candidates"][1] | {"signals": {}}
    out = io.StringIO()
    for part in explanation(TURN | {"explain": TOLD | {"candidates": [unfound]}}, {11: "hello"}):
        Console(file=out, width=80).print(part)
    assert "score 0.0161" in [line.strip() for line in out.getvalue().splitlines()]


def test_of_a_long_message_the_passage_is_shown() -> None:
    text = "Much else. The broker listens on 7431. And more."
    passage = TOLD["candidates"][0] | {"start": text.index("The"), "stop": text.index(" And")}
    told = explained({10: text}, candidates=[passage])
    assert "The broker listens on 7431." in told and "Much else" not in told and "And more" not in told


def test_a_candidate_that_was_forgotten_since_is_said_to_be() -> None:
    assert "(forgotten)" in explained({11: "hello"})


def test_explanation_names_the_facts_that_were_told() -> None:
    told = {"told": [{"fact": "f-1", "why": "new"}], "left_out": {"told before": 2}}
    text = shown(explanation(TURN | {"explain": TOLD | {"facts": told}}, {}))
    assert "f-1: new" in text and "2 told before" in text


def test_explanation_says_how_many_passages_had_no_vector_yet() -> None:
    text = explained({}, unindexed={"passages": 12, "of": 16}, note="indexing")
    assert "12 of 16 passages had no vector yet" in text and "nothing said" not in text


def test_explanation_of_silence_says_why() -> None:
    told: dict[str, Any] = {"event": "append", "role": "main", "evidence": [], "note": "calm", "kind": None}
    text = shown(explanation(TURN | {"explain": told}, {}))
    assert "nothing said" in text
    assert "calm: nothing was lost" in text and "to change it" in text and "memory.reach" in text
    assert "budget" not in text


def test_explanation_writes_out_what_a_terminal_would_obey() -> None:
    evil = "\x1b[2J[red]"
    text = explained({10: evil, 11: evil}, query={"text": evil, "context": ""}, evidence=[evil])
    assert "\x1b" not in text
    assert text.count(r"\x1b[2J[red]") == 4


def test_search_shows_where_and_when_and_each_signal() -> None:
    memory = Memory(7, 70, "c1", 3, "user", "port\n7431", 1_700_000_000.0)
    text = shown(
        search_results(
            Recalled((Candidate(memory, 0.5, {"dense": (1, 0.8)}, 0.75),), True, "cosine 0.8", elapsed_ms=3.25)
        )
    )
    for words in ("open: cosine 0.8", "3.2 ms", "0.750", "1 (0.80)", "2023-11-", "c1 3 user", "port 7431"):
        assert words in text


def test_search_shows_what_comes_though_the_gate_is_shut_before_what_does_not() -> None:
    told, hidden = (Memory(id, 70, "c1", 3, "user", f"said {id}", 0.0) for id in (7, 8))
    text = shown(search_results(*(Recalled((Candidate(one, 0.5, {}),), True, "a thing") for one in (told, hidden))))
    assert "what follows the first 1; a request would not have received it" in text
    assert text.index("said 7") < text.index("said 8")


def test_search_that_found_nothing_relevant_says_so() -> None:
    assert "shut: nothing close" in shown(search_results(Recalled((), False, "nothing close")))


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (
            {"trimmed_tokens": 41_000, "dropped": 120, "stubs": 4, "is_new": True},
            "41,000 tokens left out from here on: 120 messages, and 4 as stubs",
        ),
        ({"trimmed_tokens": 9, "dropped": 2, "stubs": 0, "is_new": False}, "9 tokens left out as before"),
        ({"reply_tokens": 700}, "an answer of 700 tokens asked for at most"),
        ({"would_trim_tokens": 5000}, "trim would leave out 5,000 tokens"),
    ],
)
def test_explanation_says_what_stayed_behind_of_a_long_conversation(told: Json, words: str) -> None:
    assert words in explained({}, overflow=told)
