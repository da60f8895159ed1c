"""docs/why-does-my-job-not-run.md: each situation is made, and the first query that answers must be
the one for it.
"""

from __future__ import annotations

import asyncio
import re
import shlex
import subprocess
import sys
from collections.abc import Awaitable, Callable

import pytest

from hybrid_runner import Runner, Snooze
from hybrid_runner.cli import make_parser
from hybrid_runner.embedded.binaries import psql_command
from hybrid_runner.model.jobs import NewJob
from hybrid_runner.storage import client_calls
from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.telemetry.metrics.instruments import INSTRUMENTS
from tests.docs.blocks import ROOT, blocks
from tests.docs.test_pages import load
from tests.support.jobs import claim, ended, living, running
from tests.support.waiting import until
from tests.support.working import working
from tests.worker.test_late_rows import inserted

TEXT = (ROOT / "docs" / "why-does-my-job-not-run.md").read_text(encoding="utf-8")
SECTIONS: dict[str, str] = dict(
    re.findall(r"^##+ (.+?)\n(.*?)(?=^##|\Z)", TEXT, re.DOTALL | re.MULTILINE)
)
QUESTIONS = [title for title in SECTIONS if title[0].isdigit()]
HEALTHY = '{"default": 20}'


def statements_of(title: str, *, mend: bool = False) -> list[str]:
    """The queries below a heading, or what mends it."""
    found = re.findall(r"^```sql\n(.*?)^```$", SECTIONS[title], re.DOTALL | re.MULTILINE)
    return [text for text in found if text.startswith("-- mend") == mend]


async def asked(
    database: Connection, title: str, job: int, key: str = ""
) -> list[dict[str, object]]:
    """What the query of a question answers."""
    text = statements_of(title)[0].replace(":job", str(job)).replace(":'key'", f"'{key}'")
    text = text.replace(":'row'", "'7'").replace(":'schedule'", "'nightly'")
    return [dict(row) for row in await database.fetch(text)]


async def first_answer(database: Connection, job: int) -> tuple[str, dict[str, object]]:
    """The question, in the order of the page, whose query is the first to come back with a row."""
    for title in QUESTIONS:
        if rows := await asked(database, title, job):
            return title, rows[0]
    return "", {}


async def mend(database: Connection, title: str, job: int) -> None:
    """Do what the page advises."""
    [advice] = statements_of(title, mend=True)
    await database.execute(advice.replace(":job", str(job)))


async def claimed(database: Connection) -> int:
    """A job that runs on a worker that lives; its id."""
    job = (await running(database)).id
    await database.execute(
        "UPDATE hybrid_runner.workers SET first_claim = 0"
    )  # the claim is this worker's
    return job


async def enqueue(database: Connection, kind: str = "work", priority: int = 5) -> int:
    """Put in a job that has been due for a minute; its id."""
    job: int = await database.fetchval(
        "INSERT INTO hybrid_runner.jobs (kind, priority) VALUES ($1, $2) RETURNING id",
        kind,
        priority,
    )
    await database.execute(
        "UPDATE hybrid_runner.jobs SET run_at = now() - interval '1 minute' WHERE id = $1", job
    )
    return job


async def test_a_job_that_is_not_there(database: Connection) -> None:
    assert (await first_answer(database, 42))[0] == "1. Is it there?"


async def test_a_transaction_that_was_not_committed(
    database: Connection, another: Callable[[], Awaitable[Connection]]
) -> None:
    producer = await another()
    async with producer.transaction():
        await producer.execute("SET LOCAL application_name = 'the forgetful producer'")
        job = await producer.fetchval("SELECT hybrid_runner.enqueue('work')")
        assert (await first_answer(database, job))[0] == "1. Is it there?"
        [open_one] = await asked(database, "Its transaction has not been committed", job)
        assert open_one["application_name"] == "the forgetful producer"
        assert open_one["pid"] == producer.get_server_pid()
    assert await asked(database, "Its transaction has not been committed", job) == []


async def test_a_worker_in_another_database(database: Connection, dsn: str) -> None:
    name = await database.fetchval("SELECT current_database()")
    [here] = await asked(database, "It is in another database", 42)
    assert (here["database"], here["workers_here"]) == (name, [])
    app = Runner(dsn, worker_id="here")

    @app.job("work")
    async def work(_payload: dict[str, int]) -> None: ...

    async with working(app):
        [here] = await asked(database, "It is in another database", 42)
        assert here["workers_here"] == ["here"]


async def test_a_key_that_a_live_job_has(database: Connection) -> None:
    first = await database.fetchval(
        "SELECT hybrid_runner.enqueue('work', '{\"n\": 1}', key => 'order:7')"
    )
    second = await database.fetchval(
        "SELECT hybrid_runner.enqueue('work', '{\"n\": 2}', key => 'order:7')"
    )
    [holder] = await asked(database, "A live job had its key", second, key="order:7")
    assert (holder["id"], holder["payload"]) == (first, '{"n": 1}')
    assert second == first


async def test_a_row_of_an_attached_table(database: Connection) -> None:
    await inserted(database, 7)
    title = "It is a row of an attached table"
    [answer] = await asked(database, title, 0)
    assert (answer["relation_name"], answer["state"]) == ("public.audits", "queued")
    await database.execute(
        "DELETE FROM hybrid_runner.jobs; INSERT INTO hybrid_runner.late_rows (source, row_key, why)"
        " VALUES (1, '7', 'somebody holds the row')"
    )
    [answer] = await asked(database, title, 0)
    assert (answer["job"], answer["why"]) == (None, "somebody holds the row")


async def test_a_schedule_that_has_not_fired(database: Connection) -> None:
    title = "Its schedule has not fired"
    assert await asked(database, title, 0) == []
    await database.execute(
        "SELECT hybrid_runner.schedule('nightly', 'report', cron => '30 2 * * *');"
        " SELECT hybrid_runner.pause_schedule('nightly')"
    )
    [answer] = await asked(database, title, 0)
    assert answer["paused_at"] is not None
    assert (answer["live_workers"], answer["declared"], answer["last_job"]) == ([], False, None)


async def test_how_long_ended_jobs_are_kept(database: Connection) -> None:
    rows = await asked(database, "It ended, and is no longer kept", 42)
    assert [row["state"] for row in rows] == ["completed", "failed", "cancelled"]


async def test_a_job_that_has_ended(database: Connection) -> None:
    job = await ended(database)
    title, row = await first_answer(database, job)
    assert title == "2. Has it ended already?"
    assert row["state"] == "completed"
    await mend(database, title, job)
    assert (await first_answer(database, job))[0] != title


async def test_a_job_that_runs(database: Connection) -> None:
    job = await claimed(database)
    title, row = await first_answer(database, job)
    assert title == "3. Does it run right now?"
    assert row["worker_id"] == "worker-1"


@pytest.mark.parametrize(
    "death",
    [
        "UPDATE hybrid_runner.workers SET heartbeat_at = now() - interval '1 hour'",
        "UPDATE hybrid_runner.workers SET dead_at = now()",
        "UPDATE hybrid_runner.workers SET first_claim = 1000000000000",
        "DELETE FROM hybrid_runner.workers",
    ],
    ids=["silent", "declared dead", "started anew", "gone"],
)
async def test_a_job_of_a_dead_worker(database: Connection, death: str) -> None:
    job = await claimed(database)
    await database.execute(death)
    title, _ = await first_answer(database, job)
    assert title == "4. Is its worker dead?"


async def test_a_job_of_a_dead_worker_can_be_put_back(database: Connection) -> None:
    job = await claimed(database)
    await database.execute(
        "UPDATE hybrid_runner.workers SET heartbeat_at = now() - interval '1 hour'"
    )
    await mend(database, "4. Is its worker dead?", job)
    assert (
        await database.fetchval("SELECT state::text FROM hybrid_runner.jobs WHERE id = $1", job)
        == "queued"
    )


async def test_a_job_that_is_not_due(database: Connection) -> None:
    await living(database, queues=HEALTHY)
    job = await database.fetchval("SELECT hybrid_runner.enqueue('work', delay => '1 hour')")
    title, _ = await first_answer(database, job)
    assert title == "5. Is it due?"
    await mend(database, title, job)
    assert (await first_answer(database, job))[0] != title


async def test_a_queue_that_is_paused(database: Connection) -> None:
    await living(database, queues=HEALTHY)
    job = await enqueue(database)
    await database.execute("SELECT hybrid_runner.pause('default')")
    title, row = await first_answer(database, job)
    assert title == "6. Is its queue paused?"
    assert row["queue"] == "default"
    await mend(database, title, job)
    assert (await first_answer(database, job))[0] != title


async def test_a_queue_that_nobody_works_on(database: Connection, dsn: str) -> None:
    app = Runner(dsn)

    @app.job("work", queue="images")
    async def work(_payload: dict[str, int]) -> None: ...

    async with working(app, {"images": 1}):
        job = await enqueue(database)  # without a queue: `default`
        title, row = await first_answer(database, job)
        assert title == "7. Does anybody work on its queue?"
        assert (row["queue"], row["queues_with_workers"]) == ("default", ["images"])
        await mend(database, title, job)
        await app.handle(job).wait("2m")


async def test_a_row_that_somebody_holds(
    database: Connection, another: Callable[[], Awaitable[Connection]]
) -> None:
    await living(database, queues=HEALTHY)
    job, holder = await enqueue(database), await another()
    async with holder.transaction():
        await holder.execute("SELECT FROM hybrid_runner.jobs WHERE id = $1 FOR UPDATE", job)
        title, row = await first_answer(database, job)
        assert title == "8. Does another transaction hold its row?"
        assert row["pid"] == holder.get_server_pid()
    assert (await first_answer(database, job))[0] != title


async def test_slots_that_are_all_taken(database: Connection) -> None:
    await living(database, queues='{"default": 1}')
    long_one = await enqueue(database)
    assert len(await claim(database)) == 1
    await database.execute(
        "UPDATE hybrid_runner.workers SET running = '{\"default\": 1}'"
    )  # as its heartbeat does
    job = await enqueue(database)
    title, row = await first_answer(database, job)
    assert title == "9. Are all slots taken?"
    assert (row["running"], row["slots"], row["due"]) == (1, 1, 1)
    longest = await database.fetch(statements_of(title)[1].replace(":job", str(job)))
    assert [taken["id"] for taken in longest] == [long_one]


async def test_a_kind_that_nobody_knows(database: Connection, dsn: str) -> None:
    app = Runner(dsn)

    @app.job("thumbnail")
    async def thumbnail(_payload: dict[str, int]) -> None: ...

    async with working(app):
        handle = await app.enqueue(thumbnail, {})
        await handle.wait("2m")
        job = await enqueue(database, kind="thumbnial")
        title, row = await first_answer(database, job)
    assert title == "10. Does anybody know its kind?"
    assert (row["kind"], row["seen_at"]) == ("thumbnial", None)
    assert row["kinds_that_workers_know"] == ["thumbnail"]


async def test_a_kind_whose_workers_are_gone(database: Connection, dsn: str) -> None:
    """B17"""
    app, other = Runner(dsn), Runner(dsn)

    @app.job("thumbnail")
    async def thumbnail(_payload: dict[str, int]) -> None: ...

    @other.job("resize")
    async def resize(_payload: dict[str, int]) -> None: ...

    async with working(other):
        pass
    async with working(app):
        job = await enqueue(database, kind="resize")
        title, row = await first_answer(database, job)
    assert title == "10. Does anybody know its kind?"
    assert row["seen_at"] is not None


async def test_a_job_that_waits_for_a_signal(database: Connection, dsn: str) -> None:
    app = Runner(dsn)

    @app.job("order")
    async def order(_payload: dict[str, int]) -> Snooze | None:
        return Snooze("1h", wake_on="paid:7")

    async with working(app) as worker:
        handle = await app.enqueue(order, {})
        await until(lambda: worker.status().settled.get("snooze") == 1)
        title, row = await first_answer(database, handle.id)
    assert title == "5. Is it due?"
    assert (row["waits_for"], row["snoozes"], row["what"]) == ("paid:7", 1, "snooze")


async def test_a_job_that_waits_for_the_one_that_has_its_key(database: Connection) -> None:
    holder = (await running(database, "k")).id
    behind = await client_calls.enqueue_job(database, NewJob("work", key="k"), "follow")
    title, row = await first_answer(database, behind.id)
    assert title == "5. Is it due?"
    assert (behind.enqueued, row["behind"]) == ("follows", holder)


async def test_others_that_are_more_urgent(database: Connection) -> None:
    await ended(database)
    await living(database, queues=HEALTHY, kinds=["work"])
    job = await enqueue(database, priority=9)
    for _ in range(3):
        await enqueue(database, priority=0)
    title, row = await first_answer(database, job)
    assert title == "11. Is there much before it?"
    assert row["jobs_before_it"] == 3
    await mend(database, title, job)
    assert (
        await database.fetchval("SELECT priority FROM hybrid_runner.jobs WHERE id = $1", job) == 0
    )


async def test_a_job_that_should_run_has_no_answer(database: Connection) -> None:
    await ended(database)
    await living(database, queues=HEALTHY, kinds=["work"])
    assert await first_answer(database, await enqueue(database)) == ("", {})


@pytest.mark.parametrize("title", [title for title in SECTIONS if statements_of(title)])
async def test_a_reader_may_ask_and_a_worker_mend(database: Connection, title: str) -> None:
    job = await enqueue(database)
    await database.execute(
        "SET ROLE hybrid_runner_reader" if title[0] != "8" else "SET ROLE hybrid_runner_worker"
    )
    await asked(database, title, job)
    await database.execute("SET ROLE hybrid_runner_worker")
    for advice in statements_of(title, mend=True):
        await database.execute(advice.replace(":job", str(job)))


async def test_psql_takes_the_page_as_it_is(dsn: str, database: Connection) -> None:
    job = await enqueue(database)
    found = re.findall(r"^```(\w*)\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
    typed = [text for language, text in found if language in ("", "sql")]
    said = await asyncio.to_thread(
        subprocess.run,
        [psql_command().strip('"'), "--no-psqlrc", "--set", "ON_ERROR_STOP=1", dsn],
        input="".join(typed).replace("job 42", f"job {job}"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (said.returncode, said.stderr) == (0, "")


def test_every_question_has_one_query_first() -> None:
    assert [title.split(".")[0] for title in QUESTIONS] == [str(place) for place in range(1, 12)]
    assert all(statements_of(title) for title in QUESTIONS)


def test_the_commands_of_the_page_exist() -> None:
    commands = re.findall(r"`(hybrid-runner [^`]+)`", TEXT)
    assert len(commands) >= 5
    for command in commands:
        make_parser().parse_args(shlex.split(command)[1:])


def test_the_metrics_of_the_page_exist() -> None:
    named = set(re.findall(r"`(hybrid_runner_queue_\w+)`", TEXT))
    assert named
    assert named <= {instrument.name for instrument in INSTRUMENTS}


def test_an_application_says_which_kinds_it_knows(capsys: pytest.CaptureFixture[str]) -> None:
    [code] = re.findall(r'^python -c "(.+)"$', TEXT, re.MULTILINE)
    load("app", blocks("README.md", "python")[0].text)
    try:
        exec(code)  # noqa: S102 - our own page
    finally:
        del sys.modules["app"]
    assert capsys.readouterr().out == "['thumbnail']\n"
