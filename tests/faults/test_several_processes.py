"""Two proxies on one data folder, as during a restart or with several workers: they agree on all that is stored."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest
from palimpsest.domain import Json
from palimpsest.evaluation.scripted import ScriptedUpstream

from tests.ledger import Ledger
from tests.running import Conversation, Proxy, memory_in, request, rows, until, upstream_on_a_thread

pytestmark = pytest.mark.slow

FACTS = (
    "The door code of the northern archive is 4471, and it changes every spring.",
    "The payment migration is called Okapi, after the animal in the zoo.",
    "Mrs Lindqvist signed the contract about the cold storage in Uppsala.",
    "The scanner reports error E7706 when its lamp is older than two years.",
)
QUESTIONS = (
    "What is the door code of the northern archive?",
    "What is the payment migration called, after which animal?",
    "Who signed the contract about the cold storage?",
    "Which error does the scanner report when its lamp is old?",
)
SETTINGS = {"memory": {"reach": "user"}}
CLIENTS = 3
COMPACTION = "compaction:truncate"

Two = tuple[Proxy, Proxy]


@pytest.fixture(scope="module")
def provider() -> Iterator[ScriptedUpstream]:
    with upstream_on_a_thread() as upstream:
        yield upstream


@pytest.fixture(scope="module")
def two(provider: ScriptedUpstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Two]:
    """Both are started at the same moment, in an empty folder."""
    data = tmp_path_factory.mktemp("two") / "data"
    one, other = Proxy(data, provider.url, SETTINGS), Proxy(data, provider.url, SETTINGS)
    other.log = data.parent / "other.log"
    try:
        with ThreadPoolExecutor(2) as starting:
            list(starting.map(Proxy.start, (one, other)))
        yield one, other
    finally:
        one.close()
        other.close()


@pytest.fixture(autouse=True)
def sent(provider: ScriptedUpstream) -> list[Json]:
    """What reached the provider, whose every answer is another one."""
    bodies: list[Json] = []

    def answer(body: Json) -> str:
        bodies.append(body)
        return f"That is answer number {len(bodies)} of {id(bodies)}, and it will not be repeated to anybody else."

    provider.script = answer
    return bodies


def talk_of(proxy: Proxy, who: str) -> Conversation:
    return Conversation(proxy, f"sk-{who}", headers={"x_palimpsest_user": who}, extra={"user": who})


def test_processes_that_start_together_in_an_empty_folder_both_work(two: Two) -> None:
    for proxy in two:
        assert proxy.ready()["store"] == "ready"
        assert "error" not in proxy.log.read_text()
    assert (two[0].data / "secret").exists()


def test_a_conversation_that_wanders_between_processes_is_one_and_its_blocks_stand(two: Two, sent: list[Json]) -> None:
    ledger, events = Ledger(), dict[tuple[str, int], str]()

    def converse(client: int) -> None:
        choose, who = random.Random(client), f"wanderer-{client}"
        talk = talk_of(two[0], who)
        for turn in range(14):
            said = FACTS[turn] if turn < 4 else f"{QUESTIONS[turn % 4]} I ask in turn {turn}, as {who}."
            if turn == 8:
                talk.keep_last(4)
            talk.proxy = choose.choice(two)
            answered = talk.say(said)
            events[who, turn] = answered.said("event")
            ledger.write(who, said, answered)

    with ThreadPoolExecutor(CLIENTS) as clients:
        list(clients.map(converse, range(CLIENTS)))
    two[0].settle(vectors=False)
    two[1].settle(vectors=False)
    assert ledger.audit(two[0].data).is_clean
    kinds = {turn: {event for (_, at), event in events.items() if at == turn} for turn in range(14)}
    assert kinds == {turn: {"append"} for turn in range(1, 14)} | {0: {"start"}, 8: {COMPACTION}}
    for client in range(CLIENTS):
        listed = [body["messages"] for body in sent if body["user"] == f"wanderer-{client}"]
        assert all(later[: len(one)] == one for one, later in pairwise(listed[8:]))
        assert "4471" in memory_in({"messages": listed[-1]})


def test_the_first_requests_of_a_named_conversation_agree_wherever_they_arrive(two: Two) -> None:
    together = threading.Barrier(2)

    def ask(proxy: Proxy) -> str:
        talk = Conversation(proxy, "sk-newcomer", headers={"x_palimpsest_conversation": "the-same"})
        together.wait()
        return talk.say("We begin in two places at once, as clients do that retry too early.").said("conversation")

    with ThreadPoolExecutor(2) as clients:
        one, other = clients.map(ask, two)
    assert one == other
    assert rows(two[0].data, f"SELECT count(*), count(DISTINCT tenant) FROM conversation WHERE public = '{one}'") == [
        (1, 1)
    ]


def test_what_one_indexed_the_other_finds(two: Two, sent: list[Json]) -> None:
    one, other = two
    teller = talk_of(one, "lena")
    teller.say("The rehearsal of the choir begins at a quarter past seven, in the parish hall.")
    one.settle()
    asker = talk_of(other, "lena")
    asker.say("When does the rehearsal of the choir begin?")
    assert "quarter past seven" in memory_in(sent[-1])
    teller.say("My physician is Doctor Haverkamp, whose practice is beside the old mill.")
    one.settle()
    asker.say("What is the name of my physician?")
    assert "Haverkamp" in memory_in(sent[-1])


def test_what_one_erases_the_other_says_no_more(two: Two, sent: list[Json]) -> None:
    one, other = two
    talk_of(one, "tomas").say("The combination of the safe behind the painting is 19-77-03.")
    one.settle(vectors=False)
    question = "What is the combination of the safe behind the painting?"
    talk_of(other, "tomas").say(question)
    assert "19-77-03" in memory_in(sent[-1])
    (tenant,) = rows(
        one.data, "SELECT tenant.name FROM tenant JOIN conversation ON tenant = tenant.id AND user_id = 'tomas'"
    )[0]
    answered = request(one.port, "DELETE", f"/memory/v1/users/tomas?tenant={tenant}")
    check = answered.json["check"]
    assert answered.status == 200 and (check["clean"] or not check["searched"]), answered.body
    for proxy in (other, one):
        talk_of(proxy, "tomas").say(question)
        assert "19-77-03" not in memory_in(sent[-1])


def test_one_goes_on_where_the_other_was_killed(two: Two, sent: list[Json]) -> None:
    one, other = two
    talk = talk_of(other, "nora")
    home = talk.say("We call the new release Marmalade, because of the colour of its logo.").said("conversation")
    other.kill()
    talk.proxy = one
    answered = talk.say("And its manual will be written by Tomas during the first weeks of spring.")
    assert (answered.said("conversation"), answered.said("event")) == (home, "append")
    other.start()
    until(lambda: other.ready()["store"] == "ready", "the other one to be back")
    talk.proxy = other
    answered = talk.say("The translation into Portuguese comes a month after the manual is done.")
    assert (answered.said("conversation"), answered.said("event")) == (home, "append")
