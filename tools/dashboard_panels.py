"""The panels of the dashboard and their queries to Prometheus; tools/dashboard.py makes Grafana's
JSON of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

OURS = 'queue=~"$queue"'
DUE, SCHEDULED, RUNNING = ('state="due"', 'state="scheduled"', 'state="running"')


@dataclass(frozen=True)
class Panel:
    """A panel: its queries by the name of their result, and the limits where it turns yellow and
    red.
    """

    title: str
    help: str
    queries: dict[str, str]
    unit: str = "short"
    kind: str = "timeseries"
    width: int = 8
    height: int = 7
    limits: tuple[float, float] | None = None
    stacked: bool = False


def figure(title: str, text: str, query: str, unit: str = "short", **more: Any) -> Panel:
    """A panel that shows one number."""
    return Panel(title, text, {"": query}, unit, kind="stat", width=3, height=4, **more)


def rate(name: str, *by: str, where: str = OURS) -> str:
    """PromQL: how fast a counter grows, a second."""
    return f"sum by ({', '.join(by)}) (rate(hybrid_runner_{name}{{{where}}}[$__rate_interval]))"


def quantile(share: float, name: str, *by: str, where: str = OURS) -> str:
    """PromQL: the value that this share of all observations does not exceed."""
    buckets = f"rate(hybrid_runner_{name}_bucket{{{where}}}[$__rate_interval])"
    return f"histogram_quantile({share}, sum by ({', '.join(('le', *by))}) ({buckets}))"


def mean(name: str, *by: str, where: str = OURS) -> str:
    """PromQL: the average observation."""
    return f"{rate(f'{name}_sum', *by, where=where)} / {rate(f'{name}_count', *by, where=where)}"


def measured(name: str, where: str = "") -> str:
    """PromQL: a value that one worker measures for all. While that duty changes hands two workers
    may report it.
    """
    return f"max by (queue) (hybrid_runner_{name}{{{OURS}{', ' if where else ''}{where}}})"


def halves(name: str, *by: str, where: str = OURS) -> dict[str, str]:
    """Queries for the median and for the slowest hundredth."""
    label = " ".join(f"{{{{{word}}}}}" for word in by)
    return {
        f"{label} p{share * 100:.0f}".strip(): quantile(share, name, *by, where=where)
        for share in (0.5, 0.99)
    }


ROWS: dict[str, tuple[Panel, ...]] = {
    "Is the fleet well?": (
        figure(
            "Workers",
            "Worker processes that are up.",
            "sum(hybrid_runner_workers) or vector(0)",
            limits=(-1, 1),
        ),
        figure(
            "Alerts",
            "Alerts of deploy/prometheus/alerts.yaml that fire.",
            'count(ALERTS{alertname=~"HybridRunner.*", alertstate="firing"}) or vector(0)',
            limits=(1, 3),
        ),
        figure(
            "Due",
            "Jobs that could run now and wait for a slot.",
            f"sum({measured('queue_jobs', DUE)})",
        ),
        figure(
            "Oldest",
            "For how long the oldest of them has been due.",
            f"max({measured('queue_oldest_due_seconds')})",
            "s",
            limits=(60, 300),
        ),
        figure(
            "Slots taken",
            "The share of all slots in which a job runs.",
            f"sum(hybrid_runner_running{{{OURS}}}) / sum(hybrid_runner_slots{{{OURS}}})",
            "percentunit",
            limits=(0.8, 0.95),
        ),
        figure(
            "Done",
            "Jobs completed a second.",
            'sum(rate(hybrid_runner_run_duration_seconds_count{outcome="completed"}[$__rate_interval]))',
            "ops",
        ),
        figure(
            "Failed",
            "Jobs failed for good a second.",
            'sum(rate(hybrid_runner_run_duration_seconds_count{outcome="failed"}[$__rate_interval]))'
            " or vector(0)",
            "ops",
            limits=(0.01, 1),
        ),
        figure(
            "Deaf",
            "Workers that hear no rings: they find jobs by polling alone.",
            "count(hybrid_runner_hearing == 0) or vector(0)",
            limits=(1, 2),
        ),
    ),
    "Work": (
        Panel(
            "Backlog",
            "Due jobs by queue: what waits for a slot.",
            {"{{queue}}": measured("queue_jobs", DUE)},
            stacked=True,
        ),
        Panel(
            "Oldest due job",
            "If this grows, work comes faster than it is done.",
            {"{{queue}}": measured("queue_oldest_due_seconds")},
            "s",
        ),
        Panel(
            "Scheduled and running",
            "Jobs due later, and those that run.",
            {
                "{{queue}} scheduled": measured("queue_jobs", SCHEDULED),
                "{{queue}} running": measured("queue_jobs", RUNNING),
            },
        ),
        Panel(
            "Attempts by outcome",
            "What became of what ran, a second.",
            {"{{outcome}}": rate("run_duration_seconds_count", "outcome", where="")},
            "ops",
            stacked=True,
        ),
        Panel(
            "Put back",
            "Jobs that go back to their queue: tried again, delayed by themselves, or handed back"
            " by a worker that stops.",
            {
                "{{kind}} retry": rate("retries_total", "kind"),
                "{{kind}} snooze": rate("snoozes_total", "kind"),
                "{{kind}} release": rate("releases_total", "kind"),
            },
            "ops",
        ),
        Panel(
            "Run time",
            "How long handlers take.",
            halves("run_duration_seconds", "kind", where=""),
            "s",
        ),
    ),
    "From due to claimed": (
        Panel(
            "Pickup",
            "From due to claimed, by the way that found the job: ring is the fast one.",
            halves("pickup_seconds", "way"),
            "s",
        ),
        Panel(
            "Claims",
            "How long Postgres takes to answer a look; sweeps start at the front of the queue.",
            {
                **halves("claim_duration_seconds"),
                "sweep p99": quantile(0.99, "sweep_duration_seconds"),
            },
            "s",
        ),
        Panel(
            "Looks",
            "Looks a second, by their cause and whether they found something; polls"
            " are the fallback.",
            {
                "{{way}} {{outcome}}": rate("looks_total", "way", "outcome"),
                "polls": rate("polls_total"),
                "errors": rate("look_errors_total"),
            },
            "ops",
        ),
        Panel(
            "Doorbell",
            "Workers by mode: asleep ones are rung, awake ones look by themselves, full ones have"
            " no slot, deaf ones poll.",
            {
                "{{mode}}": f"sum by (mode) (hybrid_runner_doorbell_mode{{{OURS}}})",
            },
            stacked=True,
        ),
        Panel(
            "Rings",
            "Rings heard a second, and jobs a minute whose ring got lost.",
            {
                "{{queue}} rings": rate("rings_total", "queue"),
                "{{queue}} missed a minute": f"60 * {rate('missed_rings_total', 'queue')}",
            },
        ),
        Panel(
            "Jobs per look",
            "How many jobs a look finds on average, and empty fallback polls in a row.",
            {
                "{{queue}} found": mean("claim_batch_jobs", "queue"),
                "{{queue}} empty polls": (
                    f"max by (queue) (hybrid_runner_consecutive_empty_polls{{{OURS}}})"
                ),
            },
        ),
    ),
    "From ended to written": (
        Panel(
            "Settle lag",
            "From the end of an attempt until Postgres had its outcome; and one statement's share"
            " of it.",
            {
                **halves("settle_lag_seconds"),
                "statement p99": quantile(0.99, "settle_duration_seconds", where=""),
            },
            "s",
        ),
        Panel(
            "Outcomes at a time",
            "How many one statement writes, and how many wait to be written.",
            {
                "written at a time": mean("settle_batch_jobs", where=""),
                "waiting": "sum(hybrid_runner_pending_settlements)",
            },
        ),
        Panel(
            "Lost and late",
            "Jobs taken over from lost workers, and outcomes that came too late, in five minutes.",
            {
                "{{queue}} rescued, {{outcome}}": (
                    f"sum by (queue, outcome) (increase(hybrid_runner_rescues_total{{{OURS}}}[5m]))"
                ),
                "{{queue}} too late": (
                    f"sum by (queue) (increase(hybrid_runner_stale_settles_total{{{OURS}}}[5m]))"
                ),
            },
        ),
    ),
    "Waiting for other systems": (
        Panel(
            "Gates and fast endings",
            "Looks at which a gate of the memory opened, and jobs that completed at such a look, in"
            " five minutes.",
            {
                "{{kind}} {{field}}": (
                    "sum by (kind, field) (increase(hybrid_runner_gates_opened_total[5m]))"
                ),
                "{{kind}} ended by {{field}}": (
                    "sum by (kind, field) (increase(hybrid_runner_gate_endings_total[5m]))"
                ),
            },
        ),
        Panel(
            "Confirmations and tries",
            "What confirmations and tries of the memory came to, in five minutes.",
            {
                "{{kind}} {{field}} {{outcome}}": (
                    "sum by (kind, field, outcome)"
                    " (increase(hybrid_runner_confirmations_total[5m]))"
                ),
                "{{kind}} {{field}} tries {{outcome}}": (
                    "sum by (kind, field, outcome) (increase(hybrid_runner_tries_total[5m]))"
                ),
            },
        ),
        Panel(
            "Budgets used up, jobs restored",
            "Jobs that had gone on for too long, and jobs that reconcilers found missing, in five"
            " minutes.",
            {
                "{{kind}} {{budget}}": (
                    "sum by (kind, budget) (increase(hybrid_runner_budgets_used_up_total[5m]))"
                ),
                "{{reconciler}} restored": (
                    "sum by (reconciler) (increase(hybrid_runner_reconciler_repairs_total[5m]))"
                ),
            },
        ),
        Panel(
            "Signals",
            "Attempts of jobs that had waited for a signal, by what woke them, and signals that no"
            " job was given in seven days, in five minutes.",
            {
                "{{kind}} {{outcome}}": (
                    "sum by (kind, outcome) (increase(hybrid_runner_wakes_total[5m]))"
                ),
                "dropped": "sum(increase(hybrid_runner_signals_dropped_total[5m]))",
            },
        ),
    ),
    "Kinds that nobody knows": (
        Panel(
            "Unknown kinds",
            "Due jobs that no live worker of their queue can run, and jobs that were ended because"
            " their time was over meanwhile, in five minutes.",
            {
                "{{queue}} {{kind}}": (
                    f"max by (queue, kind) (hybrid_runner_unknown_kind_jobs{{{OURS}}})"
                ),
                "{{queue}} expired": (
                    f"sum by (queue) (increase(hybrid_runner_expired_jobs_total{{{OURS}}}[5m]))"
                ),
            },
            width=24,
        ),
    ),
    "Schedules": (
        Panel(
            "Ticks",
            "What came of ticks of schedules, in five minutes: fired, caught up, skipped since the"
            " job before still lived, dropped as too old.",
            {
                "{{schedule}} {{outcome}}": (
                    "sum by (schedule, outcome) (increase(hybrid_runner_ticks_total[5m]))"
                ),
            },
        ),
        Panel(
            "From tick to job",
            "How late the jobs of ticks were made, and until when the next tick is due; one worker"
            " measures that for all. Below 0 it is late.",
            {
                "median": quantile(0.5, "tick_late_seconds", where=""),
                "99 %": quantile(0.99, "tick_late_seconds", where=""),
                "next tick in, s": "min(hybrid_runner_schedule_next_seconds)",
            },
            "s",
        ),
        Panel(
            "Schedules",
            "Schedules by state, and those whose tick has been due for a minute.",
            {
                "{{state}}": "max by (state) (hybrid_runner_schedules)",
                "overdue": "max(hybrid_runner_schedules_overdue)",
            },
        ),
    ),
    "Attached tables": (
        Panel(
            "Rows of jobs that began",
            "What came of showing in rows that their jobs run; locked and refused ones are written"
            " later.",
            {
                "{{table}} {{outcome}}": rate("rows_shown_total", "table", "outcome", where=""),
            },
        ),
        Panel(
            "Late rows",
            "Rows that do not show yet what became of their jobs, for how many seconds the oldest"
            " of them, and how many Postgres refuses.",
            {
                "{{table}} late": "max by (table) (hybrid_runner_late_rows)",
                "{{table}} oldest, s": ("max by (table) (hybrid_runner_late_rows_oldest_seconds)"),
                "{{table}} refused": "max by (table) (hybrid_runner_refused_rows)",
            },
        ),
        Panel(
            "Changes, late writing and repairs",
            "What rows that were cancelled, deleted or wanted anew meant for their jobs, what"
            " became of tries to write late rows, and what had to be mended, in five minutes.",
            {
                "{{table}} {{outcome}}": (
                    "sum by (table, outcome) (increase(hybrid_runner_row_changes_total[5m]))"
                ),
                "{{table}} late: {{outcome}}": (
                    "sum by (table, outcome) (increase(hybrid_runner_late_rows_written_total[5m]))"
                ),
                "{{table}} mended: {{what}}": (
                    "sum by (table, what) (increase(hybrid_runner_row_repairs_total[5m]))"
                ),
            },
        ),
    ),
    "Monitored services": (
        Panel(
            "Down, late, breakers",
            "Services that are down, whose polls are late, and whose breakers are not closed; one"
            " worker measures for all.",
            {
                "down": "max(hybrid_runner_monitor_services_down)",
                "late": "max(hybrid_runner_monitor_services_late)",
                "not understood in all": "max(hybrid_runner_monitor_services_warned)",
                "breaker {{breaker}}": (
                    'max by (breaker) (hybrid_runner_monitor_services{breaker!="closed"})'
                ),
            },
        ),
        Panel(
            "Polls",
            "By what came of them, a second; those without a request of their own have the address"
            " of another service.",
            {
                "{{outcome}}": rate("monitor_polls_total", "outcome", where=""),
                "without a request": (
                    "sum(rate(hybrid_runner_monitor_coalesced_polls_total[$__rate_interval]))"
                ),
            },
            stacked=True,
        ),
        Panel(
            "How long requests take",
            "By their parts, and the wait for a place at their host before.",
            {
                **halves("monitor_poll_duration_seconds", "phase", where=""),
                "wait for a place p99": quantile(0.99, "monitor_host_wait_seconds", where=""),
            },
            unit="s",
        ),
        Panel(
            "Events",
            "Of monitored services, by kind, in five minutes.",
            {
                "{{kind}}": "sum by (kind) (increase(hybrid_runner_monitor_events_total[5m]))",
            },
            width=16,
        ),
        Panel(
            "Late by, and upkeep",
            "For how long the oldest poll has been due, and how long ago upkeep ended.",
            {
                "oldest late poll": "max(hybrid_runner_monitor_services_late_oldest_seconds)",
                "upkeep ended": "max(hybrid_runner_monitor_upkeep_age_seconds)",
            },
            unit="s",
        ),
    ),
    "Workers": (
        Panel(
            "Each worker",
            "As each one says it is.",
            {
                "Running": "sum by (instance) (hybrid_runner_running)",
                "Slots": "sum by (instance) (hybrid_runner_slots)",
                "Hears rings": "min by (instance) (hybrid_runner_hearing)",
                "Stalled": "sum by (instance) (hybrid_runner_stalled)",
                "Failed looks in a row": "max by (instance) (hybrid_runner_consecutive_errors)",
                "Not written": "sum by (instance) (hybrid_runner_pending_settlements)",
                "Done a second": (
                    "sum by (instance)"
                    " (rate(hybrid_runner_run_duration_seconds_count[$__rate_interval]))"
                ),
                "Version": "max by (instance, version) (hybrid_runner_info)",
            },
            kind="table",
            width=16,
            height=8,
        ),
        Panel(
            "Workers by queue",
            "Live workers that claim from it; 1 below for a queue that is paused.",
            {
                "{{queue}}": measured("queue_workers"),
                "{{queue}} paused": f"-{measured('queue_paused')}",
            },
            height=8,
        ),
        Panel(
            "Event loop",
            "How late the event loop is, and how often a handler held it up for long, in five"
            " minutes.",
            {
                "{{instance}} lag p99": quantile(0.99, "loop_lag_seconds", "instance", where=""),
                "{{instance}} stalls": (
                    "sum by (instance) (increase(hybrid_runner_stalls_total[5m]))"
                ),
            },
            "s",
        ),
        Panel(
            "Connections and processes",
            "Listeners that were lost and processes that died, in five minutes.",
            {
                "{{instance}} listener lost": (
                    "sum by (instance) (increase(hybrid_runner_listener_reconnects_total[5m]))"
                ),
                "{{instance}} process died": (
                    "sum by (instance) (increase(hybrid_runner_process_restarts_total[5m]))"
                ),
            },
        ),
        Panel(
            "Vacuum, notifications and traces",
            "For how long vacuum has been held back, how full the server's queue of notifications"
            " is, and spans that got lost in five minutes.",
            {
                "vacuum held back, seconds": "max(hybrid_runner_horizon_age_seconds)",
                "notification queue, percent": ("100 * max(hybrid_runner_notify_queue_used_ratio)"),
                "spans lost": "sum(increase(hybrid_runner_spans_dropped_total[5m]))",
            },
        ),
    ),
}
