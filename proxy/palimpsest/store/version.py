"""The version of the tables, which is kept beside them: databases of other versions are refused."""

from __future__ import annotations

VERSION = 25  # of `store/schema.py`: rises with every change of it


def refusal_of(version: int) -> str:
    """Why a database of this version cannot be used, and what to do; "": it can."""
    if version > VERSION:
        return f"a newer palimpsest wrote it (version {version}, known {VERSION}): install that one"
    if version < VERSION:
        return (
            f"a build before the first release wrote it (version {version}, known {VERSION}): run `palimpsest export` "
            "of that build, and `palimpsest import` of this one into another data folder"
        )
    return ""
