import os
import re
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Any, get_args

import pytest
from palimpsest.domain import Generosity, Mode, Reach
from palimpsest.domain.errors import PolicyError
from palimpsest.settings.load import admin_token, hand_over, handed_over, load, proxy_keys, read_yaml, shipped
from palimpsest.settings.policy import AssistantPolicy, Policy, RetentionPeriods, settings_by_path

HOME = str(Path.home())


def policy_of(tmp_path: Path, text: str, environment: Mapping[str, str] | None = None, **flags: Any) -> Policy:
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    return load([file], environment or {}, flags)


def refusal(tmp_path: Path, text: str, environment: Mapping[str, str] | None = None, **flags: Any) -> str:
    with pytest.raises(PolicyError) as refused:
        policy_of(tmp_path, text, environment, **flags)
    return str(refused.value)


def flat(tree: Any) -> str:
    return " ".join(str(tree).split())


# --- the shipped files ---------------------------------------------------------------------------


def test_default_yaml_is_the_defaults() -> None:
    assert load([shipped("default.yaml")], {}, {}) == load(None, {}, {})


def test_personal_preset_is_one_memory_on_loopback() -> None:
    policy = load([Path("personal")], {}, {})
    assert (policy.memory.reach, policy.tenants.static, policy.listen.is_loopback) == (Reach.TENANT, "me", True)


@pytest.mark.parametrize(
    ("environment", "flags"),
    [({}, {"host": "0.0.0.0"}), ({"PALIMPSEST_LISTEN__HOST": "::"}, {}), ({}, {"host": "box"})],
)
def test_personal_preset_refuses_to_start_off_loopback(environment: dict[str, str], flags: dict[str, str]) -> None:
    with pytest.raises(PolicyError, match="all of them would share one memory"):
        load([Path("personal")], environment, flags)


# --- which layer wins ----------------------------------------------------------------------------


def test_flags_beat_environment_beat_file_beat_defaults(tmp_path: Path) -> None:
    text = "listen: {port: 1, workers: 2, host: 127.0.0.2, shutdown_seconds: 5}"
    environment = {"PALIMPSEST_LISTEN__PORT": "3", "PALIMPSEST_WORKERS": "4"}
    listen = policy_of(tmp_path, text, environment, port=5).listen
    assert (listen.port, listen.workers, listen.host, listen.shutdown_seconds) == (5, 4, "127.0.0.2", 5)


def test_a_flag_that_was_not_given_changes_nothing(tmp_path: Path) -> None:
    assert policy_of(tmp_path, "listen: {port: 1}", port=None).listen.port == 1


def test_a_variable_that_is_set_but_empty_changes_nothing(tmp_path: Path) -> None:
    assert policy_of(tmp_path, "listen: {port: 1}", {"PALIMPSEST_LISTEN__PORT": ""}).listen.port == 1


@pytest.mark.parametrize("given", ["40", "12.5"])
def test_generosity_may_be_a_number_in_a_file_and_in_a_variable(tmp_path: Path, given: str) -> None:
    assert policy_of(tmp_path, f"memory: {{generosity: {given}}}", {}).memory.generosity == float(given)
    assert policy_of(tmp_path, "", {"PALIMPSEST_MEMORY__GENEROSITY": given}).memory.generosity == float(given)
    assert policy_of(tmp_path, "memory: {generosity: sparing}", {}).memory.generosity is Generosity.SPARING


OTHERWISE = {
    "store.url": "postgresql://me@one.example.com:5432,two.example.com:5432/memory?target_session_attrs=read-write",
    "store.password_file": Path("/x"),
    "server.url": "https://box.example.com",
    "server.key_file": Path("/x"),
    "consolidation.keep": 0.5,
    "recall.floor": 0.4,
    "recall.kinds": ("semantic", "procedural"),
    "listen.allowed_origins": ("http://a", "http://b"),
    "memory.off_for_roles": ("side", "subagent"),
    "retention.tenants": {"a": RetentionPeriods(turns="9d")},
    "mcp.tools": ("search", "fetch"),
    "models": {"writer": AssistantPolicy(model="openai/gpt-4o-mini")},
    "model.folder": Path("/x"),
    "model.cache": Path("/x"),
    "model.name": "BAAI/bge-small-en-v1.5",
    "retention.max_store_bytes": "9GB",
    "consolidation.when": "03:00",
}
AS_TEXT = {
    "listen.allowed_origins": "http://a, http://b",
    "memory.off_for_roles": "side,subagent",
    "retention.tenants": "{a: {turns: 9d}}",
    "mcp.tools": "search, fetch",
    "recall.kinds": "semantic, procedural",
    "models": "{writer: openai/gpt-4o-mini}",
    "model.folder": "/x",
    "model.cache": "/x",
    "model.name": "BAAI/bge-small-en-v1.5",
}


def value_at(policy: Any, path: str) -> Any:
    for part in path.split("."):
        policy = getattr(policy, part)
    return policy


def other_than(default: Any, path: str) -> tuple[str, Any]:
    """A value that a setting may have and does not have by default, as text and as it is read."""
    if path in OTHERWISE:
        return AS_TEXT.get(path, str(OTHERWISE[path])), OTHERWISE[path]
    match default:
        case bool():
            return str(not default).lower(), not default
        case Enum():
            other = next(value for value in type(default) if value is not default)
            return str(other.value), other
        case int() | float():
            return str(default + 1), default + 1
        case Path():
            return "/x", Path("/x")
        case dict():
            return "{a: 1}", {"a": 1}
        case tuple() | None:
            return "a, b", ("a", "b")
        case _:
            choices = get_args(settings_by_path()[path].annotation) or ("9d",)  # else it is a period
            other = next(choice for choice in choices if choice != default)
            return other, other


def test_what_tools_are_told_in_the_environment_is_no_setting() -> None:
    told = {"PALIMPSEST_API_KEY": "sk-of-a-caller", "PALIMPSEST_URL": "http://127.0.0.1:8484"}
    assert load(None, told, {}) == load(None, {}, {})


@pytest.mark.parametrize("path", [p for p in settings_by_path() if p not in ("upstreams", "tenants.keys")])
def test_every_plain_setting_can_be_set_by_environment(path: str) -> None:
    default = value_at(load(None, {}, {}), path)
    text, expected = other_than(default, path)
    assert expected != default
    variable = "PALIMPSEST_" + path.upper().replace(".", "__")
    assert value_at(load(None, {variable: text}, {}), path) == expected


def test_lists_of_sections_come_from_the_environment_as_yaml() -> None:
    value = '[{name: a, url: "http://a/v1", models: [x]}, {name: b, url: "http://b/v1"}]'
    assert [u.name for u in load(None, {"PALIMPSEST_UPSTREAMS": value}, {}).upstreams] == ["a", "b"]


def test_config_variable_names_the_file_and_the_flag_beats_it(tmp_path: Path) -> None:
    one, other = tmp_path / "one.yaml", tmp_path / "other.yaml"
    one.write_text("listen: {port: 1}")
    other.write_text("listen: {port: 2}")
    environment = {"PALIMPSEST_CONFIG": str(one)}
    assert load(None, environment, {}).listen.port == 1
    assert load([other], environment, {}).listen.port == 2


def test_a_later_file_beats_an_earlier_one_setting_by_setting(tmp_path: Path) -> None:
    mine = tmp_path / "mine.yaml"
    mine.write_text("memory: {reach: user}\nlisten: {port: 3}")
    for policy in (
        load([Path("personal"), mine], {}, {}),
        load(None, {"PALIMPSEST_CONFIG": f"personal, {mine}"}, {}),
    ):
        assert (policy.tenants.static, policy.memory.reach, policy.listen.port) == ("me", "user", 3)
    assert load([mine, Path("personal")], {}, {}).memory.reach == "tenant"


def test_a_refusal_names_the_file_whose_value_is_in_force(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.yaml", tmp_path / "bad.yaml"
    good.write_text("memory: {reach: user}")
    bad.write_text("memory: {reach: bogus}")
    with pytest.raises(PolicyError, match=re.escape(str(bad))):
        load([good, bad], {}, {})


def test_upstream_flag_sets_the_url_of_the_only_upstream_and_keeps_the_rest(tmp_path: Path) -> None:
    (upstream,) = policy_of(
        tmp_path, "upstreams: [{name: mine, auth: held}]", upstream="http://localhost:1/v1"
    ).upstreams
    assert (upstream.name, upstream.auth, upstream.url) == ("mine", "held", "http://localhost:1/v1")
    assert load(None, {"PALIMPSEST_UPSTREAM": "http://e/v1"}, {}).upstreams[0].url == "http://e/v1"
    assert load(None, {"PALIMPSEST_UPSTREAM": "http://e/v1"}, {"upstream": "http://f"}).upstreams[0].url == "http://f"


def test_an_empty_upstream_flag_is_refused_and_an_empty_variable_counts_as_not_set() -> None:
    with pytest.raises(PolicyError, match="--upstream: is empty"):
        load(None, {}, {"upstream": ""})
    assert load(None, {"PALIMPSEST_UPSTREAM": ""}, {}) == load(None, {}, {})


def test_upstream_flag_is_refused_where_the_file_has_several(tmp_path: Path) -> None:
    text = "upstreams: [{name: a}, {name: b}]"
    assert refusal(tmp_path, text, upstream="http://x").startswith("--upstream: http://x: sets a single upstream, but")


def test_home_is_filled_in() -> None:
    policy = load(None, {"PALIMPSEST_MODEL__CACHE": "~/models"}, {})
    assert policy.model.cache == Path(HOME, "models")
    assert policy.data == Path(HOME, ".local/share/palimpsest")


# --- what is refused, and in which words ---------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("memory: {deadline_ms: 0}", "memory.deadline_ms: 0 is not allowed; allowed: a number, > 0"),
        ("listen: {port: many}", "listen.port: 'many' is not allowed; allowed: an integer, >= 0, <= 65535"),
        ("memory: {reach: world}", "memory.reach: 'world' is not allowed; allowed: conversation | user | tenant"),
        (
            "memory: {generosity: lavish}",
            "memory.generosity: 'lavish' is not allowed; allowed: sparing | balanced | generous or a number, >= 1",
        ),
        ("log: {format: xml}", "log.format: 'xml' is not allowed; allowed: console | json"),
        ("archive: {redact: maybe}", "archive.redact: 'maybe' is not allowed; allowed: true | false"),
        (
            "store: {url: 'postgresql://one,two/name'}",
            "store.url: names several hosts: add ?target_session_attrs=read-write",
        ),
        ("model: {folder: 3}", "model.folder: 3 is not allowed; allowed: a path or nothing"),
        (
            "memory: {off_for_models: gpt}",
            "memory.off_for_models: 'gpt' is not allowed; allowed: a list of text, not empty",
        ),
        (
            "memory: {off_for_roles: [boss]}",
            "memory.off_for_roles.0: 'boss' is not allowed; allowed: a list of main | sub",
        ),
        (
            "pressure: {window_tokens: {gpt: -1}}",
            "pressure.window_tokens.gpt: -1 is not allowed; allowed: a mapping of text, not empty to an integer, > 0",
        ),
        ("listen: 8484", "listen: 8484 is not allowed; allowed: mapping with host, port, workers"),
        ("upstreams: []", "upstreams: an empty list is not allowed; allowed: a list of mapping with name, url"),
        ("tenants: {keys: [{name: a}]}", "tenants.keys.0.key_env: must be set; allowed: text, not empty"),
        ("listen: {prot: 1}", "listen.prot: no such setting; did you mean listen.port?"),
        ("prot: 1", "prot: no such setting; did you mean listen.port?"),
        ("deadline_ms: 1", "deadline_ms: no such setting; did you mean memory.deadline_ms?"),
        ("upstreams: [{uri: x}]", "upstreams.0.uri: no such setting; did you mean upstreams.0.url?"),
        ("log: {zzz: 1}", "log.zzz: no such setting; known here: level, format"),
    ],
)
def test_a_refusal_names_file_key_value_and_what_is_allowed(tmp_path: Path, text: str, words: str) -> None:
    assert refusal(tmp_path, text).startswith(f"{tmp_path / 'mine.yaml'}: {words}")


def test_every_mistake_is_named_at_once(tmp_path: Path) -> None:
    assert len(refusal(tmp_path, "{listen: {port: x}, log: {level: y}}").splitlines()) == 2


def test_a_refusal_names_the_layer_that_said_it(tmp_path: Path) -> None:
    assert refusal(tmp_path, "listen: {port: 1}", {"PALIMPSEST_PORT": "x"}).startswith("environment: PALIMPSEST_PORT: ")
    assert refusal(tmp_path, "listen: {port: 1}", port=70000).startswith("--port: listen.port: 70000")


def doubled(repeats: str) -> str:
    """Lines of which each repeats the one before twice."""
    return "a0: &a0 {}\n" + "".join(f"a{at}: &a{at} {repeats.format(f'*a{at - 1}')}\n" for at in range(1, 60))


def test_an_alias_repeats_what_it_names(tmp_path: Path) -> None:
    text = "models:\n  reader: &one {model: a/b}\n  extractor: *one\n  judge: {<<: *one}"
    (tmp_path / "mine.yaml").write_text(text)
    assert read_yaml(tmp_path / "mine.yaml") == {
        "models": {name: {"model": "a/b"} for name in ("reader", "extractor", "judge")}
    }


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("listen: [", "is not YAML"),
        ("listen: 2024-13-45", "is not YAML"),
        ("- a\n- b", "must be a mapping of settings, is list"),
        ("log: {level: info}\nlisten: {port: 1}\nlog: {format: json}", "log is set twice"),
        (f"listen: {'[' * 5000}{']' * 5000}", "nested more than 50 deep"),
        ("listen: &own\n  host: *own", "an alias stands in what it repeats"),
        (doubled("[{0}, {0}]"), "more than 100,000 values"),
        (doubled("{{<<: [{0}, {0}]}}"), "more than 100,000 values"),
    ],
)
def test_a_file_that_is_no_plain_mapping_is_refused(tmp_path: Path, text: str, words: str) -> None:
    assert refusal(tmp_path, text).startswith(f"{tmp_path / 'mine.yaml'}: ")
    assert words in refusal(tmp_path, text)


def test_where_a_file_is_no_yaml_is_said_by_line_and_column(tmp_path: Path) -> None:
    said = refusal(tmp_path, "listen: {port: 1}\nlog: {level: info\nstore: {}")
    assert said.endswith("is not YAML as settings take it: line 3, column 6: expected ',' or '}', but got ':'")


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(PolicyError, match=r"nowhere\.yaml: cannot be read"):
        load([Path("nowhere.yaml")], {}, {})
    with pytest.raises(PolicyError, match="persnal: there is no such file or preset; did you mean personal"):
        load([Path("persnal")], {}, {})


def test_an_empty_file_is_the_defaults(tmp_path: Path) -> None:
    assert policy_of(tmp_path, "# nothing yet\n") == load(None, {}, {})


@pytest.mark.parametrize(
    ("variable", "near"),
    [("PALIMPSEST_LISTEN_PORT", "PALIMPSEST_LISTEN__PORT"), ("PALIMPSEST_ADMIN_TOKN", "PALIMPSEST_ADMIN_TOKEN")],
)
def test_a_misspelt_variable_is_refused_with_the_nearest_known_one(variable: str, near: str) -> None:
    with pytest.raises(PolicyError, match=f"environment: {variable}: no such setting; did you mean {near}?"):
        load(None, {variable: "1"}, {})


def test_a_key_pasted_where_its_variable_belongs_is_not_repeated(tmp_path: Path) -> None:
    said = refusal(tmp_path, "upstreams: [{auth: held, key_env: sk-proj-0123}]")
    assert "sk-proj" not in said
    assert "upstreams.0.key_env: what stands there is not allowed; allowed: text, the name of an environment" in said


# --- keys and tokens -----------------------------------------------------------------------------

KEYED = """
upstreams: [{auth: held, key_env: PROVIDER_KEY}]
tenants: {keys: [{name: acme, key_env: PALIMPSEST_KEY_ACME}, {name: beta, key_env: BETA_KEY}]}
"""


def test_keys_come_from_the_variables_that_the_file_names(tmp_path: Path) -> None:
    environment = {"PROVIDER_KEY": "p", "PALIMPSEST_KEY_ACME": "a", "BETA_KEY": "b"}
    policy = policy_of(tmp_path, KEYED, environment)
    assert {key: opened.name for key, opened in proxy_keys(policy, environment).items()} == {"a": "acme", "b": "beta"}


def test_a_key_that_is_not_there_stops_the_start(tmp_path: Path) -> None:
    said = refusal(tmp_path, KEYED, {"PROVIDER_KEY": "p", "PALIMPSEST_KEY_ACME": "a"})
    assert said.endswith(
        "mine.yaml: tenants.keys.1.key_env: environment variable BETA_KEY is not set; it must hold the key"
    )


def test_a_variable_that_litellms_settings_name_must_be_there_too(tmp_path: Path) -> None:
    text = "upstreams: [{litellm: bedrock/x, settings: {aws_secret_access_key: os.environ/PALIMPSEST_AWS}}]"
    assert policy_of(tmp_path, text, {"PALIMPSEST_AWS": "x"}).upstreams[0].litellm == "bedrock/x"
    assert refusal(tmp_path, text).endswith(
        "mine.yaml: upstreams.0.settings.aws_secret_access_key: environment variable PALIMPSEST_AWS is not set; it "
        "must hold the key"
    )


def test_a_provider_that_litellm_does_not_know_stops_the_start(tmp_path: Path) -> None:
    assert refusal(tmp_path, "upstreams: [{litellm: antropic/claude}]").endswith(
        "mine.yaml: upstreams.0.litellm: 'antropic/claude' is not allowed; LiteLLM has no provider antropic; did you "
        "mean anthropic?"
    )
    assert "'claude-x' is not allowed; allowed: text" in refusal(tmp_path, "upstreams: [{litellm: claude-x}]")


def test_an_embedding_model_that_nobody_knows_stops_the_start(tmp_path: Path) -> None:
    assert refusal(tmp_path, "model: {name: intfloat/multilingual-e5-smal}").endswith(
        "mine.yaml: model.name: 'intfloat/multilingual-e5-smal' is not allowed; there is no such embedding model; did "
        "you mean intfloat/multilingual-e5-small?"
    )
    assert refusal(tmp_path, "", {"PALIMPSEST_MODEL": "xyz"}).endswith("palimpsest model list says what there is")


def test_two_tenants_cannot_share_a_key(tmp_path: Path) -> None:
    said = refusal(tmp_path, KEYED, {"PROVIDER_KEY": "p", "PALIMPSEST_KEY_ACME": "s3cret", "BETA_KEY": "s3cret"})
    assert "two environment variables hold the same key" in said
    assert "s3cret" not in said


def test_admin_token_comes_from_the_environment_or_a_file(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("from-file\n")
    assert admin_token({}) is None
    assert admin_token({"PALIMPSEST_ADMIN_TOKEN_FILE": str(file)}) == "from-file"
    assert admin_token({"PALIMPSEST_ADMIN_TOKEN": "direct", "PALIMPSEST_ADMIN_TOKEN_FILE": str(file)}) == "direct"


def test_admin_token_file_that_holds_nothing_stops_the_start(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("\n")
    for name, words in (("empty", "is empty"), ("nowhere", "cannot read")):
        with pytest.raises(PolicyError, match=words):
            admin_token({"PALIMPSEST_ADMIN_TOKEN_FILE": str(tmp_path / name)})


# --- to the workers ------------------------------------------------------------------------------


def test_workers_get_the_very_policy_of_the_start(tmp_path: Path) -> None:
    policy = policy_of(tmp_path, "memory: {mode: off, reach: tenant}\npressure: {window_tokens: {x: 5}}", port=1)
    assert policy.memory.mode is Mode.OFF
    assert handed_over({**hand_over(policy), "PALIMPSEST_PORT": "2"}) == policy


def test_a_worker_that_was_handed_nothing_reads_for_itself() -> None:
    assert handed_over({"PALIMPSEST_PORT": "2"}).listen.port == 2


def test_shipped_files_are_found_from_any_working_folder(tmp_path: Path) -> None:
    before = Path.cwd()
    os.chdir(tmp_path)
    try:
        assert shipped("default.yaml").is_file()
    finally:
        os.chdir(before)


MODELS = [
    ("{writer: gpt-4o-mini}", r"models.writer: model gpt-4o-mini must be provider/model"),
    ("{writer: openai/*}", r"models.writer.model: 'openai/\*' is not allowed"),
    ("{wirter: openai/gpt-4o-mini}", "allowed: a mapping of controller | selector | writer | consolidator"),
    ("{writer: antropic/claude}", "models.writer.model: 'antropic/claude' is not allowed; LiteLLM has no provider"),
    ("{writer: {model: m, upstream: nowhere}}", "models.writer: there is no upstream nowhere; known: mine, claude"),
    ("{writer: {model: m, upstream: mine}}", "models.writer: upstream mine takes the client's credential"),
    ("{writer: {model: m, upstream: claude}}", "models.writer: upstream claude speaks Anthropic's API"),
    ("{writer: {model: m, upstream: mine, key_env: KEY}}", "url and key_env are those of the upstream"),
    ("{writer: {model: openai/x, key_env: NO_SUCH_KEY}}", "models.writer.key_env: environment variable NO_SUCH_KEY"),
    (
        "{writer: {model: openai/x, dollars_a_day: 1}}",
        "models.writer.dollars_a_day: the price of openai/x is not known",
    ),
    ("{writer: {model: openai/x, prompt_dollars: 1}}", "prompt_dollars and answer_dollars belong together"),
    ("{writer: {model: openai/x, tokens_a_dya: 1}}", "models.writer.tokens_a_dya: no such setting; did you mean"),
    ("{writer: {model: openai/x, url: 'http://a?key=1'}}", "models.writer.url: must not contain a query"),
]


@pytest.mark.parametrize(("models", "words"), MODELS, ids=[words for _, words in MODELS])
def test_models_that_could_not_be_asked_are_refused(tmp_path: Path, models: str, words: str) -> None:
    upstreams = "[{name: mine}, {name: claude, wire: anthropic, auth: held}]"
    with pytest.raises(PolicyError) as caught:
        policy_of(tmp_path, f"upstreams: {upstreams}\nmodels: {models}")
    assert words.replace("\\", "") in str(caught.value)


def test_a_model_is_named_alone_or_with_settings(tmp_path: Path) -> None:
    models = "{writer: openai/gpt-4o-mini, selector: {model: m, upstream: mine, tokens_a_day: null, dollars_a_day: 2}}"
    prices = models.replace("dollars_a_day: 2", "dollars_a_day: 2, prompt_dollars: 1, answer_dollars: 2")
    policy = policy_of(tmp_path, f"upstreams: [{{name: mine, auth: held}}]\nmodels: {prices}")
    assert policy.models["writer"] == AssistantPolicy(model="openai/gpt-4o-mini")
    assert (policy.models["selector"].tokens_a_day, policy.models["selector"].dollars_a_day) == (None, 2.0)
    assert handed_over(hand_over(policy)).models == policy.models
