"""
The loading of the policy: flags beat environment variables, these beat the files, and a file beats the one named before
it and the defaults.

Every mistake is a `PolicyError` that names where the value came from, the key, the value and what is allowed.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, get_origin

import yaml
from pydantic import ValidationError

from palimpsest.domain import Mode, frozen
from palimpsest.domain.errors import PolicyError
from palimpsest.settings.embedding_models import embedding_model, unknown_model_error
from palimpsest.settings.policy import ENVIRON, KeyPolicy, Location, Policy, settings_by_path

PREFIX = "PALIMPSEST_"
PAPERS = ("lantern", "calmem", "whenloss", "lightmem3", "lightmem-slm")
PRESETS = ("default", "personal", *(f"paper-{name}" for name in PAPERS))  # that somebody who serves may name
CONFIG_ENV = "PALIMPSEST_CONFIG"
POLICY_ENV = "PALIMPSEST_POLICY_JSON"  # how a start hands its whole policy to its worker processes
POLICY_FILE_ENV = "PALIMPSEST_POLICY_FILE"  # file of the one that came into force since, if any
SOURCE_ENV = "PALIMPSEST_SOURCE_JSON"  # and where it came from, so that they can read it anew
TOKEN_ENV = "PALIMPSEST_ADMIN_TOKEN"
TOKEN_FILE_ENV = "PALIMPSEST_ADMIN_TOKEN_FILE"
SECRET_ENV = "PALIMPSEST_SECRET"

WRAPPED_BY_ENV = "PALIMPSEST_WRAPPED_BY"  # for a proxy: process id of the `palimpsest wrap` with which it ends
WRAPPED_AT_ENV = "PALIMPSEST_WRAPPED_AT"  # for a wrapped command: the URL of its proxy
SERVER_KEY_ENV = "PALIMPSEST_SERVER_KEY"  # the key for the machine that keeps the memory
URL_ENV = "PALIMPSEST_URL"  # for `palimpsest hook` and `palimpsest mcp`: the address of the proxy
KEY_ENV = "PALIMPSEST_API_KEY"  # likewise: the key by which it knows the caller

# Read elsewhere, so not settings of the policy: by the scripts, and by the tests of real clients.
NOT_SETTINGS = frozenset(
    {
        *(CONFIG_ENV, POLICY_ENV, POLICY_FILE_ENV, SOURCE_ENV, TOKEN_ENV, TOKEN_FILE_ENV, SECRET_ENV),
        *(WRAPPED_BY_ENV, WRAPPED_AT_ENV),
        *(SERVER_KEY_ENV, URL_ENV, KEY_ENV),
        "PALIMPSEST_CLIENTS",
        "PALIMPSEST_VENV",
    }
)

# Short names, as flags (`--port`) and in the environment (`PALIMPSEST_PORT`).
SHORT = {
    "host": "listen.host",
    "port": "listen.port",
    "workers": "listen.workers",
    "data": "data",
    "model": "model.name",
    "server": "server.url",
    "key_file": "server.key_file",
    "insecure": "server.insecure",
}
FORWARDING = ("data", "listen", "upstreams", "tenants", "limits")
"""Sections that say where requests go, who may send them, and where the proxy listens."""

MOST_VALUES, MOST_DEPTH = 100_000, 50  # of a YAML file: more than ten thousand keys of callers, and none so deep
UPSTREAM = "upstream"  # one more short name: the URL of the only upstream

Tree = dict[str, Any]


@frozen
class _Layer:
    """The settings of one origin, under the name that the operator knows it by."""

    origin: str
    tree: Tree

    def sets(self, location: Location) -> bool:
        """Whether this layer sets anything at, above or below a location. Lists are set as a whole."""
        node: Any = self.tree
        for part in location:
            if not isinstance(node, dict):
                return True
            if part not in node:
                return False
            node = node[part]
        return True


def load(
    files: Sequence[Path] | None,
    environment: Mapping[str, str],
    flags: Mapping[str, str | int | None],
    sections: Sequence[str] = (),
) -> Policy:
    """
    Load the policy.

    Args:
        files: YAML files or bare names of shipped presets (`personal`), of which a later one wins; None: what
            `PALIMPSEST_CONFIG` names, or else only the defaults.
        environment: the variables of the process.
        flags: short names (`SHORT`, `upstream`) to values; None: not given.
        sections: of the settings, to leave out all others; (): all of them.

    Raises:
        PolicyError: a setting is wrong, or a variable that holds a key is not set.
    """
    layers = [_within(_file_layer(file), sections) for file in files_named(files, environment)]
    named = _variables_named(layers)
    layers += [_within(layer, sections) for layer in _environment_layers(environment, named)]
    given = {name: value for name, value in flags.items() if value is not None}
    layers += [
        _Layer(f"--{name.replace('_', '-')}", _tree_of(SHORT[name], value))
        for name, value in given.items()
        if name in SHORT
    ]
    if given.get(UPSTREAM) == "":  # a variable of a script is not set: its requests would go to OpenAI
        raise PolicyError("--upstream: is empty; name the provider's base URL, or leave the flag out for the default")
    upstreams = {"PALIMPSEST_UPSTREAM": environment.get("PALIMPSEST_UPSTREAM"), "--upstream": given.get(UPSTREAM)}
    tree: Tree = {}
    for layer in layers:
        tree = _merged(tree, layer.tree)
    for origin, url in upstreams.items():
        if url:
            layers.append(_Layer(origin, {"upstreams": _with_url(tree.get("upstreams"), str(url), origin)}))
            tree = _merged(tree, layers[-1].tree)
    policy = validated(tree, layers)
    _demand_keys(policy, environment, layers)
    _demand_language_models(policy, layers)
    _demand_model(policy, layers)
    return policy


def load_bare(
    files: Sequence[Path] | None, environment: Mapping[str, str], flags: Mapping[str, str | int | None]
) -> Policy:
    """The policy without memory, made of `FORWARDING` alone: what is wrong elsewhere does no harm. See `load`."""
    return without_memory(load(files, environment, flags, FORWARDING))


def without_memory(policy: Policy) -> Policy:
    """The same policy with memory off."""
    return policy.model_copy(update={"memory": policy.memory.model_copy(update={"mode": Mode.OFF})})


def value_at(tree: Tree, path: str) -> Any:
    """The value at a dotted path of a tree of settings."""
    for part in path.split("."):
        tree = tree[part]
    return tree


def handed_over(environment: Mapping[str, str]) -> Policy:
    """The policy that `palimpsest serve` passed to this worker process, or else the loaded one."""
    text = environment.get(POLICY_ENV)
    newer = Path(environment.get(POLICY_FILE_ENV) or os.devnull)
    if newer.is_file():  # a worker that takes the place of another one
        text = newer.read_text(encoding="utf-8")
    return validated(json.loads(text), [_Layer(POLICY_ENV, {})]) if text else load(None, environment, {})


def hand_over(policy: Policy) -> dict[str, str]:
    """Environment variables that make `handed_over` return this policy in another process."""
    return {POLICY_ENV: policy.model_dump_json()}


def proxy_keys(policy: Policy, environment: Mapping[str, str]) -> dict[str, KeyPolicy]:
    """The policy of each proxy key, by the key itself; empty if there are none."""
    return {environment[key.key_env]: key for key in policy.tenants.keys}


def admin_token(environment: Mapping[str, str]) -> str | None:
    """
    The token of the proxy's own endpoints; None: not set. Raises `PolicyError`: its file cannot be read or is empty.
    """
    if token := environment.get(TOKEN_ENV):
        return token
    if not (name := environment.get(TOKEN_FILE_ENV)):
        return None
    return _secret_in(Path(name), TOKEN_FILE_ENV, "token")


def server_key(policy: Policy, environment: Mapping[str, str]) -> str:
    """The key, from the environment or a file, of the machine that keeps memory; "": none; raises as `admin_token`."""
    if key := environment.get(SERVER_KEY_ENV):
        return key
    file = policy.server.key_file
    return _secret_in(file, "server.key_file", "key") if policy.server.url and file else ""


def _secret_in(file: Path, setting: str, what: str) -> str:
    """The secret in a file; raises PolicyError where it is empty or cannot be read."""
    try:
        secret = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as cause:
        raise PolicyError(f"{setting}: cannot read {file}: {cause}") from cause
    if not secret:
        raise PolicyError(f"{setting}: {file} is empty: write the {what} into it, or do not name it")
    return secret


def shipped(name: str) -> Path:
    """A file or folder of `config/`: inside the package in an installed wheel, beside it in a checkout."""
    package = Path(__file__).parents[1]
    installed = package / "config" / name
    return installed if installed.exists() else package.parents[1] / "config" / name


def files_named(files: Sequence[Path] | None, environment: Mapping[str, str]) -> list[Path]:
    """The files that were named, or else those of `PALIMPSEST_CONFIG`, which are split at commas as other lists are."""
    if files:
        return list(files)
    return [Path(name.strip()) for name in environment.get(CONFIG_ENV, "").split(",") if name.strip()]


def preset_or_file(file: Path) -> Path:
    """The file itself, or the shipped preset of that bare name where there is no such file."""
    preset = shipped(f"{file}.yaml")
    return preset if not file.is_file() and file.name == str(file) and preset.is_file() else file


def read_yaml(file: Path) -> Tree:
    """Read a YAML mapping, empty from an empty file; raises `PolicyError`: it is none, or sets a key twice."""
    try:
        tree = _parsed(file.read_text(encoding="utf-8"), str(file))
    except (OSError, UnicodeDecodeError) as cause:
        raise PolicyError(f"{file}: cannot be read: {cause}") from cause
    if tree is None:
        return {}
    if not isinstance(tree, dict):
        raise PolicyError(f"{file}: must be a mapping of settings, is {type(tree).__name__}")
    return tree


def _parsed(text: str, origin: str) -> Any:
    try:
        return yaml.load(text, Loader=_Loader)
    except (yaml.YAMLError, ValueError) as cause:  # a day that no month has, a number of 5,000 digits
        told = " ".join(str(cause).split())
        if isinstance(cause, yaml.MarkedYAMLError) and (mark := cause.problem_mark):
            told = f"line {mark.line + 1}, column {mark.column + 1}: {cause.problem}"
        raise PolicyError(f"{origin}: is not YAML as settings take it: {told}") from cause


class _Loader(yaml.SafeLoader):
    """A YAML loader that refuses duplicate keys, of which PyYAML would use the last one, and what grows without end."""

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self._values = 0  # read so far, those that aliases repeat each time
        self._depth = 0
        self._sizes: dict[yaml.Node, int] = {}  # values in each node that was read to its end

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """Read a node; one too many or too deep, or an alias of what it stands in, is an error."""
        is_alias, before = self.check_event(yaml.AliasEvent), self._values
        self._depth += 1
        self._demand(self._depth <= MOST_DEPTH, f"nested more than {MOST_DEPTH} deep")
        node = super().compose_node(parent, index)
        self._depth -= 1
        if node is not None:
            self._demand(not is_alias or node in self._sizes, "an alias stands in what it repeats")
            self._values += self._sizes[node] if is_alias else 1
            self._sizes.setdefault(node, self._values - before)
        self._demand(self._values <= MOST_VALUES, f"more than {MOST_VALUES:,} values, with what aliases repeat")
        return node

    def _demand(self, is_fine: bool, otherwise: str) -> None:
        if not is_fine:
            raise yaml.composer.ComposerError(None, None, otherwise, self.get_mark())

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Read a mapping; a key that is set twice is an error."""
        keys = Counter(str(key.value) for key, _ in node.value)
        for key, _ in node.value:
            if keys[str(key.value)] > 1:
                raise yaml.constructor.ConstructorError(None, None, f"{key.value} is set twice", key.start_mark)
        return super().construct_mapping(node, deep)


# --- the layers ----------------------------------------------------------------------------------


def _file_layer(file: Path) -> _Layer:
    named, file = file, preset_or_file(file)
    if not file.exists() and file.name == str(named) and (near := get_close_matches(str(named), PRESETS, 1)):
        raise PolicyError(f"{named}: there is no such file or preset; did you mean {near[0]}?")
    return _Layer(str(file), read_yaml(file))


def _within(layer: _Layer, sections: Sequence[str]) -> _Layer:
    """A layer with these sections only; (): with all."""
    return _Layer(layer.origin, {k: v for k, v in layer.tree.items() if k in sections}) if sections else layer


def _variables_named(layers: Sequence[_Layer]) -> frozenset[str]:
    """The variables that files name as holding a key: no settings, even if they begin like one."""

    def walk(node: Any) -> Iterator[str]:
        """The variables that a tree of settings names."""
        if isinstance(node, dict):
            for key, value in node.items():
                yield from [str(value)] if key == "key_env" else walk(value)
        elif isinstance(node, list):
            for value in node:
                yield from walk(value)
        elif isinstance(node, str) and node.startswith(ENVIRON):
            yield node.removeprefix(ENVIRON)

    return frozenset(name for layer in layers for name in walk(layer.tree))


def _environment_layers(environment: Mapping[str, str], named: frozenset[str]) -> list[_Layer]:
    """One layer of settings for each variable that sets one; unknown variables are errors."""
    paths = {PREFIX + path.upper().replace(".", "__"): path for path in settings_by_path()}
    paths |= {PREFIX + name.upper(): path for name, path in SHORT.items()}
    layers = []
    for variable, text in sorted(environment.items()):
        if not variable.startswith(PREFIX) or variable in NOT_SETTINGS | named | {PREFIX + UPSTREAM.upper()}:
            continue
        if variable not in paths:
            near = get_close_matches(variable, [*paths, *NOT_SETTINGS], 1)
            hint = f"did you mean {near[0]}?" if near else "palimpsest settings lists them all"
            raise PolicyError(f"environment: {variable}: no such setting; {hint}")
        if text:  # set but empty is how compose files say "not set"
            path = paths[variable]
            layers.append(_Layer(f"environment: {variable}", _tree_of(path, _from_text(path, text, variable))))
    return layers


def _from_text(path: str, text: str, variable: str) -> Any:
    """Parse the text of a variable as the value of a setting: plain, a list, or a YAML mapping."""
    kind = get_origin(settings_by_path()[path].annotation)
    if kind is tuple and not text.lstrip().startswith("["):
        return [part.strip() for part in text.split(",")]
    return _parsed(text, f"environment: {variable}") if kind in (tuple, dict) else text


def _with_url(upstreams: Any, url: str, origin: str) -> list[Tree]:
    """The upstreams with the URL of the only one replaced."""
    if not isinstance(upstreams, list) or not upstreams:
        return [{"url": url}]
    if len(upstreams) > 1:
        raise PolicyError(
            f"{origin}: {url}: sets a single upstream, but the file has {len(upstreams)}: change the file"
        )
    return [{**upstreams[0], "url": url}]


def _tree_of(path: str, value: Any) -> Tree:
    """A dotted path and its value as a tree."""
    *parents, last = path.split(".")
    tree: Tree = {last: value}
    for part in reversed(parents):
        tree = {part: tree}
    return tree


def _merged(under: Tree, over: Tree) -> Tree:
    """Merge two trees: mappings key by key, everything else as a whole."""
    return under | {
        key: _merged(under[key], value) if isinstance(value, dict) and isinstance(under.get(key), dict) else value
        for key, value in over.items()
    }


# --- the judgement -------------------------------------------------------------------------------


def validated(tree: Tree, layers: Sequence[_Layer] = ()) -> Policy:
    """The policy of a tree; raises PolicyError with every mistake and where it was set, if the layers are known."""
    try:
        return Policy.model_validate(tree)
    except ValidationError as error:
        from palimpsest.settings.describe import explanation, setting_of  # late: most policies hold no mistake

        # A list whose only item is wrong also counts as too short; once is enough.
        problems = [p for p in error.errors() if not (p["type"] == "too_short" and p["input"])]
        located = [(problem, setting_of(problem["loc"])) for problem in problems]
        explained = (_placed(at, layers, explanation(problem, at)) for problem, at in located)
        raise PolicyError("\n".join(dict.fromkeys(explained))) from error


def _origin(location: Location, layers: Sequence[_Layer]) -> str:
    """The origin of a value: the last layer that sets it, or all layers for a mistake of the whole."""
    origins = [layer.origin for layer in layers if layer.sets(location)]
    return (origins[-1] if location and origins else ", ".join(origins)) or "defaults"


def _placed(location: Location, layers: Sequence[_Layer], text: str) -> str:
    """What is wrong with a value, behind where it was set and its name."""
    return f"{_origin(location, layers)}: {'.'.join(map(str, location)) or 'settings'}: {text}"


def _demand_language_models(policy: Policy, layers: Sequence[_Layer]) -> None:
    """Refuse language models that no request would reach, or whose price nobody knows but is to be limited."""
    if policy.models or any(upstream.litellm for upstream in policy.upstreams):
        from palimpsest.settings.prices import mistakes  # late: most policies name no model

        for location, text in mistakes(policy):
            raise PolicyError(_placed(location, layers, text))


def _demand_model(policy: Policy, layers: Sequence[_Layer]) -> None:
    """Refuse an unknown embedding model, because memory would only ever search by words."""
    if embedding_model(policy.model.name) is None:
        raise PolicyError(_placed(("model", "name"), layers, unknown_model_error(policy.model.name)))


def _demand_keys(policy: Policy, environment: Mapping[str, str], layers: Sequence[_Layer]) -> None:
    """Refuse to start without the keys that the policy names."""
    named: list[tuple[Location, str]] = []
    for i, upstream in enumerate(policy.upstreams):
        named += [(("upstreams", i, setting), variable) for setting, variable in upstream.variables]
    named += [(("tenants", "keys", i, "key_env"), key.key_env) for i, key in enumerate(policy.tenants.keys)]
    named += [(("models", role, "key_env"), one.key_env) for role, one in policy.models.items() if one.key_env]
    for location, variable in named:
        if not environment.get(variable):
            text = f"environment variable {variable} is not set; it must hold the key"
            raise PolicyError(_placed(location, layers, text))
    keys = [environment[key.key_env] for key in policy.tenants.keys]
    if len(set(keys)) < len(keys):
        text = "two environment variables hold the same key; each must hold its own"
        raise PolicyError(_placed(("tenants", "keys"), layers, text))
