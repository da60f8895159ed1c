"""One /health and one /ready for all worker processes, from what each has reported. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hybrid_runner.version import VERSION
from hybrid_runner.web.pages.health import Check, Phase
from hybrid_runner.web.pages.reports import Body, health_of, hindrances_of, ready_in

LONGEST_SILENCE = 10.0
"""Seconds without a report, due every second, after which a process's event loop is stalled."""

LONGEST_START = 60.0
"""Seconds that a process may take for its first report: it imports the application first."""


@dataclass(frozen=True, slots=True)
class ProcessView:
    """One process as its parent sees it."""

    number: int
    pid: int | None
    """None: no process runs now."""
    restarts: int
    health: dict[str, Any] | None
    """Its last /health; None: it has reported nothing yet."""
    silence: float
    """Seconds since its last report, or its start."""
    trouble: str | None = None
    """Why no process runs, unless a stop was asked for."""


def fleet_health(views: Sequence[ProcessView], *, stopping: bool) -> Body:
    """The body of /health: healthy while every process is."""
    processes = [_process(view, stopping=stopping) for view in views]
    ill = [str(process["process"]) for process in processes if not process["healthy"]]
    reason = f"ill: {', '.join(ill)} of {len(processes)}" if ill else "every worker process is well"
    return {
        "healthy": not ill,
        "phase": _phase(views, stopping=stopping),
        "version": VERSION,
        "checks": [Check("processes", "failed" if ill else "ok", reason).body()],
        "processes": processes,
    }


def fleet_ready(views: Sequence[ProcessView], *, stopping: bool) -> Body:
    """The body of /ready: ready while every process takes jobs, and no stop was asked for."""
    phase = _phase(views, stopping=stopping)
    hindrances = {
        view.number: hindrances_of(view.health)
        for view in views
        if _runs(view) and view.health is not None
    }
    taking = sum(not why for why in hindrances.values())
    reasons = [
        f"process {number}: {reason}" for number, why in hindrances.items() for reason in why
    ]
    ready = phase == "running" and taking == len(views)
    return ready_in(phase, ready=ready, hindrances=reasons) | {
        "running": taking,
        "processes": len(views),
    }


def _process(view: ProcessView, *, stopping: bool) -> Body:
    """The /health of one process, with a check by its parent in front."""
    health = view.health or health_of(None)
    check = _is_running(view, stopping=stopping)
    own = {"process": view.number, "pid": view.pid, "restarts": view.restarts}
    return (
        own
        | health
        | {
            "healthy": check.ok and health["healthy"],
            "checks": [check.body(), *health["checks"]],
        }
    )


def _is_running(view: ProcessView, *, stopping: bool) -> Check:
    if view.pid is None:
        gone = (
            "it was asked to stop, and has" if stopping else view.trouble or "it is not started yet"
        )
        return Check("process", "ok" if stopping or view.trouble is None else "failed", gone)
    if _is_silent(view):
        return Check(
            "process",
            "failed",
            f"has said nothing for {view.silence:.0f} s: its event loop is stalled",
        )
    return Check("process", "ok", "lives, and says so")


def _is_silent(view: ProcessView) -> bool:
    return view.silence >= (LONGEST_START if view.health is None else LONGEST_SILENCE)


def _runs(view: ProcessView) -> bool:
    return (
        view.pid is not None
        and view.health is not None
        and view.health["phase"] == "running"
        and not _is_silent(view)
    )


def _phase(views: Sequence[ProcessView], *, stopping: bool) -> Phase:
    if stopping:
        return "stopping"
    return "running" if views and all(_runs(view) for view in views) else "starting"
