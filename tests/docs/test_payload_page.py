"""docs/change-a-payload-safely.md: its releases run one after another and side by side, over one
queue.
"""

from __future__ import annotations

import json
from types import ModuleType
from typing import Any

import pytest

from hybrid_runner import JobFailed
from hybrid_runner.storage.connections.connection import Connection
from tests.docs.blocks import blocks
from tests.docs.test_pages import load
from tests.support.working import working

HEAD, FIRST, FIELD_ADDED, READS_BOTH, WRITES_NEW, NEW_KIND, MISFITS = (
    block.text for block in blocks("docs/change-a-payload-safely.md", "python")
)
COUNT, MIGRATE, AMEND, RETRY = (
    block.text for block in blocks("docs/change-a-payload-safely.md", "sql")
)
OLD, NEW = {"email": "ada@example.com"}, {"address": "ada@example.com"}


@pytest.fixture(autouse=True)
def _environment(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page's `Runner()` finds this test's database."""
    monkeypatch.setenv("HYBRID_RUNNER_DSN", dsn)


def release(block: str) -> ModuleType:
    """The application as it is in this release."""
    return load("payload_page", HEAD + block)


async def inserted(database: Connection, payload: object, kind: str = "welcome") -> int:
    """A job that is queued already."""
    job: int = await database.fetchval(
        "INSERT INTO hybrid_runner.jobs (queue, kind, payload) VALUES ('mail', $1, $2) RETURNING id",
        kind,
        json.dumps(payload),
    )
    return job


async def stored(database: Connection, job: int) -> Any:
    """The payload that is in the row."""
    return json.loads(
        await database.fetchval("SELECT payload FROM hybrid_runner.all_jobs WHERE id = $1", job)
    )


async def enqueued(database: Connection, application: ModuleType, **fields: str) -> int:
    """A job that a producer of this release has put in."""
    async with application.app as app:
        handle = await app.enqueue(application.welcome, application.Welcome(**fields))
    job: int = handle.id
    return job


async def result(application: ModuleType, job: int) -> Any:
    """What a worker of this release makes of it."""
    async with working(application.app):
        return await application.app.handle(job).wait("2m")


@pytest.mark.parametrize(
    ("workers", "payload"),
    [
        (FIRST, OLD),
        (FIRST, OLD | {"language": "fr"}),
        (FIELD_ADDED, OLD),
        (FIELD_ADDED, OLD | {"language": "fr"}),
        (READS_BOTH, OLD),
        (READS_BOTH, NEW),
        (WRITES_NEW, OLD),
        (WRITES_NEW, NEW),
        (NEW_KIND, OLD),
    ],
)
async def test_a_release_runs_what_may_be_queued_while_it_is_there(
    database: Connection, workers: str, payload: dict[str, str]
) -> None:
    job = await inserted(database, payload)
    assert str(await result(release(workers), job)).startswith("to ada@example.com")


async def test_a_new_field_has_its_default_in_old_jobs(database: Connection) -> None:
    old = await inserted(database, OLD)
    assert await database.fetchval(COUNT) == 1
    assert await result(release(FIELD_ADDED), old) == "to ada@example.com in en"
    assert await database.fetchval(COUNT) == 0


async def test_what_a_release_writes_the_one_before_it_can_read(database: Connection) -> None:
    steps = [
        (FIRST, FIELD_ADDED, {"email": "ada@example.com", "language": "fr"}, {"email", "language"}),
        (FIRST, READS_BOTH, OLD, {"email"}),
        (READS_BOTH, WRITES_NEW, NEW, {"address"}),
    ]
    for before, after, fields, written in steps:
        job = await enqueued(database, release(after), **fields)
        assert set(await stored(database, job)) == written
        assert str(await result(release(before), job)).startswith("to ada@example.com")


async def test_a_rename_in_one_step_fails_jobs_and_they_can_be_run_again(
    database: Connection,
) -> None:
    job = await enqueued(database, release(WRITES_NEW), **NEW)
    with pytest.raises(JobFailed):
        await result(release(FIRST), job)
    rows = await database.fetch(RETRY)
    assert [tuple(row) for row in rows] == [(job, "queued")]
    assert await result(release(WRITES_NEW), job) == "to ada@example.com"


async def test_a_new_kind_waits_for_a_worker_that_knows_it(database: Connection) -> None:
    new = await inserted(
        database, {"recipients": ["ada@example.com", "bob@example.com"]}, "greeting"
    )
    old = await inserted(database, OLD)
    assert await result(release(FIRST), old) == "to ada@example.com"
    assert (
        await database.fetchval("SELECT state::text FROM hybrid_runner.jobs WHERE id = $1", new)
        == "queued"
    )
    assert await result(release(NEW_KIND), new) == "to ada@example.com, bob@example.com"


async def test_what_a_new_model_cannot_read_is_found_before_it_is_deployed(
    database: Connection,
) -> None:
    good, bad = await inserted(database, NEW), await inserted(database, {"mail": "ada@example.com"})
    names: dict[str, Any] = {}
    exec(MISFITS, names)  # noqa: S102 - our own page
    found = await names["misfits"](database, "welcome", release(READS_BOTH).Welcome)
    assert list(found) == [bad]
    assert good not in found


async def test_queued_jobs_are_changed_and_running_ones_are_not(database: Connection) -> None:
    queued, runs = await inserted(database, OLD), await inserted(database, OLD)
    await database.execute("UPDATE hybrid_runner.jobs SET state = 'running' WHERE id = $1", runs)
    version = await database.fetchval(
        "SELECT version FROM hybrid_runner.jobs WHERE id = $1", queued
    )
    await database.execute(MIGRATE)
    assert (await stored(database, queued), await stored(database, runs)) == (NEW, OLD)
    assert (
        await database.fetchval("SELECT version FROM hybrid_runner.jobs WHERE id = $1", queued)
        == version + 1
    )
    await database.execute("UPDATE hybrid_runner.jobs SET payload = '{}' WHERE id = $1", queued)
    assert await database.fetchval(AMEND) == "amended"
    assert await stored(database, queued) == NEW
    assert await result(release(WRITES_NEW), queued) == "to ada@example.com"
