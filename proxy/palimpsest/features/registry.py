"""
The table of features: what each adds, and which policies want it. Its parts are imported when somebody asks for them.

A feature is a folder with some of these modules: `extension` (what it adds to a running memory), `routes` (its
operations over HTTP), `toolset` (its tools for agents), and one for each group of its commands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

from palimpsest.settings.policy import FACT_TOOLS, Policy

if TYPE_CHECKING:
    from palimpsest.edge.admin.operation import Parts, Routes
    from palimpsest.edge.admin.routes import OfFeature
    from palimpsest.features.tool import Toolset
    from palimpsest.memory.archive import Archive
    from palimpsest.memory.extension import Extension
    from palimpsest.memory.service import MemoryService


@dataclass(frozen=True, kw_only=True)
class Feature:
    """One of them; implements `memory.extension.ExtensionSource`."""

    name: str  # of its folder
    commands: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # names, by the module that adds them
    wants: Callable[[Policy], bool] = lambda _policy: False  # whether a policy has memory extended by it
    has_routes: bool = False
    tools: tuple[str, ...] = ()  # offered where the policy wants the feature

    def extends(self, policy: Policy) -> bool:
        """Whether the policy wants this feature's extension; see `ExtensionSource`."""
        return self.wants(policy)

    def extension(self, memory: MemoryService) -> Extension:
        """Make the feature's extension; see `ExtensionSource`."""
        made: Extension = self._part("extension").extension(memory)
        return made

    def routes(self, parts: Parts) -> Routes:
        """The operations of the feature over HTTP."""
        made: Routes = self._part("routes").ROUTES(parts)
        return made

    def toolset(self, archive: Archive, policy: Policy, off_for: frozenset[str]) -> Toolset:
        """The tools of the feature for agents. `off_for`: tenants for whom memory is switched off; "" everybody."""
        made: Toolset = self._part("toolset").toolset(archive, policy, off_for)
        return made

    def _part(self, name: str) -> Any:
        return import_module(f"palimpsest.features.{self.name}.{name}")


def _wants_items(policy: Policy) -> bool:
    items = policy.consolidation
    return (items.writer, items.recall, items.when) != ("off", "off", "off")


def _wants_assist(policy: Policy) -> bool:
    return bool(policy.models) or (policy.recall.controller, policy.recall.selector) != ("off", "score")


ASSISTANCE = Feature(name="assist", wants=_wants_assist)
"""What plans and selects for recall."""

FEATURES = (
    ASSISTANCE,
    Feature(
        name="facts",
        commands={"command": ("facts",)},
        wants=lambda policy: policy.facts.is_on,
        has_routes=True,
        tools=FACT_TOOLS,
    ),
    Feature(name="items", commands={"command": ("consolidate",)}, wants=_wants_items, has_routes=True),
    Feature(
        name="gaps",
        commands={"command": ("gaps",)},
        wants=lambda policy: policy.gaps.probes_per_hour > 0,
        has_routes=True,
    ),
    Feature(
        name="transfer",
        commands={
            "command": ("export", "import"),
            "backup_command": ("backup", "restore"),
            "migrate_command": ("migrate",),
        },
        has_routes=True,
    ),
    Feature(name="mcp", commands={"command": ("mcp",)}),
    Feature(name="page"),  # an application of its own: `app`
)

COMMANDS = {
    f"features.{feature.name}.{module}": names for feature in FEATURES for module, names in feature.commands.items()
}
"""The names of commands, by the module that adds them."""

OPERATIONS: tuple[OfFeature, ...] = tuple(feature.routes for feature in FEATURES if feature.has_routes)
