"""Checks of this machine: embedding model, tokenizers, address to listen on, admin token."""

from __future__ import annotations

from collections.abc import Mapping
from http.client import HTTPException
from time import perf_counter

from palimpsest.commands.doctor.finding import Finding, failed, ok, refusal, warning
from palimpsest.commands.own_address import address, try_listening
from palimpsest.commands.probe import Occupant, ask_json, look
from palimpsest.domain.errors import MemoryFault, PolicyError
from palimpsest.memory.embedding.embedder import QUESTION_THREADS
from palimpsest.memory.embedding.encoder import load_encoder
from palimpsest.memory.embedding.minilm import PROBE
from palimpsest.memory.embedding.model import chosen_model, locate, missing_files
from palimpsest.memory.tokens import counter
from palimpsest.settings import load
from palimpsest.settings.policy import ModelPolicy, Policy

TOKEN_CHARS = 16  # below, a token can be guessed by whoever may ask as often as he likes
MILLISECONDS = 1000


def model(policy: ModelPolicy) -> Finding:
    """Whether the embedding model is installed and produces the right vectors."""
    check = "model"
    try:
        folder, wanted = locate(policy), chosen_model(policy)
    except MemoryFault as error:
        return refusal(check, error)
    if folder is None:
        found = f"no embedding model {wanted.name} on this machine: recall searches by words alone"
        if policy.folder:
            found += f"; {policy.folder} lacks {', '.join(missing_files(policy, policy.folder))}"
        if policy.download == "auto":
            install = f"palimpsest model install --model {wanted.name} ({wanted.megabytes:,} MB)"
            advice = f"{install}; a running proxy downloads it, too"
            return warning(check, found, advice)
        return warning(
            check, f"{found}, and model.download is never", f"put into model.folder: {', '.join(wanted.files)}"
        )
    try:
        encoder = load_encoder(wanted, folder, QUESTION_THREADS, for_questions=True)
        started = perf_counter()
        encoder.embed([PROBE])
    except MemoryFault as error:
        return refusal(check, error)
    return ok(
        check, f"{wanted.name} in {folder}: loads, one vector in {(perf_counter() - started) * MILLISECONDS:.0f} ms"
    )


def page(policy: Policy) -> Finding:
    """Where a running proxy shows what memory did."""
    if not policy.page.enabled:
        return ok("page", "off: page.enabled is false")
    return ok("page", f"{address(policy.listen)}/memory/ while the proxy runs; palimpsest open opens it")


def tokenizers() -> Finding:
    """Whether tokens can be counted; without that no request gets memory."""
    try:
        counter.warm((counter.COMMON, counter.OLD))
    except MemoryFault as error:
        return failed(
            "tokenizers", str(error), "install litellm again, which carries them, or unset TIKTOKEN_CACHE_DIR"
        )
    return ok("tokenizers", "o200k_base and cl100k_base load")


def port(policy: Policy) -> Finding:
    """Whether the proxy is listening at its address, or could."""
    check, where = "port", address(policy.listen)
    if policy.listen.port == 0:
        return ok(check, "a free one is chosen at each start")
    found = look(policy)
    if found is Occupant.OURS:
        return _check_running(policy, where)
    if found is Occupant.NOBODY:
        return _check_free(policy, where)
    if found is Occupant.WRAPPED:
        return ok(check, f"{where}: {found}")
    return failed(check, f"{where} is taken by {found}", "stop it, or choose another --port")


def _check_running(policy: Policy, where: str) -> Finding:
    """The finding for a port on which this proxy answers: ready, or with troubles."""
    try:
        reasons = ask_json(where, "/readyz").get("reasons", ())
    except (OSError, HTTPException, ValueError):
        return warning("port", f"{where}: the proxy is running, but does not report its state", "see its log")
    if reasons:
        return warning("port", f"{where}: the proxy is running; {'; '.join(reasons)}", "see its log")
    page = "; palimpsest open shows its page" if policy.page.enabled else ""
    return ok("port", f"{where}: the proxy is running and ready{page}")


def _check_free(policy: Policy, where: str) -> Finding:
    """The finding for a port that nobody answers on: free, or not possible."""
    try:
        try_listening(policy.listen)
    except OSError as cause:
        reason = (cause.strerror or str(cause)).lower()
        return failed("port", f"{where}: cannot listen there: {reason}", "choose another --host or --port")
    return ok("port", f"{where} is free: no proxy is running")


def admin_token(policy: Policy, environment: Mapping[str, str]) -> Finding:
    """Whether an admin token protects the proxy's own endpoints."""
    check = "admin token"
    try:
        token = load.admin_token(environment)
    except PolicyError as error:
        return refusal(check, error)
    if token is None and policy.listen.is_loopback:
        return ok(check, "not set: /memory/ answers only this machine")
    if token is None:
        return warning(check, "not set: /memory/ refuses everyone", f"set {load.TOKEN_ENV}")
    if len(token) < TOKEN_CHARS:
        return warning(check, f"shorter than {TOKEN_CHARS} characters, so it can be guessed", "choose a longer one")
    return ok(check, "set")
