from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from palimpsest.core.caller.client_table import ID_CHARS
from palimpsest.core.caller.credentials import LOCAL, forwarded_secrets, secret_in
from palimpsest.core.caller.identity import identify, is_rotating, tenant_key, tenant_of
from palimpsest.domain import Json, ProxyKey, Reach, Speaker
from palimpsest.settings.policy import KeyPolicy, TenantPolicy

from tests.core.driving import client_table

SECRET = b"s" * 32
TABLE = client_table()
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
ALICE = {"authorization": "Bearer sk-alice"}
NAMED = {"x-palimpsest-conversation": "c", "x-palimpsest-user": "u", "x-palimpsest-scope": "p"}


def who(
    headers: Json,
    body: Json | None = None,
    policy: TenantPolicy | None = None,
    key: KeyPolicy | None = None,
    secret: bytes = SECRET,
) -> Speaker:
    sent = [(name.encode(), value.encode()) for name, value in headers.items()]
    tenant = tenant_of(forwarded_secrets(sent), policy or TenantPolicy(), secret, key)
    return identify(tenant, headers, body or {}, TABLE, key)


# --- the tenant ------------------------------------------------------------------------------------


def test_what_is_known_of_one_tenant_is_keyed_so_that_it_means_nothing_in_another():
    keys = {tenant_key(SECRET, "acme"), tenant_key(SECRET, "beta"), tenant_key(b"t" * 32, "acme")}
    assert len(keys) == 3 and tenant_key(SECRET, "acme") in keys
    assert tenant_key(b"s" * 100, "acme") == tenant_key(b"s" * 64, "acme"), "blake2b takes 64 bytes at most"


def test_one_credential_is_one_tenant():
    assert who(ALICE).tenant == who(ALICE).tenant != who({"authorization": "Bearer sk-bob"}).tenant


def test_tenant_does_not_show_the_credential_and_needs_the_secret():
    assert "alice" not in who(ALICE).tenant and who(ALICE).tenant != who(ALICE, secret=b"t" * 32).tenant


@pytest.mark.parametrize("value", ["  ", "Bearer ", "bearer", "BEARER   ", "Basic", "basic "])
def test_no_credential_is_no_tenant(value: str):
    assert who({}).tenant == who({"authorization": value}).tenant == who({"x-api-key": value}).tenant == ""


def test_a_trusted_program_without_a_credential_is_a_tenant_of_its_own_and_with_one_it_is_not():
    def nameless(headers: Json, policy: TenantPolicy, key: KeyPolicy | None = None) -> str:
        credentials = forwarded_secrets([(name.encode(), value.encode()) for name, value in headers.items()])
        return tenant_of(credentials, policy, SECRET, key, is_nameless=True)

    assert nameless({}, TenantPolicy()) == LOCAL
    assert nameless(ALICE, TenantPolicy()) == who(ALICE).tenant != LOCAL
    assert nameless({"authorization": f"Bearer {JWT}"}, TenantPolicy()) == ""
    assert nameless({}, TenantPolicy(static="home")) == "static:home"
    assert nameless({}, TenantPolicy(), KeyPolicy(name=LOCAL, key_env="K")) == f"key:{LOCAL}"


def test_several_credentials_are_the_tenant_of_none_of_them():
    """Which of them the provider goes by is not known: one may be somebody else's that is no longer good."""
    both = who({"authorization": "Bearer sk-bob", "x-api-key": "sk-alice"}).tenant
    assert both == who({"authorization": "Bearer sk-alice", "x-api-key": "sk-bob"}).tenant
    assert both not in ("", who(ALICE).tenant, who({"x-api-key": "sk-bob"}).tenant)
    assert who(ALICE | {"x-api-key": "sk-alice"}).tenant == who(ALICE).tenant
    assert who(ALICE | {"x-api-key": JWT}).tenant == ""


def test_a_credential_that_is_not_forwarded_names_no_tenant():
    sent = ALICE | {"connection": "close, Authorization", "x-api-key": "sk-bob"}
    assert who(sent).tenant == who({"x-api-key": "sk-bob"}).tenant
    assert who(ALICE | {"connection": "authorization"}).tenant == ""


def test_proxy_key_names_the_tenant_whatever_else_is_sent():
    key = KeyPolicy(name="team", key_env="K")
    assert who(ALICE, key=key).tenant == who({}, key=key).tenant == "key:team"


def test_static_tenant_holds_for_every_caller():
    policy = TenantPolicy(static="home")
    assert (
        who({}, policy=policy).tenant == who({"authorization": f"Bearer {JWT}"}, policy=policy).tenant == "static:home"
    )


@pytest.mark.parametrize("bearer", [JWT, "sk-ant-oat01-abc_DEF-123"])
def test_rotating_bearer_is_no_tenant(bearer: str):
    assert is_rotating(bearer.encode()) and who({"authorization": f"Bearer {bearer}"}).tenant == ""


@pytest.mark.parametrize("key", ["sk-proj-abc.def", "eyJust-a-name", "a.b.c", "sk-ant-api03-abc"])
def test_keys_that_stay_are_not_taken_for_rotating_ones(key: str):
    assert not is_rotating(key.encode())


def test_kinds_of_tenant_cannot_be_confused():
    key = KeyPolicy(name="x", key_env="K")
    assert who({}, key=key).tenant != who({}, policy=TenantPolicy(static="x")).tenant


def test_scheme_word_is_no_part_of_the_credential():
    assert who({"authorization": "Bearer sk-alice"}).tenant == who({"x-api-key": "sk-alice"}).tenant


@given(st.text(max_size=40), st.text(max_size=40))
def test_two_credentials_never_share_a_tenant(one: str, other: str):
    secrets = {secret_in(value.encode()) for value in (one, other)} - {b""}
    tenants = {who({"x-api-key": value}).tenant for value in (one, other)} - {""}
    assert len(tenants) == len({secret for secret in secrets if not is_rotating(secret)})


# --- what else it says -----------------------------------------------------------------------------


def test_own_headers_name_conversation_user_and_project():
    speaker = who(ALICE | NAMED)
    assert (speaker.client_ids, speaker.user, speaker.scope) == (("palimpsest:c",), "u", "p")


def test_openai_user_field_names_the_user():
    assert who(ALICE, {"user": "u"}).user == "u"


def test_key_that_may_not_name_users_forges_none():
    key = KeyPolicy(name="team", key_env="K", may_name_user=False)
    speaker = who(NAMED, {"user": "u"}, key=key)
    assert (speaker.user, speaker.scope) == ("", "") and speaker.client_ids


def test_key_that_may_not_name_conversations_forges_none():
    key = KeyPolicy(name="team", key_env="K", may_name_conversation=False)
    speaker = who(NAMED | {"x-session-id": "s", "x-parent-session-id": "p"}, key=key)
    assert speaker.client_ids == speaker.parent_ids == () and not speaker.subagent_hint and speaker.user == "u"


def test_same_value_from_another_client_is_another_id():
    assert who({"x-session-id": "1"}).client_ids != who({"thread-id": "1"}).client_ids


def test_parent_id_hints_at_a_sub_agent():
    speaker = who({"x-session-id": "child", "x-parent-session-id": "top"})
    assert (
        speaker.subagent_hint and speaker.parent_ids == ("opencode:top",) and speaker.client_ids == ("opencode:child",)
    )


@pytest.mark.parametrize("header", [*NAMED, "x-session-id", "x-parent-session-id"])
def test_oversize_id_is_no_id_and_is_never_cut_short(header: str):
    assert who({header: "x" * (ID_CHARS + 1)}) == who({}) != who({header: "x" * ID_CHARS})


@pytest.mark.parametrize(("count", "hint"), [("0", False), ("1", True), ("", False)])
def test_retry_counter_above_zero_hints_at_a_retry(count: str, hint: bool):
    assert who({"x-stainless-retry-count": count}).retry_hint is hint


def test_a_key_for_one_user_or_project_says_whose_a_request_is_that_names_none():
    key = ProxyKey(id="k", shown="plm_", name="n", tenant="key:acme", users=("ada",), scopes=("lab",))
    said = who({}, key=key)
    assert (said.tenant, said.user, said.scope) == ("key:acme", "ada", "lab")


def test_a_key_for_several_users_leaves_a_request_that_names_none_without_one():
    key = ProxyKey(id="k", shown="plm_", name="n", tenant="key:acme", users=("ada", "bob"))
    assert who({}, key=key).user == ""
    assert who({"x-palimpsest-user": "bob"}, key=key).user == "bob"


@pytest.mark.parametrize(
    ("users", "scopes", "headers", "farthest"),
    [
        ((), (), {}, Reach.TENANT),
        (("ada", "bob"), (), {"x-palimpsest-user": "bob"}, Reach.USER),
        (("ada", "bob"), (), {}, Reach.CONVERSATION),
        (("ada",), (), {}, Reach.USER),
        ((), ("lab",), {}, Reach.TENANT),
        ((), ("lab", "home"), {}, Reach.CONVERSATION),
        (("ada",), ("lab", "home"), {"x-palimpsest-scope": "lab"}, Reach.USER),
    ],
)
def test_a_key_for_some_looks_no_further_than_what_is_theirs(
    users: tuple[str, ...], scopes: tuple[str, ...], headers: Json, farthest: Reach
):
    key = ProxyKey(id="k", shown="plm_", name="n", tenant="key:acme", users=users, scopes=scopes)
    assert who(headers, key=key).reach(Reach.TENANT) is farthest
    assert who(headers, key=key).reach(Reach.CONVERSATION) is Reach.CONVERSATION


def test_a_key_for_some_names_no_conversation_of_anybody_else():
    def named(users: tuple[str, ...] = (), scopes: tuple[str, ...] = (), **headers: str) -> tuple[str, ...]:
        key = ProxyKey(id="k", shown="plm_", name="n", tenant="key:acme", users=users, scopes=scopes)
        sent = {"x-palimpsest-conversation": "c"} | {f"x-palimpsest-{name}": value for name, value in headers.items()}
        return who(sent, key=key).client_ids

    of_several = named(("ada", "eve"))
    apart = [named(), named(("ada",)), named(("bob",)), of_several, named(("bob", "eve")), named(scopes=("lab",))]
    assert len(set(apart)) == len(apart)
    assert named(user="ada") == named(user="bob") == ("palimpsest:c",)
    assert named(("ada",)) == named(("ada",), scope="lab") == named(("ada", "eve"), user="ada") != of_several
    assert named(("ada",), ("lab", "home"), scope="lab") != named(("ada",), ("lab", "home"), scope="home")
    assert of_several == named(("eve", "ada"))


def test_a_key_for_some_serves_no_conversation_of_anybody_else():
    def serves(*users: str) -> tuple[str, ...]:
        key = ProxyKey(id="k", shown="plm_", name="n", tenant="key:acme", users=users)
        return who({"x-session-id": "child", "x-parent-session-id": "top"}, key=key).parent_ids

    assert serves() != serves("ada") != serves("bob")
