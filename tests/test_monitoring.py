"""The dashboard and the alert rules in `config/monitoring`: they parse, and ask for what there is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import orjson
import promql_parser
import pytest
import yaml
from palimpsest.commands.cli import command_names
from palimpsest.settings.policy import Policy
from palimpsest.telemetry.metrics import Metrics

FOLDER = Path(__file__).parent.parent / "config" / "monitoring"
DASHBOARD = orjson.loads((FOLDER / "dashboard.json").read_bytes())
RULES = [rule for group in yaml.safe_load((FOLDER / "alerts.yaml").read_text())["groups"] for rule in group["rules"]]
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
VARIABLES = {"$__rate_interval": "5m", "$__range": "6h", "$job": "palimpsest"}
SCRAPED = {"job", "instance"}  # labels that Prometheus adds


def known() -> dict[str, set[str]]:
    """Every series that a proxy has, with the names of its labels."""
    metrics = Metrics()
    metrics.request("main", "append", "", 10, 10, "someone")
    metrics.fault("recall")
    metrics.response(200)
    metrics.refused("origin")
    metrics.gauge("retention_rows_remaining", 1, "turns")
    metrics.gauge("retention_oldest_age_seconds", 1.0, "turns")
    metrics.observe("memory", 0.1)
    metrics.add("probes", 1, "found")
    metrics.gauge("gap", 0.0, "write")
    found: dict[str, set[str]] = {}
    for line in metrics.render().decode().splitlines():
        name, labels = re.fullmatch(r"(\w+)(?:\{(.*)\})? \S+", line).groups() if line[0] != "#" else ("", "")  # type: ignore[union-attr]
        found.setdefault(name, set()).update(re.findall(r"(\w+)=", labels or ""))
    return found


KNOWN = known()


def selectors(node: Any) -> Iterator[Any]:
    """The selectors in an expression."""
    if isinstance(node, promql_parser.VectorSelector):
        yield node
    elif isinstance(node, promql_parser.MatrixSelector):
        yield node.vector_selector
    else:
        for name in ("expr", "lhs", "rhs", "args"):
            below = getattr(node, name, None)
            for one in below if isinstance(below, list | tuple) else [below] if below is not None else []:
                yield from selectors(one)


def strangers(query: str) -> list[str]:
    """Metrics and labels of a query that no proxy has."""
    for name, value in VARIABLES.items():
        query = query.replace(name, value)
    found = list(selectors(promql_parser.parse(query)))
    assert found, query
    unknown = [one.name for one in found if one.name not in KNOWN and one.name != "up"]
    for one in found:
        labels = {matcher.name for matcher in one.matchers.matchers}
        unknown += labels - KNOWN.get(one.name, set()) - SCRAPED
    return unknown


def queries() -> list[str]:
    return [target["expr"] for panel in PANELS for target in panel["targets"]] + [rule["expr"] for rule in RULES]


@pytest.mark.parametrize("query", ["rate(palimpsest_gone_total[5m])", 'palimpsest_queued{worker="1"} > 1'])
def test_a_query_for_what_there_is_not_would_be_found(query: str) -> None:
    assert strangers(query)


def test_a_query_that_does_not_parse_would_be_found() -> None:
    with pytest.raises(ValueError, match=r"\S"):
        strangers("sum(rate(palimpsest_queued[5m])")


@pytest.mark.parametrize("query", queries(), ids=range(len(queries())))
def test_every_query_asks_for_what_there_is(query: str) -> None:
    assert strangers(query) == []


def test_every_panel_says_what_it_shows_and_has_a_place_of_its_own() -> None:
    assert DASHBOARD.keys() >= {"uid", "title", "schemaVersion", "panels", "templating", "time", "refresh"}
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
    for panel in PANELS:
        assert panel["title"] and panel["description"].endswith("."), panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"] and panel["datasource"]["type"] == "prometheus"
        assert [target["refId"] for target in panel["targets"]] == ["A", "B", "C"][: len(panel["targets"])]
    for one, other in combinations((panel["gridPos"] for panel in DASHBOARD["panels"]), 2):
        beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        assert beside or one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"], (one, other)
    assert all(panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24 for panel in PANELS)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_every_alert_says_what_is_wrong_and_what_to_do(rule: dict[str, Any]) -> None:
    assert rule.keys() <= {"alert", "expr", "for", "labels", "annotations"}
    assert rule["labels"]["severity"] in ("critical", "warning", "info")
    assert rule["annotations"].keys() == {"summary", "description", "action"}
    assert all(text.strip() for text in rule["annotations"].values())
    assert re.fullmatch(r"\d+[mh]", rule.get("for", "1m"))


def test_alerts_have_names_of_their_own() -> None:
    assert len({rule["alert"] for rule in RULES}) == len(RULES)


def test_every_promise_that_can_be_broken_is_watched() -> None:
    asked = " ".join(rule["expr"] for rule in RULES)
    for name in ("turns_lost_total", "store_up", "archive_lag_seconds", "queue_bytes", "pending", "_deadline"):
        assert name in asked


def test_what_to_do_names_settings_and_commands_that_exist() -> None:
    said = " ".join(rule["annotations"]["action"] for rule in RULES)
    for section, name in re.findall(r"\b(memory|listen|pressure)\.(\w+)", said):
        assert name in type(getattr(Policy(), section)).model_fields
    assert set(re.findall(r"`palimpsest ([\w-]+)", said)) <= set(command_names())
