"""One /health and one /ready for all worker processes. Pure: each process as it looks now goes in,
a page comes out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hybrid_runner.version import VERSION
from hybrid_runner.web.pages.health import Check, Phase
from hybrid_runner.web.pages.reports import Body, health_of, ready_in

LONGEST_SILENCE = 10.0
"""A process says something every second; after so many without a word its event loop is stalled."""

LONGEST_BIRTH = 60.0
"""The same before the first word: a process imports the application first."""


@dataclass(frozen=True, slots=True)
class View:
    """One process as its parent sees it."""

    number: int
    pid: int | None
    """None: it does not live now."""
    restarts: int
    said: dict[str, Any] | None
    """The last /health it made; None: it has said nothing yet."""
    silence: float
    """Seconds since then, or since it was started."""
    trouble: str | None = None
    """Why it does not live, unless that was asked for."""


def fleet_health(views: Sequence[View], *, stopping: bool) -> Body:
    """Healthy while every process is."""
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


def fleet_ready(views: Sequence[View], *, stopping: bool) -> Body:
    """Ready while every process is, and no stop was asked for."""
    running = sum(_runs(view) for view in views)
    return ready_in(_phase(views, stopping=stopping)) | {
        "running": running,
        "processes": len(views),
    }


def _process(view: View, *, stopping: bool) -> Body:
    """What the process says of itself, and first what it cannot say."""
    said = view.said or health_of(None)
    check = _lives(view, stopping=stopping)
    own = {"process": view.number, "pid": view.pid, "restarts": view.restarts}
    return (
        own
        | said
        | {"healthy": check.ok and said["healthy"], "checks": [check.body(), *said["checks"]]}
    )


def _lives(view: View, *, stopping: bool) -> Check:
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


def _is_silent(view: View) -> bool:
    return view.silence >= (LONGEST_BIRTH if view.said is None else LONGEST_SILENCE)


def _runs(view: View) -> bool:
    return (
        view.pid is not None
        and view.said is not None
        and view.said["phase"] == "running"
        and not _is_silent(view)
    )


def _phase(views: Sequence[View], *, stopping: bool) -> Phase:
    if stopping:
        return "stopping"
    return "running" if views and all(_runs(view) for view in views) else "starting"
