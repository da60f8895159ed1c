"""Write deploy/grafana/dashboard.json from tools/dashboard_panels.py; --check only says whether it
is current.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tools.dashboard_panels import ROWS, Panel

TARGET = Path(__file__).parents[1] / "deploy" / "grafana" / "dashboard.json"
SOURCE = {"type": "prometheus", "uid": "${source}"}
COLUMNS = 24
Json = dict[str, Any]


def dashboard() -> Json:
    """The whole dashboard as Grafana's JSON."""
    return {
        "uid": "hybrid-runner",
        "title": "hybrid_runner",
        "description": "Is the fleet well, and what holds it up? docs/alerts.md says what to do.",
        "tags": ["hybrid-runner"],
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "10s",
        "time": {"from": "now-30m", "to": "now"},
        "timezone": "browser",
        "templating": {"list": [_source(), _queue()]},
        "annotations": {"list": []},
        "links": [],
        "panels": [*_panels()],
    }


def _source() -> Json:
    return {
        "name": "source",
        "label": "Prometheus",
        "type": "datasource",
        "query": "prometheus",
        "current": {},
        "hide": 0,
    }


def _queue() -> Json:
    query = "label_values(hybrid_runner_slots, queue)"
    return {
        "name": "queue",
        "label": "Queue",
        "type": "query",
        "datasource": SOURCE,
        "query": {"query": query, "refId": "queue"},
        "definition": query,
        "refresh": 2,
        "sort": 1,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": ["All"], "value": ["$__all"]},
    }


def _panels() -> Iterator[Json]:
    """The panels' JSON, placed from left to right and row by row."""
    number, top = 0, 0
    for title, panels in ROWS.items():
        number += 1
        yield {
            "id": number,
            "type": "row",
            "title": title,
            "collapsed": False,
            "panels": [],
            "gridPos": _place(0, top, COLUMNS, 1),
        }
        left, top = 0, top + 1
        lowest = top
        for panel in panels:
            if left + panel.width > COLUMNS:
                left, top = 0, lowest
            number += 1
            yield {
                "id": number,
                **_drawn(panel),
                "gridPos": _place(left, top, panel.width, panel.height),
            }
            left += panel.width
            lowest = max(lowest, top + panel.height)
        top = lowest


def _place(left: int, top: int, width: int, height: int) -> Json:
    return {"x": left, "y": top, "w": width, "h": height}


def _drawn(panel: Panel) -> Json:
    drawn: Json = {
        "type": panel.kind,
        "title": panel.title,
        "description": panel.help,
        "datasource": SOURCE,
        "targets": _targets(panel),
        "fieldConfig": {"defaults": _defaults(panel), "overrides": []},
        "options": _options(panel),
    }
    if panel.kind == "table":
        names = {
            f"Value #{letter}": name
            for letter, name in zip(_letters(panel), panel.queries, strict=True)
        }
        names["Value"] = next(iter(panel.queries))  # what a table of one question calls it
        drawn["transformations"] = [
            {"id": "merge", "options": {}},
            {"id": "organize", "options": {"excludeByName": {"Time": True}, "renameByName": names}},
        ]
    return drawn


def _letters(panel: Panel) -> list[str]:
    return [chr(ord("A") + place) for place in range(len(panel.queries))]


def _targets(panel: Panel) -> list[Json]:
    over_time = panel.kind == "timeseries"
    return [
        {
            "refId": letter,
            "datasource": SOURCE,
            "expr": query,
            "legendFormat": name or panel.title,
            "instant": not over_time,
            "range": over_time,
            "format": "table" if panel.kind == "table" else "time_series",
        }
        for letter, (name, query) in zip(_letters(panel), panel.queries.items(), strict=True)
    ]


def _defaults(panel: Panel) -> Json:
    defaults: Json = {"unit": panel.unit, "color": {"mode": "palette-classic"}}
    if panel.kind == "timeseries":
        defaults["custom"] = {
            "drawStyle": "line",
            "lineWidth": 1,
            "fillOpacity": 30 if panel.stacked else 8,
            "showPoints": "never",
            "stacking": {"mode": "normal" if panel.stacked else "none", "group": "A"},
        }
    if panel.kind == "stat":
        defaults |= {
            "color": {"mode": "thresholds"},
            "thresholds": {"mode": "absolute", "steps": _steps(panel)},
        }
    return defaults


def _steps(panel: Panel) -> list[Json]:
    """Limits that begin below zero say that less is worse."""
    yellow, red = panel.limits or (None, None)
    if yellow is None:
        return [{"value": None, "color": "green"}]
    if yellow < 0:
        return [{"value": None, "color": "red"}, {"value": red, "color": "green"}]
    return [
        {"value": None, "color": "green"},
        {"value": yellow, "color": "yellow"},
        {"value": red, "color": "red"},
    ]


def _options(panel: Panel) -> Json:
    match panel.kind:
        case "stat":
            return {
                "colorMode": "background",
                "graphMode": "none",
                "reduceOptions": {"calcs": ["lastNotNull"], "values": False},
            }
        case "table":
            return {"showHeader": True, "cellHeight": "sm"}
        case _:
            return {
                "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
                "tooltip": {"mode": "multi", "sort": "desc"},
            }


def rendered() -> str:
    """The dashboard as the text of its file."""
    return json.dumps(dashboard(), indent=2) + "\n"


def main(arguments: list[str]) -> int:
    """Write the file, or with --check compare it; 1 if it differs."""
    if "--check" not in arguments:
        TARGET.write_text(rendered(), encoding="utf-8")
    elif not TARGET.exists() or TARGET.read_text(encoding="utf-8") != rendered():
        print(f"{TARGET.name} is not current: run python -m tools.dashboard", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
