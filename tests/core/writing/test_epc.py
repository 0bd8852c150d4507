from palimpsest.core.writing.clauses import join_clauses
from palimpsest.core.writing.cues import Kind
from palimpsest.core.writing.entries import ENTRY_TOKENS, PAPER, Weights
from palimpsest.core.writing.epc import Probe, Unit, units_of, utility, write
from palimpsest.core.writing.information import TermStatistics

from tests.core.writing.talking import count, quoted, segment, statistics

TALK = segment(
    "user: Hello there, how are you doing?",
    "assistant: Fine, thank you!",
    "user: We decided to use Postgres 16.2 for the billing service, and Anna Kovacs moved to Lisbon in May 2021.",
    "assistant: That sounds great, that is a really good idea.",
    "user: My dog Rex is 4 years old. I like walking with him, it is good.",
)


def written(budget: int, weights: Weights = PAPER) -> list[str]:
    return [item.text for item in write(TALK, budget, count, statistics(TALK), weights)]


def test_what_names_most_comes_first_and_small_talk_never() -> None:
    (first,) = written(30)
    assert first == "and Anna Kovacs moved to Lisbon in May 2021."
    assert any("Postgres 16.2" in text for text in written(60))
    assert not any("Hello" in text or "Fine" in text for text in written(1000))


def test_the_budget_holds_questions_texts_and_days() -> None:
    for budget in (20, 40, 60, 1000):
        items = write(TALK, budget, count, statistics(TALK))
        assert sum(count(f"{item.question} {item.text}") + ENTRY_TOKENS for item in items) <= budget
    assert written(10) == []


def test_every_item_cites_what_it_says() -> None:
    items = write(TALK, 1000, count, statistics(TALK))
    assert items
    for item in items:
        assert (
            join_clauses([quoted(TALK, span.occurrence, span.start, span.stop) for span in item.sources]) == item.text
        )


def test_items_are_in_order_of_the_conversation() -> None:
    places = [
        (item.sources[0].occurrence, item.sources[0].start) for item in write(TALK, 1000, count, statistics(TALK))
    ]
    assert len(places) > 2
    assert places == sorted(places)


def test_the_question_asks_for_the_answer_without_giving_it() -> None:
    (dog,) = [item for item in write(TALK, 1000, count, statistics(TALK)) if "Rex" in item.text]
    assert dog.question.endswith("?")
    assert "4" not in dog.question
    assert "Rex" not in dog.question


def test_a_transcripts_speaker_stands_before_what_he_says_and_is_no_answer() -> None:
    talk = segment(
        *("user: Ann: I joined the choir with Zoe.", "assistant: Bob: Great to hear from you, Ann, it is nice."),
        *("user: Ann: Yes.", "assistant: Bob: Yes."),
    )
    items = write(talk, 1000, count, statistics(talk))
    assert items[0].text == "Ann: I joined the choir with Zoe."
    assert not any(cue.text == "Ann" for unit in units_of(talk) for cue in unit.cues)


def test_utility_is_coverage_and_specificity_less_redundancy() -> None:
    unit = next(unit for unit in units_of(TALK) if "Rex" in unit.clause.text)
    asked = [Probe(Kind.WHO, 1.0, (0,)), Probe(Kind.COUNT, 0.5, (0,))]
    weights = Weights()
    fresh = utility(unit, asked, set(), weights)
    assert fresh == 1.5 + 0.5 * unit.specificity
    assert utility(unit, asked, set(unit.terms), weights) == fresh - 0.3
    assert utility(unit, asked, set(unit.terms), Weights(0, 0, 0)) == 0


def test_what_everybody_says_is_asked_for_last() -> None:
    talk = segment("user: We called Zoe about the offer.", "user: We called Ann about the offer.")
    common = TermStatistics().with_texts(["Zoe came", "Zoe went", "Zoe sat", "Ann came", "offer", "call"])
    (item,) = write(talk, 20, count, common)
    assert "Ann" in item.text


def test_nothing_said_nothing_kept() -> None:
    assert write((), 1000, count, TermStatistics()) == ()
    assert isinstance(units_of(TALK)[0], Unit)
