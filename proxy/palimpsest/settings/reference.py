"""The reference of all settings, generated from the policy: `config/default.yaml` and `docs/settings.md`."""

from __future__ import annotations

import ast
import json
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from inspect import getsource
from itertools import pairwise
from typing import Any, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from palimpsest.settings.describe import described
from palimpsest.settings.policy import KeyPolicy, Policy, UpstreamPolicy

COMMENT_COLUMNS = 100
BOOLEANS_IN_YAML = ("on", "off")

YAML_HEAD = """\
# Every setting with its default. A file of your own holds only what differs:
#   palimpsest serve --config mine.yaml        palimpsest check-config mine.yaml
# As environment variables: PALIMPSEST_LISTEN__PORT=9000 (two underscores between section and setting). PALIMPSEST_PORT,
# _HOST, _WORKERS, _DATA and _UPSTREAM are short for the flags of those names. Flags beat environment beat file.
# Generated from proxy/palimpsest/settings/policy.py by scripts/settings.
"""

UPSTREAM_EXAMPLE = """\
  # A provider with another API, through LiteLLM:
  # - name: claude
  #   models: ["claude-*"]
  #   litellm: anthropic/*  # or a single model: bedrock/anthropic.claude-sonnet-4-5, ollama_chat/llama3
  #   key_env: ANTHROPIC_API_KEY
  #   settings: {num_retries: 2, fallbacks: [openai/gpt-4o], drop_params: true}
"""

MODELS_EXAMPLE = """\
# models:
#   writer: openai/gpt-4o-mini
#   selector: {model: ollama_chat/llama3, url: "http://127.0.0.1:11434", tokens_a_day: null}
"""

KEY_EXAMPLES = {"name": "acme", "key_env": "ACME_KEY"}

MARKDOWN_HEAD = """\
# Settings

A YAML file holds what differs from the defaults: `palimpsest serve --config mine.yaml`. `palimpsest check-config
mine.yaml` checks it and lists what it changes; `palimpsest settings` prints all settings as a file to start from.
`--config personal` is a preset that ships with the proxy: one memory for all conversations, on loopback only.
`--config` may be given several times, as `--config personal --config mine.yaml`: later ones win, setting by setting.

Every setting can also be given as an environment variable, `PALIMPSEST_<SECTION>__<SETTING>` (two underscores), where
lists are separated by commas or written as YAML. `PALIMPSEST_CONFIG` names the files. The flags `--host`, `--port`,
`--workers`, `--data` and `--upstream` have variables of the same names (`PALIMPSEST_PORT`). Flags beat environment
variables, and these beat the files.

Secrets never stand in the file: it names the environment variables that hold them. A mistake stops the start with the
file, the setting, the value and what is allowed. Patterns are those of `fnmatch`: `*`, `?` and `[...]`.

This page is generated from `proxy/palimpsest/settings/policy.py` by `scripts/settings`.
"""


def as_yaml() -> str:
    """`config/default.yaml`: every setting with its default, its description above it."""
    parts = [YAML_HEAD]
    for name, field in Policy.model_fields.items():
        parts.append("\n" + _comment(_meaning(name, field), ""))
        default = field.get_default()
        if name == "upstreams":
            parts.append("upstreams:\n" + _upstreams(default) + UPSTREAM_EXAMPLE)
        elif isinstance(default, BaseModel):
            parts.append(f"{name}:\n" + "".join(_section_yaml(default)))
        else:
            parts.append(f"{name}: {_scalar(default)}\n" + (MODELS_EXAMPLE if name == "models" else ""))
    return "".join(parts)


def as_markdown() -> str:
    """`docs/settings.md`: a table for each section."""
    parts = [MARKDOWN_HEAD]
    parts.append("\n" + _table(Policy, (name for name, field in Policy.model_fields.items() if not _section(field))))
    for name, field in Policy.model_fields.items():
        if inner := _section(field):
            parts.append(f"\n## {name}{'[]' if _is_list(field) else ''}\n\n{_meaning(name, field)}\n\n")
            parts.append(_table(inner, inner.model_fields))
            for nested, deeper in inner.model_fields.items():
                if item := _section(deeper):
                    parts.append(f"\n### {name}.{nested}[]\n\n{descriptions(inner)[nested]}\n\n")
                    parts.append(_table(item, item.model_fields))
    return "".join(parts)


def _section_yaml(section: BaseModel) -> Iterator[str]:
    """The settings of a section as YAML, each below a comment that describes it."""
    for name, field in type(section).model_fields.items():
        yield _comment(descriptions(type(section))[name], "  ") + f"  {name}: {_scalar(getattr(section, name))}\n"
        if field.annotation == tuple[KeyPolicy, ...]:
            yield _keys()


def _upstreams(upstreams: tuple[UpstreamPolicy, ...]) -> str:
    """The upstreams as YAML: the first with every setting described, others with what they set."""
    first, *others = upstreams
    lines = []
    for name, description in descriptions(UpstreamPolicy).items():
        lines.append(_comment(description, "    ") + f"    {name}: {_scalar(getattr(first, name))}\n")
    for other in others:
        lines += [f"    {name}: {_scalar(getattr(other, name))}\n" for name in sorted(other.model_fields_set)]
        lines[-len(other.model_fields_set)] = "  - " + lines[-len(other.model_fields_set)].lstrip()
    return "  -" + "".join(lines)[3:]


def _keys() -> str:
    """An example of proxy keys, commented out."""
    lines = []
    for name, field in KeyPolicy.model_fields.items():
        value = KEY_EXAMPLES[name] if name in KEY_EXAMPLES else _scalar(field.get_default())
        lines.append(f"  #     {name}: {value}  # {descriptions(KeyPolicy)[name]}\n")
    return "  # keys:\n" + "  #   - " + lines[0].removeprefix("  #     ") + "".join(lines[1:])


@cache
def descriptions(section: type[BaseModel]) -> Mapping[str, str]:
    """What the settings of a section mean: the text below each in the source, which nobody else needs to load."""
    (source,) = ast.parse(getsource(section)).body
    assert isinstance(source, ast.ClassDef)
    return {
        setting.target.id: " ".join(str(text.value.value).split())
        for setting, text in pairwise(source.body)
        if isinstance(setting, ast.AnnAssign) and isinstance(setting.target, ast.Name)
        if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant)
    }


def _comment(text: str, indent: str) -> str:
    prefix = f"{indent}# "
    wrapped = textwrap.wrap(
        text,
        COMMENT_COLUMNS,
        initial_indent=prefix,
        subsequent_indent=prefix,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(wrapped) + "\n"


def _scalar(value: Any) -> str:
    """A value as YAML on one line."""
    text = json.dumps(value, default=str)
    bare = text.strip('"')
    is_plain = bool(re.match(r"[A-Za-z~]", bare)) and bare not in BOOLEANS_IN_YAML
    return bare if is_plain else text


def _section(field: FieldInfo) -> type[BaseModel] | None:
    """The model of a section or of list items in a setting; None: it is a plain one."""
    kinds = (field.annotation, *get_args(field.annotation))
    return next((kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)), None)


def _meaning(name: str, field: FieldInfo) -> str:
    """What a setting at the top means; of a section without a description, what its model is."""
    return descriptions(Policy).get(name) or (_section(field) or BaseModel).__doc__ or ""


def _is_list(field: FieldInfo) -> bool:
    return bool(get_args(field.annotation))


def _table(section: type[BaseModel], names: Iterable[str]) -> str:
    lines = ["| setting | default | allowed | meaning |\n", "|---|---|---|---|\n"]
    for name in names:
        field = section.model_fields[name]
        if _section(field) and not _is_list(field):
            continue
        default = "required" if field.is_required() else f"`{_scalar(field.get_default(call_default_factory=True))}`"
        allowed = described(field).replace("|", "\\|")
        lines.append(f"| `{name}` | {default} | {allowed} | {descriptions(section)[name]} |\n")
    return "".join(lines)
