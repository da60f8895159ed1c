"""A handler in a process may be taken over; its worker must not be by that."""

from __future__ import annotations

from pathlib import Path

from hybrid_runner import State
from tests.support.working import outcome, runner, working
from tests.worker import process_handlers


async def test_nothing_that_a_process_sends_is_run_by_its_worker(dsn: str, tmp_path: Path) -> None:
    """A pickle may run whatever it likes where it is read."""
    app = runner(dsn, process_handlers.app.registry)
    file = tmp_path / "taken"
    async with working(app):
        job = await outcome(app, "say", {"what": "pickle", "file": str(file)})
    assert (job.state, job.errors[0]["type"]) == (State.FAILED, "ProcessDied")
    assert not file.exists()
