from palimpsest.evaluation.baselines.epc import Epc, Unit, chosen, merged, utility

from tests.evaluation.baselines.asking import asking
from tests.evaluation.told import told
from tests.remembered import WordEmbedder

NAMED = Unit(("Who keeps it?",), "Orsolya keeps it since 1961", "s")
VAGUE = Unit(("Who keeps it?",), "somebody keeps it since long ago", "s")


def test_names_and_numbers_make_a_unit_worth_more_and_repetition_less() -> None:
    assert utility(NAMED, set()) > utility(VAGUE, set())
    assert utility(NAMED, {"orsolya", "keeps", "it", "since", "1961"}) == utility(NAMED, set()) - 0.3


def test_a_unit_that_answers_more_questions_comes_first() -> None:
    both = Unit(("Who?", "Since when?"), "somebody keeps it", "s")
    assert chosen([NAMED, both], 1000) == [both, NAMED]


def test_what_does_not_fit_the_budget_is_left_out() -> None:
    assert chosen([NAMED], 10) == []
    long = Unit(("Who?", "What?"), "word " * 100, "s")
    assert chosen([long, NAMED], 50) == [NAMED]


def test_evidence_that_overlaps_is_one_unit() -> None:
    part = Unit(("Since when?",), "since 1961", "s")
    assert merged([part, NAMED]) == [Unit((*NAMED.questions, *part.questions), NAMED.evidence, "s")]
    assert len(merged([NAMED, Unit(("x",), "the ferry leaves at nine", "s")])) == 2


def scripted(prompt: str) -> str:
    if "generate 5 likely future questions" in prompt:
        return "1. Who keeps the light?\n2. When does the ferry leave?"
    assert "1. Who keeps the light?" in prompt
    assert "session_0_turn_{turn_id}" in prompt
    return (
        "[Q] Who keeps the light?\n[E] Orsolya keeps the light.\n[S] session_0_turn_1\n\n"
        "[Q] When does the ferry leave?\n[E] The ferry leaves at nine.\n[S] session_0_turn_3"
    )


async def test_a_session_takes_two_calls_and_becomes_entries_with_their_sources() -> None:
    talk = told("user: who?", "assistant: Orsolya keeps the light", "user: when?", "assistant: it leaves at nine")
    async with asking(scripted) as (model, sent), Epc(WordEmbedder(), model).opened(talk) as reader:
        pack = await reader.pack("When does the ferry leave?", 6000)
        assert len(sent) == 2
    assert pack.ranked == (3, 1)
    assert pack.text.startswith("[Q] When does the ferry leave?\n[E] The ferry leaves at nine.\n[S] session_0_turn_3")
