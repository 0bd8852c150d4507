from palimpsest.evaluation.score import BlockText, Evidence, literal, normalised

LONG = "I moved to Lyon last spring because the new job is there, and I love the river."


def test_a_long_message_counts_when_most_of_its_runs_of_five_words_stand_there() -> None:
    assert BlockText(f"Notes. {LONG.upper()}").holds(LONG)
    assert BlockText(" ".join(LONG.split()[:14])).holds(LONG)
    assert not BlockText(" ".join(LONG.split()[:9])).holds(LONG)
    assert not BlockText("I moved to Lyon last year for a job").holds(LONG)


def test_a_short_message_counts_when_all_of_it_stands_there() -> None:
    assert BlockText("He said: Yes, last week! And left.").holds("Yes, last week")
    assert not BlockText("Yes, last month").holds("Yes, last week")
    assert not BlockText("Yesterday, last weekend").holds("Yes, last week")


def test_a_message_without_words_is_never_found() -> None:
    assert not BlockText("... !").holds("!")


def test_evidence_is_any_all_and_the_share_that_was_found() -> None:
    given = BlockText("alpha beta. gamma delta.")
    assert given.evidence(["alpha beta", "gamma delta"]) == Evidence(True, True, 1.0)
    assert given.evidence(["alpha beta", "epsilon"]) == Evidence(True, False, 0.5)
    assert BlockText("").evidence(["alpha beta"]) == Evidence(False, False, 0.0)


def test_words_are_compared_without_case_apostrophes_and_signs() -> None:
    assert normalised("Don\u2019t, DON'T _stop_: é1") == ["dont", "dont", "stop", "é1"]


def test_only_an_answer_that_was_said_and_not_asked_can_be_looked_for() -> None:
    said = BlockText("We met in Lyon. Yes. The answer is 7.")
    assert literal("Lyon", "temporal", "Where did they meet?", said) == ["lyon"]
    assert literal("Lyon", "temporal", "Did they meet in Lyon?", said) == []
    assert literal("Lyon", "adversarial", "Where did they meet?", said) == []
    assert literal("Paris", "temporal", "Where did they meet?", said) == []
    for says_little in ("yes", "7", "", None):
        assert literal(says_little, "temporal", "Where did they meet?", said) == []
