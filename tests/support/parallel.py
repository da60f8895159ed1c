"""Tests in several processes (pytest -n 4 --dist loadgroup): who runs beside whom. CONTRIBUTING.md
says how to use it.

Each process has a Postgres of its own. What is made once and takes long to make is for one process:
the tests that share it are a group. What wants the machine for itself is marked `alone`, and runs
when everything else has ended.

Not xdist's own groups: they are a suffix of a test's id, which pytest has not let others change
since 9.2.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

from tests.support.server import is_shared

ALONE = "alone"
OUTSIDE = "outside"
PROGRAMS = {"jaeger", "otel_collector", "prometheus", "promtool", "docker_engine"}
"""Fixtures for what is not Python's nor Postgres."""
ENGINE = "engine"
GROUPS = {
    "jaeger": "jaeger",
    "otel_collector": "jaeger",
    "docker_engine": ENGINE,
    "version_dsn": "version",
    "deep_backlog": "backlog",
}
"""By the fixture that is made once; one with parameters is made once for each."""
FILE = pytest.StashKey[Path]()
"""Where the processes that collect tests write down the groups for the one that hands tests out."""


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", f"{ALONE}: wants the machine for itself, when tests run in several processes"
    )
    config.addinivalue_line(
        "markers", f"{OUTSIDE}: needs one of the programs around us (has the mark by its fixtures)"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    """Before pytest looks at marks."""
    for item in items:
        if PROGRAMS.intersection(getattr(item, "fixturenames", ())):
            item.add_marker(OUTSIDE)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Called in the process that hands out tests, for each process that will run some."""
    if FILE not in node.config.stash:
        handle, name = tempfile.mkstemp(prefix="hybrid-runner-groups-")
        os.close(handle)
        node.config.stash[FILE] = Path(name)
    node.workerinput["groups"] = str(node.config.stash[FILE])


@pytest.hookimpl(tryfirst=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """All processes collect the same tests. Called before xdist says that they are done."""
    given = getattr(session.config, "workerinput", {"workerid": None})
    if given["workerid"] == "gw0":
        groups = {item.nodeid: group for item in session.items if (group := _group_of(item))}
        Path(given["groups"]).write_text(json.dumps(groups))


def pytest_unconfigure(config: pytest.Config) -> None:
    if FILE in config.stash:
        config.stash[FILE].unlink()


def _group_of(item: pytest.Item) -> str | None:
    fixtures: Sequence[str] = getattr(item, "fixturenames", [])
    if item.get_closest_marker(ALONE):
        return ALONE
    if is_shared() and "server" in fixtures:
        return "server"  # roles and locks are the server's, not the database's
    parameters: dict[str, Any] = item.callspec.params if hasattr(item, "callspec") else {}
    for fixture, group in GROUPS.items():
        if fixture in fixtures:
            return f"{group} {parameters[fixture]}" if fixture in parameters else group
    return None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling | None:
    return AloneLast(config, log) if config.getoption("dist") == "loadgroup" else None


class AloneLast(LoadScopeScheduling):  # type: ignore[misc]  # it has no types
    """What takes longest comes first, then large groups.

    At the end all processes but one are ended, and that one runs what wants to be alone.
    """

    def __init__(self, config: pytest.Config, log: Any) -> None:
        super().__init__(config, log)
        self._groups: dict[str, str] = {}

    def schedule(self) -> None:
        self._groups = json.loads(self.config.stash[FILE].read_text())
        super().schedule()

    def _split_scope(self, nodeid: str) -> str:
        return self._groups.get(nodeid, nodeid)

    def _assign_work_unit(self, node: Any) -> None:
        for group, last in ((ENGINE, False), (ALONE, True)):
            if group in self.workqueue:
                self.workqueue.move_to_end(group, last=last)
        super()._assign_work_unit(node)

    def _reschedule(self, node: Any) -> None:
        others = [other for other in self.nodes if other is not node]
        if list(self.workqueue) != [ALONE] or not others or node.shutting_down:
            super()._reschedule(node)
        elif not all(other.shutting_down for other in others):
            node.shutdown()

    def remove_node(self, node: Any) -> str | None:
        crashed: str | None = super().remove_node(node)
        for last in self.nodes:
            self._reschedule(last)
        return crashed
