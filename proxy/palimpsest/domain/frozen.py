"""The decorator of value types, which the type checker keeps from being changed; and what of them is shown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")


def described(about: str, *, name: str = "", is_exported: bool = False, **given: Any) -> Any:
    """
    A field that is shown outside: in answers over HTTP, and as JSON on the command line.

    Args:
        about: what it holds, for the document of the API.
        name: by which it is known outside; "": its own.
        is_exported: whether an export keeps it; others follow from what is imported.
        given: as of `dataclasses.field`.
    """
    return field(metadata={"about": about, "name": name, "is_exported": is_exported}, **given)


@dataclass_transform(frozen_default=True, field_specifiers=(field, described))
def frozen(cls: type[T]) -> type[T]:
    """
    A dataclass with slots, compared and hashed by its fields, which are set once.

    Unlike `dataclass(frozen=True)`, which sets each field by `object.__setattr__` and takes five times as long to make
    a value, nothing stops an assignment at run time: that is the type checker's part. A request makes a hundred values,
    and took 6 % of its processor time for it.
    """
    return dataclass(slots=True, unsafe_hash=True)(cls)


def described_fields(of: Any) -> Iterator[tuple[str, Field[Any]]]:
    """The fields of a value type, or of a value, that are shown, by the name under which they are."""
    return ((one.metadata["name"] or one.name, one) for one in fields(of) if one.metadata)


def json_value(value: Any, has_defaults: bool = True) -> dict[str, Any]:
    """A value as JSON, by what its fields say of themselves; without defaults, as is a value within it, if so asked."""
    found = {}
    for name, one in described_fields(value):
        said = getattr(value, one.name)
        if has_defaults or one.default is MISSING or said != one.default:
            found[name] = json_value(said, has_defaults=False) if is_dataclass(said) else said
    return found
