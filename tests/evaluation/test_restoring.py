from palimpsest.evaluation.baselines.extractive import Extractive
from palimpsest.evaluation.baselines.recent import MostRecent
from palimpsest.evaluation.facts import facts_of, said_in
from palimpsest.evaluation.model import Model
from palimpsest.evaluation.palimpsest import Palimpsest
from palimpsest.evaluation.restoring import BELOW_CUT, NEVER_ARCHIVED, Outcomes, measure

from tests.evaluation.baselines.asking import asking
from tests.evaluation.told import told
from tests.remembered import WordEmbedder

FILLER = [line for at in range(12) for line in (f"user: and topic {at}?", "assistant: " + "That is well known. " * 20)]
TALK = told(
    "user: where does the worker listen?",
    "assistant: " + "Let me look. " * 60 + "It listens on port 7431.",
    "user: and its config?",
    "assistant: It is deploy/worker.toml.",
    *FILLER,
    "user: say it again",
    "assistant: deploy/worker.toml, as I said.",
)


async def outcomes(budget: int, model: Model | None = None) -> Outcomes:
    embedder = WordEmbedder()
    measured = [Palimpsest(embedder, asked=False), MostRecent(embedder), Extractive(embedder)]
    facts = facts_of(said_in(TALK.messages))
    return Outcomes([o async for o in measure("data", TALK, facts, measured, [budget], model)])


async def test_each_lost_fact_is_an_outcome_of_each_compaction_and_system() -> None:
    found = await outcomes(6000)
    assert len(found.where(strategy="sliding window").all) == 2 * 3 * 3, "facts, fractions, systems"
    assert len(found.where(strategy="extractive", kind="port").all) == 3 * 3
    assert found.values("strategy") == ["extractive", "sliding window"]
    assert found.where(kind="path").where(needed=True).all
    assert not found.where(kind="port").where(needed=True).all


async def test_what_comes_back_is_recovered_and_what_does_not_has_a_reason() -> None:
    found = await outcomes(1500)
    ours = found.where(system="palimpsest")
    assert ours.share() == ours.by_conversation() == 1.0
    assert found.where(system="recent", fraction=0.7).values("missed") == [BELOW_CUT]
    assert found.where(system="extractive", kind="port").values("missed") == [NEVER_ARCHIVED]
    assert found.where(system="extractive", kind="port").share(NEVER_ARCHIVED) == 1.0


async def test_with_a_model_the_client_also_summarises_in_its_own_words() -> None:
    async with asking(lambda prompt: "It is all about deploy/worker.toml.") as (model, sent):
        found = await outcomes(1500, model)
    assert found.values("strategy") == ["abstractive", "extractive", "sliding window"]
    assert found.where(strategy="abstractive").values("kind") == ["port"], "the summary holds the path"
    assert len(sent) == 3, "once for each fraction"


async def test_a_conversation_counts_once_however_many_facts_it_lost() -> None:
    found = await outcomes(1500)
    (only,) = found.where(system="recent").of_conversations().values()
    cells = [
        found.where(system="recent", fraction=f, strategy=s)
        for f in found.values("fraction")
        for s in found.values("strategy")
    ]
    assert only == sum(cell.share() for cell in cells) / len(cells)
