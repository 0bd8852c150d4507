"""
Isolation: two tenants with the same words and the same ids never see each other's memory, whatever they claim.

The widest reach there is (`tenant`) makes it as hard as it can be: everything of one's own may come back at any time.
"""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from palimpsest.domain import Json
from palimpsest.evaluation.scripted import ScriptedUpstream

from tests.examples import examples
from tests.running import PATIENCE_SECONDS, Answered, Conversation, Proxy, memory_in, request

FACTS = {
    "4471": "The door code of the northern archive is 4471, and it changes every spring.",
    "Okapi": "The internal name of the payment migration is Okapi, after the animal in the zoo.",
    "E7706": "The scanner reports error E7706 whenever its lamp is older than two years.",
    "Lindqvist": "The contract about the cold storage was signed by Mrs Lindqvist in Uppsala.",
}
QUESTIONS = {
    "4471": "What is the door code of the northern archive?",
    "Okapi": "What is the internal name of the payment migration?",
    "E7706": "Which error does the scanner report when its lamp is old?",
    "Lindqvist": "Who signed the contract about the cold storage?",
}
FORGERIES = ("", "user header", "user in body", "conversation header", "session id", "scope header")
REST = {"max_examples": examples(30), "deadline": None, "suppress_health_check": [HealthCheck.too_slow]}

Step = tuple[int, str, str, str]  # which tenant, does what, with which fact, claiming what
STEPS = st.lists(
    st.tuples(
        st.integers(0, 1),
        st.sampled_from(("tell", "ask", "drop", "leave")),
        st.sampled_from(sorted(FACTS)),
        st.sampled_from(FORGERIES),
    ),
    min_size=4,
    max_size=14,
)


@pytest.fixture(scope="module")
def wide(shared_upstream: ScriptedUpstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    settings = {"memory": {"reach": "tenant"}}
    with Proxy(tmp_path_factory.mktemp("wide") / "data", shared_upstream.url, settings) as running:
        yield running


@pytest.fixture(autouse=True)
def same_answer_for_everybody(upstream: ScriptedUpstream) -> None:
    upstream.script = lambda _: "Thank you, I have taken note of that and I will come back to it when you need it."


class Tenant:
    """One tenant: what it ever said, and which conversation ids it was given."""

    def __init__(self, proxy: Proxy) -> None:
        self.talk = Conversation(proxy, f"sk-{uuid4().hex}")
        self.told: set[str] = set()
        self.homes: set[str] = set()

    def claim(self, forgery: str, other: Tenant) -> None:
        """Pretend to be somebody, or somewhere, that the other one is too."""
        home = next(iter(sorted(other.homes)), "c0ffee")
        self.talk.headers = {
            "user header": {"x_palimpsest_user": "lena"},
            "conversation header": {"x_palimpsest_conversation": home},
            "session id": {"x_session_id": "ses_1"},
            "scope header": {"x_palimpsest_scope": "checkout"},
        }.get(forgery, {})
        self.talk.extra = {"user": "lena"} if forgery == "user in body" else {}

    def act(self, what: str, fact: str) -> Answered | None:
        match what:
            case "tell":
                self.told.add(fact)
                return self.talk.say(FACTS[fact])
            case "ask":
                return self.talk.say(QUESTIONS[fact])
            case "drop":
                self.talk.keep_last(2)
            case "leave":
                self.talk.messages.clear()
        return None


def facts_in(body: Json) -> set[str]:
    said = memory_in(body)
    return {fact for fact in FACTS if fact in said}


@settings(**REST)  # type: ignore[arg-type]
@given(steps=STEPS)
def test_nobody_sees_what_only_the_other_one_said(
    wide: Proxy, shared_upstream: ScriptedUpstream, steps: list[Step]
) -> None:
    tenants = Tenant(wide), Tenant(wide)
    for who, what, fact, forgery in steps:
        one, other = tenants[who], tenants[1 - who]
        one.claim(forgery, other)
        answered = one.act(what, fact)
        if answered is not None:
            assert answered.status == 200
            one.homes.add(answered.said("conversation"))
            assert facts_in(shared_upstream.received[-1].json) <= one.told
    assert not tenants[0].homes & tenants[1].homes


def test_one_sees_its_own_across_conversations(wide: Proxy, upstream: ScriptedUpstream) -> None:
    """Without this the property above would hold for a proxy that never says anything."""
    one = Tenant(wide)
    one.act("tell", "Okapi")
    one.act("leave", "")
    wide.settle()
    one.act("ask", "Okapi")
    assert facts_in(upstream.received[-1].json) == {"Okapi"}


@pytest.mark.slow
@pytest.mark.parametrize("reach", ["conversation", "user"])
def test_users_of_one_tenant_stay_apart(upstream: ScriptedUpstream, tmp_path: Path, reach: str) -> None:
    with Proxy(tmp_path / "data", upstream.url, {"memory": {"reach": reach}}) as proxy:
        key = f"sk-{uuid4().hex}"
        lena, omar = (Conversation(proxy, key, headers={"x_palimpsest_user": user}) for user in ("lena", "omar"))
        lena.say(FACTS["E7706"])
        proxy.settle()
        omar.say(QUESTIONS["E7706"])
        assert not facts_in(upstream.received[-1].json)
        lena.messages.clear()
        lena.say(QUESTIONS["E7706"])
        assert facts_in(upstream.received[-1].json) == ({"E7706"} if reach == "user" else set())


BESIDE_THE_MACHINE = {
    "a reverse proxy": {"x-forwarded-for": "10.0.0.7"},
    "a page of this machine": {"origin": "http://localhost:3000"},
    "an extension of a browser": {"origin": "chrome-extension://abc"},
    "a container": {"host": "host.docker.internal:8484"},
    "a credential that is not forwarded": {"authorization": "Bearer sk-one", "connection": "authorization"},
}


def ask_nameless(proxy: Proxy, text: str, **headers: str) -> Answered:
    body = {"model": "gpt-4o", "messages": [{"role": "user", "content": text}]}
    return request(proxy.port, "POST", "/v1/chat/completions", orjson.dumps(body), headers)


def test_a_program_on_this_machine_without_a_credential_has_a_memory_of_its_own(
    wide: Proxy, upstream: ScriptedUpstream
) -> None:
    named = Tenant(wide)
    named.act("tell", "Lindqvist")
    assert ask_nameless(wide, FACTS["4471"]).said("note") != "no-tenant"
    wide.settle()
    ask_nameless(wide, QUESTIONS["4471"])
    assert facts_in(upstream.received[-1].json) == {"4471"}
    ask_nameless(wide, QUESTIONS["Lindqvist"])
    assert not facts_in(upstream.received[-1].json), "what a credential said"
    named.act("leave", "")
    named.act("ask", "4471")
    assert not facts_in(upstream.received[-1].json), "to whom shows one"


@pytest.mark.parametrize("headers", BESIDE_THE_MACHINE.values(), ids=BESIDE_THE_MACHINE)
def test_who_is_not_surely_a_program_on_this_machine_has_no_memory_without_a_credential(
    wide: Proxy, upstream: ScriptedUpstream, headers: dict[str, str]
) -> None:
    ask_nameless(wide, FACTS["E7706"])
    wide.settle()
    answered = ask_nameless(wide, QUESTIONS["E7706"], **headers)
    assert answered.status == 200 and answered.said("note") == "no-tenant"
    assert answered.said("conversation") == ""
    assert not facts_in(upstream.received[-1].json)


@pytest.mark.slow
@pytest.mark.parametrize("guarded", ["admin token", "every address"])
def test_where_this_machine_is_not_trusted_no_credential_means_no_memory(
    upstream: ScriptedUpstream, tmp_path: Path, guarded: str
) -> None:
    token = {"PALIMPSEST_ADMIN_TOKEN": "t0ken-t0ken-t0ken"} if guarded == "admin token" else {}
    listen = {"listen": {"host": "0.0.0.0"}} if guarded == "every address" else {}
    with Proxy(tmp_path / "data", upstream.url, listen, **token) as proxy:
        assert ask_nameless(proxy, FACTS["E7706"]).said("note") == "no-tenant"


@pytest.mark.parametrize(
    "claimed",
    [
        [("authorization", "Bearer {theirs}"), ("connection", "authorization"), ("x-api-key", "{own}")],
        [("authorization", "Bearer {theirs}"), ("x-api-key", "{own}")],
        [("authorization", "Bearer {own}"), ("authorization", "Bearer {theirs}")],
        [("authorization", "Bearer {theirs}"), ("authorization", "Bearer {own}")],
    ],
    ids=["not forwarded", "beside an own one", "behind an own one", "before an own one"],
)
def test_a_credential_of_somebody_else_beside_an_own_one_opens_nothing(
    wide: Proxy, upstream: ScriptedUpstream, claimed: list[tuple[str, str]]
) -> None:
    one, theirs = Tenant(wide), Tenant(wide)
    theirs.act("tell", "Okapi")
    connection = http.client.HTTPConnection("127.0.0.1", wide.port, timeout=PATIENCE_SECONDS)
    connection.putrequest("POST", "/v1/chat/completions")
    for name, value in claimed:
        connection.putheader(name, value.format(own=one.talk.key, theirs=theirs.talk.key))
    body = orjson.dumps(one.talk.body({"role": "user", "content": QUESTIONS["Okapi"]}))
    connection.putheader("content-length", str(len(body)))
    connection.endheaders(body)
    answered = connection.getresponse()
    assert answered.status == 200 and answered.read()
    connection.close()
    assert facts_in(upstream.received[-1].json) == set()
    theirs.act("leave", "")
    theirs.act("ask", "Okapi")
    assert facts_in(upstream.received[-1].json) == {"Okapi"}


def test_the_same_words_of_two_users_are_two_conversations(wide: Proxy, key: str) -> None:
    told = "The spare key of the observatory hangs behind the narwhal poster, as we agreed last Tuesday."
    ann, bob = (Conversation(wide, key, headers={"x-palimpsest-user": name}) for name in ("ann", "bob"))
    first = [talk.say(told).said("conversation") for talk in (ann, bob)]
    then = [talk.say("And where is the ladder of the observatory?") for talk in (ann, bob)]
    assert first[0] != first[1]
    assert [answer.said("conversation") for answer in then] == first


def test_who_names_no_user_continues_no_conversation_of_a_user(wide: Proxy, key: str) -> None:
    ann = Conversation(wide, key, headers={"x-palimpsest-user": "ann"})
    home = [ann.say(fact) for fact in FACTS.values()][-1].said("conversation")
    going_on = Conversation(wide, key, messages=ann.messages[-2:]).say("Go on with all of that, please.")
    assert (going_on.said("event"), going_on.said("conversation") == home) == ("start", False)


def test_the_same_id_of_two_users_is_two_conversations(wide: Proxy, key: str) -> None:
    named = {"x-palimpsest-conversation": "the-same-name"}
    users = [Conversation(wide, key, headers=named | {"x-palimpsest-user": name}) for name in ("ann", "bob", "ann")]
    found = [talk.say(f"hello number {at}, and all of you").said("conversation") for at, talk in enumerate(users)]
    assert found[0] == found[2] != found[1]


def test_the_same_words_in_two_projects_are_two_conversations(
    wide: Proxy, upstream: ScriptedUpstream, key: str
) -> None:
    shop, blog = (Conversation(wide, key, headers={"x-palimpsest-scope": name}) for name in ("shop", "blog"))
    home = [blog.say(text).said("conversation") for text in ("Where is the door?", "Thanks.")]
    for text in (*FACTS.values(), "Where is the door?", "Thanks."):
        shop.say(text)
    blog.keep_last(2)
    assert blog.say(QUESTIONS["4471"]).said("conversation") == home[0]
    assert facts_in(upstream.received[-1].json) == set()
    shop.keep_last(2)
    shop.say(QUESTIONS["4471"])
    assert "4471" in facts_in(upstream.received[-1].json)


def test_a_conversation_that_the_client_names_goes_on_in_another_project(wide: Proxy, key: str) -> None:
    talk = Conversation(wide, key, headers={"x-session-id": f"moved-{key}", "x-palimpsest-scope": "shop"})
    began = talk.say("Where is the ladder of the barn?")
    talk.headers = {**talk.headers, "x-palimpsest-scope": "blog"}
    goes_on = talk.say("And the key to it?")
    assert (goes_on.said("conversation"), goes_on.said("event")) == (began.said("conversation"), "append")
