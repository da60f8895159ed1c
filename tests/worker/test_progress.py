"""Reports of progress, while they cannot be stored."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Sequence

from hybrid_runner.model.claims import Claim
from hybrid_runner.worker.run.progress import ProgressWriter
from tests.worker.test_settler import claim


async def test_nothing_is_kept_for_reports_that_nobody_awaits() -> None:
    """A process may report in a loop without end, and nothing of that is awaited here."""
    asked, goes_on = asyncio.Event(), asyncio.Event()
    written: list[str] = []

    async def write(reports: Sequence[tuple[int, int, str]]) -> set[int]:
        asked.set()
        await goes_on.wait()
        written.extend(said for _, _, said in reports)
        return set()

    def ignore(_: Sequence[Claim]) -> None: ...

    writer = ProgressWriter(write, ignore)
    loop, job = asyncio.create_task(writer.run()), claim(1)
    first = writer.report(job, "first")
    await asked.wait()
    kept = weakref.ref(writer.report(job, "second"))
    assert kept() is None
    last = writer.report(job, "last")
    goes_on.set()
    await first
    assert written[0] == "first"
    await last
    assert written == ["first", "last"]
    loop.cancel()
    await asyncio.gather(loop, return_exceptions=True)
