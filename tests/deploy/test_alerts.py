"""The alert rules: each fires when it should and is silent when it should, as promtool's own tests
of rules say.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.prometheus import Promtool
from tests.support.promql import mistakes

ROOT = Path(__file__).parents[2]
FILE = ROOT / "deploy" / "prometheus" / "alerts.yaml"
RULES: list[dict[str, Any]] = [
    rule
    for group in yaml.safe_load(FILE.read_text(encoding="utf-8"))["groups"]
    for rule in group["rules"]
]
RUNS = "hybrid_runner_run_duration_seconds_count"
UNKNOWN = 'hybrid_runner_unknown_kind_jobs{queue="q",kind="thumbnial"}'
LATE = "hybrid_runner_late_rows_oldest_seconds"
MENDED = 'hybrid_runner_row_repairs_total{table="t",what="stored"}'
POLLS_LATE = "hybrid_runner_monitor_services_late_oldest_seconds"
MISSED = 'hybrid_runner_monitor_polls_total{outcome="missed"}'
LAG = "hybrid_runner_settle_lag_seconds_bucket"


@dataclass(frozen=True)
class Case:
    """Series with a value every 15 s in promtool's notation, and how many alerts fire at that
    time.
    """

    alert: str
    firing: int
    at: str
    series: dict[str, str]


def queue(oldest: float = 0, due: int = 0, workers: int = 1, paused: int = 0) -> dict[str, str]:
    """How the queue q stands for an hour, as two workers say while the one takes over from the
    other.
    """
    values = {
        "hybrid_runner_queue_oldest_due_seconds": oldest,
        'hybrid_runner_queue_jobs{state="due"}': due,
        "hybrid_runner_queue_workers": workers,
        "hybrid_runner_queue_paused": paused,
    }
    return {
        labelled(name, queue="q", instance=instance): f"{value}x240"
        for name, value in values.items()
        for instance in ("one", "two")
    }


def labelled(name: str, **labels: str) -> str:
    """A series of that name, with these labels added."""
    name, _, rest = name.removesuffix("}").partition("{")
    words = [*filter(None, [rest]), *(f'{label}="{value}"' for label, value in labels.items())]
    return f"{name}{{{','.join(words)}}}"


def counted(name: str, growth: float, **labels: str) -> dict[str, str]:
    """A counter that grows by that every 15 s."""
    return {labelled(name, instance="one", **labels): f"0+{growth}x240"}


def ended(**outcomes: int) -> dict[str, str]:
    """Attempts of the kind k, by what became of them, every 15 s."""
    return {
        name: values
        for outcome, each in outcomes.items()
        for name, values in counted(RUNS, each, kind="k", outcome=outcome).items()
    }


def lagging(below_1s: int) -> dict[str, str]:
    """Of each hundred outcomes so many are written within a second, and all within 2.5."""
    counts = {"1.0": below_1s, "2.5": 100, "+Inf": 100}
    return {
        name: values
        for le, each in counts.items()
        for name, values in counted(LAG, each, queue="q", le=le).items()
    }


def once(name: str, amount: int, **labels: str) -> dict[str, str]:
    """A counter that grows by that at half an hour, and by nothing before and after."""
    return {labelled(name, instance="one", **labels): f"0x119 {amount}x120"}


def born(name: str, amount: int, **labels: str) -> dict[str, str]:
    """A counter that begins at half an hour, with that much, and stays."""
    return {labelled(name, instance="one", **labels): f"_x119 {amount}x120"}


def unseen(name: str, amount: int, scrapes: int, **labels: str) -> dict[str, str]:
    """A counter that has that much after three minutes, and is not there for so many scrapes from
    minute 33 on.
    """
    return {
        labelled(
            name, instance="one", **labels
        ): f"0x11 {amount}x119 stale _x{scrapes - 1} {amount}x100"
    }


def held(name: str, value: float, **labels: str) -> dict[str, str]:
    """A gauge that stays."""
    return {labelled(name, instance="one", **labels): f"{value}x240"}


def unkept(age: float, services: int = 3) -> dict[str, str]:
    """Upkeep of monitors that ended so long ago."""
    counted = "hybrid_runner_monitor_services"
    return {
        **held("hybrid_runner_monitor_upkeep_age_seconds", age),
        **held(counted, services, breaker="closed"),
        **held(counted, 0, breaker="open"),
    }


CASES = [
    Case("HybridRunnerNoWorker", 1, "2m", held("up", 0, job="hybrid-runner")),
    Case("HybridRunnerNoWorker", 1, "2m", held("hybrid_runner_workers", 0)),
    Case("HybridRunnerNoWorker", 0, "30s", held("up", 0, job="hybrid-runner")),
    Case("HybridRunnerNoWorker", 0, "2m", held("hybrid_runner_workers", 1)),
    Case("HybridRunnerUnreachable", 1, "3m", held("up", 0, job="hybrid-runner")),
    Case(
        "HybridRunnerUnreachable",
        0,
        "3m",
        held("up", 1, job="hybrid-runner") | held("up", 0, job="another"),
    ),
    Case("HybridRunnerCannotLook", 1, "1m", held("hybrid_runner_consecutive_errors", 5, queue="q")),
    Case("HybridRunnerCannotLook", 0, "1m", held("hybrid_runner_consecutive_errors", 4, queue="q")),
    Case("HybridRunnerBacklogOld", 1, "3m", queue(oldest=301)),
    Case("HybridRunnerBacklogOld", 0, "3m", queue(oldest=299)),
    Case("HybridRunnerBacklogOld", 0, "3m", queue(oldest=301, paused=1)),
    Case("HybridRunnerUnknownKind", 1, "6m", {UNKNOWN: "2x240"}),
    Case("HybridRunnerUnknownKind", 0, "4m", {UNKNOWN: "2x240"}),
    Case("HybridRunnerUnknownKind", 0, "6m", {UNKNOWN: "2x8 stale"}),
    Case("HybridRunnerRowsLate", 1, "4m", held(LATE, 61, table="t")),
    Case("HybridRunnerRowsLate", 0, "4m", held(LATE, 60, table="t")),
    Case("HybridRunnerRowsMended", 1, "12m", {MENDED: "0+0x8 1x240"}),
    Case("HybridRunnerRowsMended", 0, "12m", {MENDED: "0x240"}),
    Case("HybridRunnerServiceDown", 1, "3m", held("hybrid_runner_monitor_services_down", 1)),
    Case("HybridRunnerServiceDown", 0, "3m", held("hybrid_runner_monitor_services_down", 0)),
    Case("HybridRunnerPollsLate", 1, "3m", held(POLLS_LATE, 121)),
    Case("HybridRunnerPollsLate", 0, "3m", held(POLLS_LATE, 120)),
    Case("HybridRunnerPollsLate", 0, "3m", {}),
    Case("HybridRunnerPollsMissed", 1, "12m", {MISSED: "0+3x240"}),
    Case("HybridRunnerPollsMissed", 0, "12m", {MISSED: "7x240"}),
    Case("HybridRunnerMonitorsUnkept", 1, "6m", unkept(901)),
    Case("HybridRunnerMonitorsUnkept", 0, "6m", unkept(900)),
    Case("HybridRunnerMonitorsUnkept", 0, "6m", unkept(901, services=0)),
    Case("HybridRunnerQueueWithoutWorker", 1, "3m", queue(due=1, workers=0)),
    Case("HybridRunnerQueueWithoutWorker", 0, "3m", queue(due=1, workers=1)),
    Case("HybridRunnerQueueWithoutWorker", 0, "3m", queue(due=0, workers=0)),
    Case(
        "HybridRunnerFleetFull",
        1,
        "16m",
        queue(due=1)
        | held("hybrid_runner_running", 19, queue="q")
        | held("hybrid_runner_slots", 20, queue="q"),
    ),
    Case(
        "HybridRunnerFleetFull",
        0,
        "16m",
        queue(due=0)
        | held("hybrid_runner_running", 20, queue="q")
        | held("hybrid_runner_slots", 20, queue="q"),
    ),
    Case(
        "HybridRunnerFleetFull",
        0,
        "16m",
        queue(due=1)
        | held("hybrid_runner_running", 10, queue="q")
        | held("hybrid_runner_slots", 20, queue="q"),
    ),
    Case("HybridRunnerJobsFail", 1, "20m", ended(failed=1, completed=5)),
    Case("HybridRunnerJobsFail", 1, "20m", ended(failed=1)),
    Case("HybridRunnerJobsFail", 0, "20m", ended(failed=1, completed=99)),
    Case("HybridRunnerJobsFail", 1, "36m", born(RUNS, 40, kind="k", outcome="failed")),
    Case(
        "HybridRunnerJobsFail",
        1,
        "36m",
        born(RUNS, 40, kind="k", outcome="failed") | ended(completed=1),
    ),
    Case(
        "HybridRunnerJobsFail",
        0,
        "36m",
        born(RUNS, 2, kind="k", outcome="failed") | ended(completed=1),
    ),
    Case(
        "HybridRunnerJobsFail",
        0,
        "36m",
        born(RUNS, 2, kind="k", outcome="failed") | born(RUNS, 40, kind="k", outcome="completed"),
    ),
    Case("HybridRunnerJobsFail", 0, "50m", born(RUNS, 40, kind="k", outcome="failed")),
    Case("HybridRunnerJobsFail", 0, "49m", unseen(RUNS, 40, 28, kind="k", outcome="failed")),
    Case("HybridRunnerJobsFail", 1, "36m", once(RUNS, 40, kind="k", outcome="failed")),
    Case(
        "HybridRunnerJobsRetried",
        1,
        "30m",
        counted("hybrid_runner_retries_total", 2, queue="q", kind="k") | ended(completed=1),
    ),
    Case(
        "HybridRunnerJobsRetried",
        1,
        "30m",
        counted("hybrid_runner_retries_total", 2, queue="q", kind="k"),
    ),
    Case(
        "HybridRunnerJobsRetried",
        0,
        "30m",
        counted("hybrid_runner_retries_total", 1, queue="q", kind="k") | ended(completed=2),
    ),
    Case(
        "HybridRunnerJobsRetried",
        1,
        "41m",
        once("hybrid_runner_retries_total", 40, queue="q", kind="k"),
    ),
    Case(
        "HybridRunnerJobsRetried",
        0,
        "41m",
        once("hybrid_runner_retries_total", 40, queue="q", kind="k")
        | born(RUNS, 50, kind="k", outcome="completed"),
    ),
    Case(
        "HybridRunnerJobsRetried",
        1,
        "55m",
        counted("hybrid_runner_retries_total", 2, queue="q", kind="k")
        | unseen(RUNS, 500, 48, kind="k", outcome="completed"),
    ),
    Case(
        "HybridRunnerJobsRetried",
        0,
        "30m",
        counted("hybrid_runner_retries_total", 0, queue="q", kind="k"),
    ),
    Case(
        "HybridRunnerWorkersLost",
        1,
        "31m",
        once("hybrid_runner_rescues_total", 1, queue="q", outcome="retry"),
    ),
    Case(
        "HybridRunnerWorkersLost",
        0,
        "50m",
        once("hybrid_runner_rescues_total", 1, queue="q", outcome="retry"),
    ),
    Case("HybridRunnerWorkersLost", 1, "31m", born("hybrid_runner_rescues_total", 10, queue="q")),
    Case("HybridRunnerWorkersLost", 0, "50m", born("hybrid_runner_rescues_total", 10, queue="q")),
    Case(
        "HybridRunnerWorkersLost",
        0,
        "48m",
        unseen("hybrid_runner_rescues_total", 7, 2, queue="q", outcome="retry"),
    ),
    Case(
        "HybridRunnerStaleSettles",
        1,
        "31m",
        once("hybrid_runner_stale_settles_total", 1, queue="q"),
    ),
    Case(
        "HybridRunnerStaleSettles",
        0,
        "29m",
        once("hybrid_runner_stale_settles_total", 1, queue="q"),
    ),
    Case("HybridRunnerScheduleLate", 1, "1m", held("hybrid_runner_schedules_overdue", 2)),
    Case("HybridRunnerScheduleLate", 0, "1m", held("hybrid_runner_schedules_overdue", 0)),
    Case("HybridRunnerStalled", 1, "1m", held("hybrid_runner_stalled", 1)),
    Case("HybridRunnerStalled", 0, "1m", held("hybrid_runner_stalled", 0)),
    Case("HybridRunnerRestarts", 1, "31m", once("hybrid_runner_process_restarts_total", 3)),
    Case("HybridRunnerRestarts", 0, "31m", once("hybrid_runner_process_restarts_total", 1)),
    Case("HybridRunnerDeaf", 1, "3m", held("hybrid_runner_hearing", 0)),
    Case("HybridRunnerDeaf", 0, "3m", held("hybrid_runner_hearing", 1)),
    Case(
        "HybridRunnerMissedRings", 1, "31m", once("hybrid_runner_missed_rings_total", 6, queue="q")
    ),
    Case(
        "HybridRunnerMissedRings", 0, "31m", once("hybrid_runner_missed_rings_total", 2, queue="q")
    ),
    Case(
        "HybridRunnerSettlesSlow",
        1,
        "11m",
        lagging(below_1s=90),
    ),
    Case("HybridRunnerSettlesSlow", 1, "11m", held("hybrid_runner_pending_settlements", 10_001)),
    Case(
        "HybridRunnerSettlesSlow",
        0,
        "11m",
        lagging(below_1s=100) | held("hybrid_runner_pending_settlements", 9),
    ),
    Case("HybridRunnerHorizonPinned", 1, "6m", held("hybrid_runner_horizon_age_seconds", 1801)),
    Case("HybridRunnerHorizonPinned", 0, "6m", held("hybrid_runner_horizon_age_seconds", 1700)),
    Case(
        "HybridRunnerNotifyQueueFills",
        1,
        "2m",
        held("hybrid_runner_notify_queue_used_ratio", 0.3),
    ),
    Case(
        "HybridRunnerNotifyQueueFills",
        0,
        "2m",
        held("hybrid_runner_notify_queue_used_ratio", 0.1),
    ),
    Case("HybridRunnerSpansDropped", 1, "30m", counted("hybrid_runner_spans_dropped_total", 1)),
    Case("HybridRunnerSpansDropped", 1, "32m", once("hybrid_runner_spans_dropped_total", 50_000)),
    Case("HybridRunnerSpansDropped", 0, "42m", once("hybrid_runner_spans_dropped_total", 50_000)),
    Case("HybridRunnerSpansDropped", 0, "30m", counted("hybrid_runner_spans_dropped_total", 0)),
    Case("HybridRunnerQueuesUnmeasured", 1, "6m", held("hybrid_runner_workers", 2)),
    Case("HybridRunnerQueuesUnmeasured", 0, "6m", held("hybrid_runner_workers", 2) | queue()),
    Case("HybridRunnerQueuesUnmeasured", 0, "6m", held("hybrid_runner_workers", 0)),
]


def test_promtool_accepts_the_rules_and_the_configuration_that_names_them(
    promtool: Promtool,
) -> None:
    for what, file in (("rules", FILE), ("config", FILE.with_name("prometheus.yml"))):
        checked = promtool("check", what, str(file))
        assert checked.returncode == 0, checked.stdout + checked.stderr
        assert f"{len(RULES)} rules found" in checked.stdout or what == "config"


@pytest.mark.parametrize("alert", [rule["alert"] for rule in RULES])
def test_each_alert_fires_when_it_should_and_only_then(
    alert: str, promtool: Promtool, tmp_path: Path
) -> None:
    tests = [
        {
            "name": f"{number}: {case.alert} at {case.at}",
            "interval": "15s",
            "input_series": [
                {"series": name, "values": values} for name, values in case.series.items()
            ],
            "promql_expr_test": [
                {
                    "expr": f'count(ALERTS{{alertname="{case.alert}", alertstate="firing"}})',
                    "eval_time": case.at,
                    "exp_samples": [{"labels": "{}", "value": case.firing}] if case.firing else [],
                }
            ],
        }
        for number, case in enumerate(CASES)
        if case.alert == alert
    ]
    file = tmp_path / "cases.yaml"
    file.write_text(
        yaml.safe_dump({"rule_files": [str(FILE)], "evaluation_interval": "15s", "tests": tests})
    )
    tested = promtool("test", "rules", str(file))
    assert tested.returncode == 0, tested.stdout + tested.stderr


def test_each_alert_has_a_case_in_which_it_fires_and_one_in_which_it_is_silent() -> None:
    for rule in RULES:
        assert {case.firing > 0 for case in CASES if case.alert == rule["alert"]} == {
            True,
            False,
        }, rule["alert"]
    assert {case.alert for case in CASES} == {rule["alert"] for rule in RULES}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: str(rule["alert"]))
def test_each_alert_names_declared_metrics_and_says_what_to_do(rule: dict[str, Any]) -> None:
    assert mistakes(rule["expr"]) == []
    assert rule["labels"]["severity"] in {"critical", "warning", "info"}
    annotations = rule["annotations"]
    assert annotations["summary"]
    assert annotations["description"].count(". ") >= 1
    page, _, anchor = annotations["runbook"].partition("#")
    headings = re.findall(r"^#+ (.+)$", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE)
    assert anchor in {heading.lower() for heading in headings}
