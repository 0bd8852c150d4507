from dataclasses import replace

from palimpsest.evaluation.baselines.summary import SEGMENT_CHARS, Summary, segments
from palimpsest.evaluation.datasets import Conversation

from tests.evaluation.baselines.asking import asking
from tests.evaluation.told import told
from tests.remembered import WordEmbedder


def sessions(*each: tuple[str, ...]) -> Conversation:
    """A conversation of several sessions."""
    talk = told(*(line for lines in each for line in lines))
    owners = [index for index, lines in enumerate(each) for _ in lines]
    messages = tuple(replace(said, session=owner) for said, owner in zip(talk.messages, owners, strict=True))
    return replace(talk, messages=messages, sessions=len(each))


def test_budgets_go_by_the_square_root_of_a_sessions_length() -> None:
    short, long = segments(sessions(("user: " + "a" * 187,), ("user: " + "b" * 787,)), 3000)
    assert len(long.text) == 4 * len(short.text) == 800
    assert abs(long.max_tokens - 2 * short.max_tokens) < 30
    assert short.max_tokens + long.max_tokens <= 3000


def test_a_long_session_is_cut_into_segments_between_messages() -> None:
    parts = segments(told(*["user: " + "a" * (SEGMENT_CHARS // 2)] * 5), 3000)
    assert [part.messages for part in parts] == [(0, 1), (2, 3), (4,)]


async def test_each_session_is_summarised_once_and_found_by_what_it_says() -> None:
    talk = sessions(("user: the ferry leaves at nine",), ("user: the keeper is Orsolya",))
    answers = {"ferry": "Ferry at nine.", "keeper": "Keeper Orsolya."}
    async with (
        asking(lambda prompt: next(said for word, said in answers.items() if word in prompt)) as (model, sent),
        Summary(WordEmbedder(), model).opened(talk) as reader,
    ):
        pack = await reader.pack("Who is the keeper?", 6000)
        assert list(await reader.stored()) == ["[2023-11-14] Ferry at nine.", "[2023-11-14] Keeper Orsolya."]
    assert pack.ranked == (1, 0)
    assert len(sent) == 2
    assert "Stay query-agnostic" in sent[0]["messages"][0]["content"]
