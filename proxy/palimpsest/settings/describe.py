"""What each setting accepts, in words, read from the types and limits of the policy; and what a policy sets."""

from __future__ import annotations

import json
from collections.abc import Sequence
from difflib import get_close_matches
from enum import Enum
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from palimpsest.settings.load import value_at
from palimpsest.settings.policy import (
    FOREVER,
    LITELLM_MODEL,
    PERIOD,
    SIZE,
    UNLIMITED,
    VARIABLE_NAME,
    Location,
    Policy,
    settings_by_path,
)

_PERIOD = f"{FOREVER}, or a number with m, h, d or w, such as 180d"
PATTERNS = {
    VARIABLE_NAME: "the name of an environment variable",
    LITELLM_MODEL: "provider/model or provider/*",
    f"^{PERIOD}$": _PERIOD,
    f"^({PERIOD})?$": _PERIOD,
    SIZE: f"{UNLIMITED}, or bytes as a number with KB, MB, GB, TB or nothing",
}


def changes(policy: Policy) -> list[tuple[str, str]]:
    """The settings that differ from the defaults: dotted path and value as YAML."""
    tree, standard = policy.model_dump(mode="json"), Policy().model_dump(mode="json")
    said = ((path, value_at(tree, path)) for path in settings_by_path())
    return [(path, json.dumps(value)) for path, value in said if value != value_at(standard, path)]


def explanation(problem: Any, location: Location) -> str:
    """One of pydantic's validation errors, in words for the operator."""
    match problem["type"]:
        case "extra_forbidden":
            return f"no such setting; {nearest(location)}"
        case "missing":
            return f"must be set; allowed: {allowed(location)}"
        case "value_error":
            return str(problem["ctx"]["error"])
        case _:
            return f"{_shown(location, problem['input'])} is not allowed; allowed: {allowed(location)}"


def _shown(location: Location, value: Any) -> str:
    """The refused value, unless it may contain a key."""
    if isinstance(value, (dict, list)):
        return ("a " if value else "an empty ") + ("mapping" if isinstance(value, dict) else "list")
    return "what stands there" if location[-1] == "key_env" else repr(value)


def allowed(location: Location) -> str:
    """What the setting at a location accepts, from its type and its limits."""
    names = [part for part in location if isinstance(part, str)]
    for depth in range(len(names) - 1, -1, -1):  # below a mapping's or list's own key there is no field
        model = _model_at(tuple(names[:depth]))
        if model is not None and names[depth] in model.model_fields:
            field = model.model_fields[names[depth]]
            return described(field)
    return "settings"


def setting_of(location: Location) -> Location:
    """The location of the setting that pydantic means, which names each form that one of several forms could have."""
    for end in range(1, len(location)):
        field = settings_by_path().get(".".join(map(str, location[:end])))
        if field is not None and get_origin(field.annotation) is Union:
            return location[:end]
    return location


def described(field: FieldInfo) -> str:
    """What a field of the policy accepts, from its type and its limits."""
    return _described(field.annotation, field.metadata)


def nearest(location: Location) -> str:
    """The known setting that a misspelt one most likely means, or all settings of its section."""
    *parents, wrong = (str(part) for part in location)
    section = _model_at(location[:-1])
    siblings = list(section.model_fields) if section else []
    if near := get_close_matches(wrong, siblings, 1):
        return f"did you mean {'.'.join([*parents, near[0]])}?"
    elsewhere = {path.rpartition(".")[2]: path for path in settings_by_path()}
    if near := get_close_matches(wrong, elsewhere, 1):
        return f"did you mean {elsewhere[near[0]]}?"
    return f"known here: {', '.join(siblings)}"


def _model_at(location: Location) -> type[BaseModel] | None:
    """The policy section at a location; None: it is none."""
    model: type[BaseModel] | None = Policy
    is_key = False  # of a mapping: it names no field
    for part in location:
        if isinstance(part, int) or model is None:
            continue
        if is_key:
            is_key = False
            continue
        annotation = model.model_fields[part].annotation if part in model.model_fields else None
        is_key = get_origin(annotation) is dict
        inner = get_args(annotation)[-1 if is_key else 0] if get_origin(annotation) in (tuple, dict) else annotation
        model = inner if isinstance(inner, type) and issubclass(inner, BaseModel) else None
    return model


def _described(annotation: Any, limits: Sequence[Any]) -> str:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _described(arguments[0], [limit for field in arguments[1:] for limit in field.metadata])
    if origin is tuple:
        return f"a list of {_described(arguments[0], [])}"
    if origin is dict:
        return f"a mapping of {_described(arguments[0], [])} to {_described(arguments[1], [])}"
    if origin in (UnionType, Union):
        return " or ".join(_described(argument, []) for argument in arguments)
    if origin is Literal:
        return " | ".join(map(str, arguments))
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return " | ".join(str(member.value) for member in annotation)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return f"mapping with {', '.join(annotation.model_fields)}"
    words = {Any: "anything", bool: "true | false", int: "an integer", float: "a number", str: "text", Path: "a path"}
    return ", ".join([words.get(annotation, "nothing"), *filter(None, map(_limit, limits))])


def _limit(limit: Any) -> str:
    """A limit in words; "" for one that needs none."""
    for attribute, words in (("ge", ">="), ("gt", ">"), ("le", "<="), ("lt", "<")):
        if hasattr(limit, attribute):
            return f"{words} {getattr(limit, attribute)}"
    if hasattr(limit, "min_length"):
        return "not empty"
    return PATTERNS.get(getattr(limit, "pattern", ""), "")
