"""The files of one of fastembed's models, fetched from the model hub by a process of its own."""

from __future__ import annotations

import os
import shutil
import sys
from functools import partial
from pathlib import Path

from palimpsest.settings.embedding_models import EmbeddingModel, embedding_models, text_embedding

CACHE_ENV = "FASTEMBED_CACHE_PATH"  # fastembed's own: where other programs of this machine may have put the model


def download(model: EmbeddingModel, target: Path) -> None:
    """Put the files of a model into an empty folder; raises what the libraries raise where it cannot be had."""
    cache = os.environ.get(CACHE_ENV)
    hub = cache or str(target / ".hub")
    fetch = partial(text_embedding().download_files_from_huggingface, model.source, hub, list(model.files))
    try:
        found = Path(fetch(local_files_only=True) if cache else "")
    except Exception:  # not there, or only a part of it
        found = Path()
    if not _is_whole(model, found):
        found = Path(fetch())
    for name in model.every_file:
        if (found / name).exists():
            (target / name).parent.mkdir(exist_ok=True)
            if cache:
                shutil.copyfile(found / name, target / name)
            else:  # a link into the hub's folder of files; gigabytes need not be there twice
                (found / name).resolve().replace(target / name)
    shutil.rmtree(target / ".hub", ignore_errors=True)


def _is_whole(model: EmbeddingModel, folder: Path) -> bool:
    return folder != Path() and all((folder / name).is_file() for name in model.files)


if __name__ == "__main__":
    try:
        download(embedding_models()[sys.argv[1]], Path(sys.argv[2]))
    except Exception as cause:
        sys.exit(f"{type(cause).__name__}: {' '.join(str(cause).split())}")
