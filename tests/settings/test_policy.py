from collections.abc import Iterator
from typing import Any

import pytest
from palimpsest.domain import Mode
from palimpsest.settings.policy import (
    FactsPolicy,
    KeyPolicy,
    ListenPolicy,
    MemoryPolicy,
    Policy,
    PressurePolicy,
    RecallPolicy,
    TenantPolicy,
    UpstreamPolicy,
)
from palimpsest.settings.reference import descriptions
from pydantic import BaseModel, ValidationError

HELD = UpstreamPolicy(auth="held")
ACME = KeyPolicy(name="acme", key_env="ACME_KEY")


def sections(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    yield model
    for field in model.model_fields.values():
        inner = [field.annotation, *getattr(field.annotation, "__args__", ())]
        for kind in inner:
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                yield from sections(kind)


def test_every_field_says_what_it_is_for() -> None:
    silent = [
        f"{section.__name__}.{name}"
        for section in sections(Policy)
        for name, field in section.model_fields.items()
        if not (
            descriptions(section).get(name) or (isinstance(field.default, BaseModel) and type(field.default).__doc__)
        )
    ]
    assert silent == []


def test_every_section_is_frozen_and_refuses_what_it_does_not_know() -> None:
    kinds = set(sections(Policy))
    assert {KeyPolicy, UpstreamPolicy, PressurePolicy} <= kinds
    assert all(kind.model_config["frozen"] and kind.model_config["extra"] == "forbid" for kind in kinds)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
def test_loopback_addresses_are_known(host: str) -> None:
    assert ListenPolicy(host=host).is_loopback


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.2", "", "example.org"])
def test_any_other_address_is_not_loopback(host: str) -> None:
    assert not ListenPolicy(host=host).is_loopback


@pytest.mark.parametrize(("said", "meant"), [(True, Mode.ON), (False, Mode.OFF), ("read-only", Mode.READ_ONLY)])
def test_on_and_off_mean_modes_also_where_yaml_reads_booleans(said: object, meant: Mode) -> None:
    assert MemoryPolicy.model_validate({"mode": said}).mode is meant


@pytest.mark.parametrize(("said", "is_on"), [(False, False), ("off", False), ("suggest", True), ("use", True)])
def test_facts_are_off_also_where_yaml_reads_a_boolean(said: object, is_on: bool) -> None:
    assert FactsPolicy.model_validate({"policy": said}).is_on is is_on


def test_nobody_plans_also_where_yaml_reads_off_as_a_boolean() -> None:
    assert RecallPolicy.model_validate({"controller": False}).controller == "off"


@pytest.mark.parametrize(
    ("section", "values", "words"),
    [
        (PressurePolicy, {"window_tokens": {"gpt-*": 0}}, "greater than 0"),
        (MemoryPolicy, {"deadline_ms": float("nan")}, "finite"),
        (UpstreamPolicy, {"url": "api.openai.com/v1"}, "must begin with http:// or https://"),
        (UpstreamPolicy, {"url": "ftp://host"}, "must begin with http:// or https://"),
        (UpstreamPolicy, {"url": "https://sk-secret@host/v1"}, "must not contain a credential"),
        (UpstreamPolicy, {"url": "https://host/v1?key=x"}, "must not contain a query"),
        (UpstreamPolicy, {"url": "http://host/v1/chat/completions/"}, "url must end before /chat/completions"),
        (UpstreamPolicy, {"url": "http://localhost:99999/v1"}, "must name a port from 0 to 65535"),
        (UpstreamPolicy, {"key_env": "OPENAI_API_KEY"}, "is not used with auth forward"),
        (UpstreamPolicy, {"models": []}, "at least 1 item"),
        (UpstreamPolicy, {"url": ""}, "url must name a provider, unless litellm names a model"),
        (UpstreamPolicy, {"settings": {"num_retries": 1}}, "settings belong to LiteLLM: name a model in litellm"),
        (UpstreamPolicy, {"litellm": "claude-sonnet-4-5"}, "should match pattern"),
        (UpstreamPolicy, {"litellm": "anthropic/claude-*"}, "should match pattern"),
        (UpstreamPolicy, {"litellm": "*"}, "should match pattern"),
        (UpstreamPolicy, {"litellm": "a/b", "settings": {"api_key": "x"}}, "api_key is set by key_env"),
        (UpstreamPolicy, {"litellm": "a/b", "settings": {"api_base": "x"}}, "api_base is set by url"),
        (UpstreamPolicy, {"litellm": "a/b", "settings": {"aws_secret_access_key": "x"}}, "write os.environ/NAME"),
        (
            UpstreamPolicy,
            {"litellm": "a/b", "settings": {"fallbacks": [{"model": "c/d", "api_key": "sk-x"}]}},
            r"fallbacks\.0\.api_key must not be written here",
        ),
        (UpstreamPolicy, {"litellm": "a/b", "settings": {"fallbacks": "c/d"}}, "fallbacks must be a list"),
        (UpstreamPolicy, {"litellm": "a/b", "settings": {"fallbacks": [{"api_base": "x"}]}}, "that name a model"),
        (UpstreamPolicy, {"litellm": "a/b", "auth": "forward", "settings": {"fallbacks": ["c/d"]}}, "auth to held"),
        (TenantPolicy, {"keys": [ACME], "static": "me"}, "one or the other"),
        (TenantPolicy, {"keys": [ACME, {"name": "acme", "key_env": "OTHER"}]}, "name must be unique; acme"),
        (TenantPolicy, {"keys": [ACME, {"name": "other", "key_env": "ACME_KEY"}]}, "key_env must be unique"),
        (Policy, {"upstreams": [UpstreamPolicy(), UpstreamPolicy()]}, "upstreams: name must be unique; default"),
        (Policy, {"upstreams": []}, "at least 1 item"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(
    section: type[BaseModel], values: dict[str, Any], words: str
) -> None:
    with pytest.raises(ValidationError, match=words):
        section.model_validate(values)


def test_a_litellm_model_has_no_url_and_gets_no_credential_of_the_client_unless_it_is_told_to() -> None:
    upstream = UpstreamPolicy(litellm="anthropic/claude-sonnet-4-5")
    assert (upstream.url, upstream.auth) == ("", "held")
    assert UpstreamPolicy(litellm="ollama/*", url="http://localhost:11434", auth="forward").auth == "forward"
    assert UpstreamPolicy.model_validate_json(upstream.model_dump_json()) == upstream


def test_variables_are_found_wherever_settings_name_them() -> None:
    settings = {
        "aws_secret_access_key": "os.environ/AWS",
        "fallbacks": [{"model": "a/b", "api_key": "os.environ/OTHER"}],
        "timeout": 5,
    }
    upstream = UpstreamPolicy(litellm="bedrock/x", key_env="KEY", settings=settings)
    assert upstream.variables == [
        ("key_env", "KEY"),
        ("settings.aws_secret_access_key", "AWS"),
        ("settings.fallbacks.0.api_key", "OTHER"),
    ]


def test_a_credential_in_a_url_is_refused_without_repeating_it() -> None:
    with pytest.raises(ValidationError) as refused:
        UpstreamPolicy(url="https://sk-secret@host/v1")
    assert "sk-secret" not in str(refused.value)


def test_proxy_keys_are_never_forwarded_to_a_provider() -> None:
    with pytest.raises(ValidationError, match="would send the proxy's keys to upstream openai"):
        Policy(tenants=TenantPolicy(keys=(ACME,)))
    assert Policy(tenants=TenantPolicy(keys=(ACME,)), upstreams=(HELD,))


def test_off_loopback_a_held_credential_needs_keys() -> None:
    everyone = ListenPolicy(host="0.0.0.0")
    with pytest.raises(
        ValidationError, match=r"listen\.host 0\.0\.0\.0 can be reached by others, and upstream default"
    ):
        Policy(listen=everyone, upstreams=(HELD,))
    assert Policy(upstreams=(HELD,))
    assert Policy(listen=everyone, upstreams=(HELD,), tenants=TenantPolicy(keys=(ACME,)))


def test_off_loopback_a_litellm_model_needs_keys_too_as_it_may_find_credentials_of_this_machine() -> None:
    claude = UpstreamPolicy(litellm="bedrock/claude", auth="forward")
    with pytest.raises(ValidationError, match="on the proxy's credit"):
        Policy(listen=ListenPolicy(host="0.0.0.0"), upstreams=(claude,))


def test_off_loopback_one_memory_for_everyone_is_refused() -> None:
    everyone, one = ListenPolicy(host="0.0.0.0"), TenantPolicy(static="me")
    shared = MemoryPolicy.model_validate({"reach": "tenant"})
    with pytest.raises(ValidationError, match="all of them would share one memory"):
        Policy(listen=everyone, tenants=one, memory=shared)
    assert Policy(tenants=one, memory=shared)
    assert Policy(listen=everyone, tenants=one)
    assert Policy(listen=everyone, memory=shared)


@pytest.mark.parametrize(
    "listen",
    [
        {"allowed_hosts": ["http://proxy.lan"]},
        {"allowed_hosts": ["proxy.lan:8484"]},
        {"allowed_origins": ["chat.example.com"]},
        {"allowed_origins": ["https://chat.example.com/"]},
    ],
)
def test_names_and_origins_that_could_never_match_are_refused(listen: dict[str, list[str]]) -> None:
    with pytest.raises(ValidationError, match="must be"):
        ListenPolicy.model_validate(listen)
    ListenPolicy(allowed_hosts=("proxy.lan", "*.lan", "[::1]"), allowed_origins=("null", "*", "https://*.lan:3000"))
