"""The table of features agrees with their folders."""

from pathlib import Path

import palimpsest.features
import pytest
from palimpsest.commands.cli import command_names
from palimpsest.features.registry import COMMANDS, FEATURES, Feature
from palimpsest.settings.policy import Policy

FOLDER = Path(palimpsest.features.__path__[0])


def test_every_folder_is_a_row() -> None:
    folders = {file.parent.name for file in FOLDER.glob("*/__init__.py")}
    assert sorted(folders) == sorted(feature.name for feature in FEATURES)


@pytest.mark.parametrize("feature", FEATURES, ids=lambda feature: feature.name)
def test_a_row_names_the_parts_that_are_there(feature: Feature) -> None:
    parts = {file.stem for file in (FOLDER / feature.name).glob("*.py")}
    declared = {*feature.commands, *(["routes"] if feature.has_routes else []), *(["toolset"] if feature.tools else [])}
    assert declared <= parts
    assert {"command", "routes", "toolset"} & parts <= declared


def test_a_default_policy_extends_memory_by_nothing() -> None:
    assert [feature.name for feature in FEATURES if feature.extends(Policy())] == []


def test_every_command_of_a_feature_is_one_of_the_command_line() -> None:
    names = [name for added in COMMANDS.values() for name in added]
    assert len(names) > 5 and {*names} <= {*command_names()}
