"""The dashboard and what provisions it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from hybrid_runner.telemetry.metrics.instruments import INSTRUMENTS
from tests.support.prometheus import Promtool
from tests.support.promql import instruments_in, mistakes
from tools import dashboard

DEPLOY = Path(__file__).parents[2] / "deploy"
PROVISIONING = DEPLOY / "grafana" / "provisioning"
DASHBOARD: dict[str, Any] = json.loads(
    (DEPLOY / "grafana" / "dashboard.json").read_text(encoding="utf-8")
)
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
QUESTIONS = [target["expr"] for panel in PANELS for target in panel["targets"]]


def test_the_file_is_what_the_tool_writes() -> None:
    assert (DEPLOY / "grafana" / "dashboard.json").read_text(
        encoding="utf-8"
    ) == dashboard.rendered()


@pytest.mark.parametrize("question", QUESTIONS)
def test_each_question_names_declared_metrics_and_their_labels_alone(question: str) -> None:
    assert mistakes(question) == []


def test_a_figure_or_a_label_that_nobody_declared_is_seen() -> None:
    assert mistakes("sum(hybrid_runner_job)") == ["hybrid_runner_job is not declared"]
    assert mistakes("rate(hybrid_runner_pickup_seconds[5m])") == [
        "hybrid_runner_pickup_seconds is not declared"
    ]
    assert mistakes('hybrid_runner_slots{kind="a"}') == ["hybrid_runner_slots has no label kind"]
    assert mistakes("sum by (kind) (hybrid_runner_slots)") == ["nothing here has a label kind"]
    assert mistakes("go_goroutines > 5") == ["go_goroutines is not declared"]


def test_every_declared_figure_is_on_it() -> None:
    """A10 D8"""
    shown = set().union(*(instruments_in(question) for question in QUESTIONS))
    assert {instrument.name for instrument in INSTRUMENTS} - shown == set()


def test_panels_do_not_overlap_and_each_says_what_it_shows() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        assert place["x"] + place["w"] <= dashboard.COLUMNS
        taken |= cells
    assert all(panel["description"].endswith(".") for panel in PANELS)
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])


def test_every_column_of_the_table_has_a_name() -> None:
    [table] = [panel for panel in PANELS if panel["type"] == "table"]
    [names] = [
        step["options"]["renameByName"]
        for step in table["transformations"]
        if step["id"] == "organize"
    ]
    assert {f"Value #{target['refId']}" for target in table["targets"]} <= set(names)


def test_every_question_is_one_that_prometheus_understands(
    promtool: Promtool, tmp_path: Path
) -> None:
    rules = [
        {"record": f"question:{number}", "expr": asked(question)}
        for number, question in enumerate(QUESTIONS)
    ]
    file = tmp_path / "questions.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))
    checked = promtool("check", "rules", str(file))
    assert checked.returncode == 0, checked.stdout + checked.stderr


def asked(question: str) -> str:
    """As Grafana sends it with nothing chosen."""
    return question.replace("$queue", ".*").replace("$__rate_interval", "1m")


def test_what_grafana_is_provisioned_with_fits_the_dashboard_and_the_composition() -> None:
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))["services"]
    mounts = dict(volume.split(":")[:2] for volume in services["grafana"]["volumes"])
    assert mounts["./grafana/provisioning"] == "/etc/grafana/provisioning"
    [provider] = yaml.safe_load(
        (PROVISIONING / "dashboards" / "dashboards.yaml").read_text(encoding="utf-8")
    )["providers"]
    shown_from = mounts["./grafana/dashboard.json"]
    assert shown_from == f"{provider['options']['path']}/dashboard.json"
    assert (
        services["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
        == shown_from
    )
    sources = yaml.safe_load(
        (PROVISIONING / "datasources" / "datasources.yaml").read_text(encoding="utf-8")
    )["datasources"]
    for source in sources:
        host, port = re.fullmatch(r"http://([a-z]+):(\d+)", source["url"]).groups()  # type: ignore[union-attr]  # it does match
        assert [f"127.0.0.1:{port}:{port}"] == services[host]["ports"]
    assert [source["type"] for source in sources if source.get("isDefault")] == ["prometheus"]
