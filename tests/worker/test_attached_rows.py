"""Jobs of rows of an attached table: the row shows them, and is what their handlers are given."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import pytest

from hybrid_runner import Cancel, Fail, Job, Repeat, RetryPolicy, Snooze
from hybrid_runner.storage.connections.connection import Connection, connect
from tests.support.attached import attach_audits
from tests.support.waiting import until, until_fetched
from tests.support.working import runner, working
from tests.worker import row_handlers

AT_ONCE = RetryPolicy(base="1ms", cap="1ms")
STATUS = "SELECT status FROM public.audits WHERE id = $1"
ROW = "SELECT * FROM public.audits WHERE id = $1"


async def wanted(database: Connection, url: str = "a.example") -> int:
    """Insert a row, as its application does."""
    number: int = await database.fetchval(
        "INSERT INTO public.audits (website_url) VALUES ($1) RETURNING id", url
    )
    return number


async def row(database: Connection, number: int) -> dict[str, Any]:
    found = await database.fetchrow(ROW, number)
    assert found is not None
    return dict(found)


async def shows(database: Connection, number: int, status: str) -> dict[str, Any]:
    """The row, once its status is that."""
    await until_fetched(database, STATUS, status, number)
    return await row(database, number)


@pytest.mark.parametrize("where", ["loop", "thread", "process"])
async def test_the_handler_is_given_the_row_as_it_is_when_it_begins(
    dsn: str, database: Connection, where: str
) -> None:
    """D1, D3, D7: wherever it runs; the row shows its start before the handler is called."""
    await attach_audits(database, kind=f"audit_in_{where}")
    async with working(runner(dsn, row_handlers.app.registry)) as worker:
        number = await wanted(database)
        ended = await shows(database, number, "completed")
        assert ended["processing_worker_id"] == worker.id
    assert json.loads(ended["raw_data"]) == {
        "seen": {"id": number, "website_url": "a.example", "status": "processing"},
        "attempt": 1,
    }
    assert ended["processing_started_at"] <= ended["last_heartbeat"] <= ended["finished_at"]
    assert (ended["retry_count"], ended["error"]) == (0, None)


async def test_a_row_edited_while_it_waits_is_worked_on_as_it_is_at_the_claim(
    dsn: str, database: Connection
) -> None:
    """Section 6: row edited while queued."""
    await attach_audits(database)
    number = await wanted(database)
    await database.execute("UPDATE public.audits SET website_url = 'b.example'")
    app = runner(dsn)

    @app.job("audit")
    async def audit(row: dict[str, Any]) -> Any:
        return row["website_url"]

    async with working(app):
        assert (await shows(database, number, "completed"))["raw_data"] == '"b.example"'


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("UPDATE public.audits SET status = 'archived'", "is not wanted any more"),
        ("DELETE FROM public.audits", "is gone"),
    ],
)
async def test_a_job_whose_row_is_not_wanted_any_more_is_cancelled_before_its_handler(
    dsn: str, database: Connection, change: str, reason: str
) -> None:
    """Section 6: cancelled or deleted while queued, and no worker heard of it."""
    await attach_audits(database)
    await wanted(database)
    await database.execute(change)
    app, called = runner(dsn), list[int]()

    @app.job("audit")
    async def audit(row: dict[str, Any]) -> None:
        called.append(row["id"])

    async with working(app) as worker:
        await worker.settled(1)
    ended = await database.fetchrow("SELECT state, errors FROM hybrid_runner.archive")
    assert ended is not None
    assert ended["state"] == "cancelled"
    assert json.loads(ended["errors"])[-1]["message"] == f"its row of public.audits {reason}"
    assert called == []
    assert await database.fetchval("SELECT count(*) FROM hybrid_runner.late_rows") == 0


async def test_each_end_has_its_word_and_each_attempt_its_count(
    dsn: str, database: Connection
) -> None:
    """D5, D7, D8: retried, failed, cancelled by its handler."""
    await attach_audits(database)
    app = runner(dsn)

    @app.job("audit", max_attempts=2, retry=AT_ONCE)
    async def audit(row: dict[str, Any], job: Job) -> Any:
        match row["website_url"]:
            case "twice" if job.attempt == 1:
                raise ValueError("no answer")
            case "twice":
                return row["retry_count"]
            case "never":
                raise ValueError("no answer")
            case "failed":
                raise Fail("not a site")
            case "cancelled":
                raise Cancel("nobody asks")

    async with working(app):
        numbers = {
            url: await wanted(database, url) for url in ("twice", "never", "failed", "cancelled")
        }
        twice = await shows(database, numbers["twice"], "completed")
        never = await shows(database, numbers["never"], "failed")
        failed = await shows(database, numbers["failed"], "failed")
        cancelled = await shows(database, numbers["cancelled"], "failed")
    assert (twice["raw_data"], twice["retry_count"], twice["error"]) == ("1", 1, None)
    assert (never["retry_count"], never["error"]) == (2, "no answer")
    assert (failed["retry_count"], failed["error"]) == (1, "not a site")
    assert (cancelled["retry_count"], cancelled["error"]) == (0, "nobody asks")


async def test_a_job_that_snoozes_leaves_its_row_running(dsn: str, database: Connection) -> None:
    """Section 7: the query runner stays `running` while it waits, with no worker."""
    await attach_audits(database)
    app = runner(dsn)

    @app.job("audit")
    async def audit(_: dict[str, Any], job: Job) -> Any:
        return job.snoozes or Snooze("1h")

    async with working(app) as worker:
        number = await wanted(database)
        await until_fetched(database, "SELECT snoozes FROM hybrid_runner.jobs", 1)
        waits = await row(database, number)
        assert (waits["status"], waits["processing_worker_id"]) == ("processing", None)
        assert waits["last_heartbeat"] is None
        assert waits["processing_started_at"] is not None
        await database.execute("SELECT hybrid_runner.retry(id) FROM hybrid_runner.jobs")
        assert (await shows(database, number, "completed"))["processing_worker_id"] == worker.id


async def test_a_row_that_a_form_holds_keeps_no_job_from_running(
    dsn: str, database: Connection
) -> None:
    """Section 6: row locked by a form for an hour: it is late, its job is not."""
    await attach_audits(database)
    number = await wanted(database)
    app = runner(dsn)

    @app.job("audit")
    async def audit(row: dict[str, Any]) -> Any:
        return row["website_url"]

    form = await connect(dsn)
    async with form.transaction():
        await form.execute("SELECT FROM public.audits FOR UPDATE")
        async with working(app, deaf=True) as worker:  # which does not sleep meanwhile
            await worker.settled(1)
        assert await database.fetchval("SELECT state FROM hybrid_runner.archive") == "completed"
        assert await database.fetchval("SELECT result FROM hybrid_runner.archive") == '"a.example"'
    assert (await row(database, number))["status"] == "pending"
    assert await database.fetchval("SELECT row_key FROM hybrid_runner.late_rows") == str(number)
    await form.close()


async def test_a_handler_can_complete_its_job_with_its_row_in_its_own_transaction(
    dsn: str, database: Connection
) -> None:
    """Section 6: it updates the row itself and calls `job.complete(connection=)`."""
    await attach_audits(database)
    app = runner(dsn)

    @app.job("audit")
    async def audit(row: dict[str, Any], job: Job) -> Any:
        connection = await connect(dsn)
        async with connection.transaction():
            await connection.execute(
                "UPDATE public.audits SET website_url = 'seen' WHERE id = $1", row["id"]
            )
            await job.complete({"score": 7}, connection=connection)
        await connection.close()

    async with working(app) as worker:
        number = await wanted(database)
        await worker.settled(1)
        ended = await row(database, number)
    assert (ended["status"], ended["raw_data"]) == ("completed", '{"score": 7}')
    assert ended["website_url"] == "seen"
    assert await database.fetchval("SELECT count(*) FROM hybrid_runner.late_rows") == 0


async def test_a_handler_that_holds_its_row_in_an_open_transaction_makes_it_late(
    dsn: str, database: Connection
) -> None:
    """Section 6: it is written when that transaction has ended, by what is true then."""
    await attach_audits(database)
    app, held = runner(dsn), await connect(dsn)
    transaction = held.transaction()

    @app.job("audit")
    async def audit(row: dict[str, Any]) -> None:
        await transaction.start()
        await held.execute("UPDATE public.audits SET website_url = 'mine' WHERE id = $1", row["id"])

    async with working(app) as worker:
        number = await wanted(database)
        await worker.settled(1)
        assert (await row(database, number))["status"] == "processing"
        assert await database.fetchval("SELECT count(*) FROM hybrid_runner.late_rows") == 1
        await transaction.commit()
    await held.close()


async def test_rows_that_cannot_be_read_are_put_back_and_worked_on_once_they_can(
    dsn: str, database: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    """Section 6: a column was renamed: the attempt is not charged, and the table is named."""
    caplog.set_level(logging.INFO)
    await attach_audits(database)
    await database.execute("ALTER TABLE public.audits RENAME status TO state")
    await database.execute("ALTER TABLE public.audits DISABLE TRIGGER USER")
    numbers = [
        await database.fetchval(
            "WITH made AS (INSERT INTO public.audits (website_url) VALUES ('a.example')"
            " RETURNING id) INSERT INTO hybrid_runner.source_1_jobs (row_key, payload)"
            " SELECT id::text, '{}' FROM made RETURNING row_key::int8"
        )
        for _ in range(10)
    ]
    app = runner(dsn)

    @app.job("audit")
    async def audit(_: dict[str, Any]) -> None: ...

    async with working(app):
        await until_fetched(
            database,
            "SELECT count(*) FROM hybrid_runner.jobs WHERE errors IS NOT NULL AND attempt = 0",
            10,
        )
        why = json.loads(await database.fetchval("SELECT errors FROM hybrid_runner.jobs LIMIT 1"))
        assert why[-1]["type"] == "RowUnread"
        assert why[-1]["message"].startswith("rows cannot be read of public.audits: column")
        await database.execute("ALTER TABLE public.audits RENAME state TO status")
        for number in numbers:
            ended = await shows(database, number, "completed")
            assert ended["retry_count"] == 0
    events = [record.__dict__.get("event") for record in caplog.records]
    said = [event for event in events if str(event).startswith("source.")]
    assert said
    # Once each time, however many rows: while the column is renamed back, a lock may be met.
    assert said == ["source.unreadable", "source.readable"] * (len(said) // 2)


async def test_one_row_that_refuses_does_not_make_the_others_late(
    dsn: str, database: Connection
) -> None:
    """Section 6: the batch is written in halves until it is found; its job runs all the same."""
    await attach_audits(database)
    await database.execute(
        "CREATE FUNCTION public.no() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE 'not this one'; END $$;"
        "CREATE TRIGGER no BEFORE UPDATE ON public.audits FOR EACH ROW"
        " WHEN (old.website_url = 'bad') EXECUTE FUNCTION public.no()"
    )
    for place in range(20):
        await wanted(database, "bad" if place == 7 else "good")
    app, begun, go_on = runner(dsn), list[str](), asyncio.Event()

    @app.job("audit")
    async def audit(row: dict[str, Any]) -> None:
        begun.append(row["website_url"])
        await go_on.wait()

    async with working(app, deaf=True) as worker:
        await until(lambda: len(begun) == 20)
        shown = "SELECT count(*) FROM public.audits WHERE status = 'processing'"
        assert await database.fetchval(shown) == 19
        why = await database.fetchval("SELECT why FROM hybrid_runner.late_rows")
        assert why == "not this one (P0001)"
        go_on.set()
        await worker.settled(20)
    assert sorted(begun) == ["bad"] + ["good"] * 19  # its row can be read, and is late


async def test_large_rows_reach_their_handlers_and_too_large_ones_say_what_to_do(
    dsn: str, database: Connection
) -> None:
    """More than one answer holds, and more than a handler can be given."""
    await attach_audits(database)
    await database.execute(
        "INSERT INTO public.audits (website_url)"
        " SELECT repeat('x', CASE WHEN n = 1 THEN 1100000 ELSE 900000 END)"
        " FROM generate_series(1, 13) AS n"
    )
    app = runner(dsn, payload_mib=20)

    @app.job("audit")
    async def audit(row: dict[str, Any]) -> int:
        return len(row["website_url"])

    async with working(app) as worker:
        await worker.settled(13)
    ends = await database.fetch(
        "SELECT status, raw_data, count(*) FROM public.audits GROUP BY 1, 2 ORDER BY 1"
    )
    assert [tuple(each) for each in ends] == [("completed", "900000", 12), ("failed", None, 1)]
    why = await database.fetchval("SELECT error FROM public.audits WHERE status = 'failed'")
    assert "1,048,576 are allowed: attach the table again with --payload" in why


async def test_rows_of_running_jobs_show_a_heartbeat(dsn: str, database: Connection) -> None:
    """D4: as often as the setting says, and no others'."""
    await attach_audits(database)
    app, go_on = runner(dsn, row_heartbeat="1s"), asyncio.Event()

    @app.job("audit")
    async def audit(_: dict[str, Any]) -> None:
        await go_on.wait()

    async with working(app):
        number = await wanted(database)
        began = (await shows(database, number, "processing"))["last_heartbeat"]

        async def beat() -> Any:
            return (await row(database, number))["last_heartbeat"]

        second = await until(beat, lambda at: at > began)
        await until(beat, lambda at: at > second)
        go_on.set()
        await shows(database, number, "completed")


async def test_a_row_whose_job_repeats_shows_each_run_as_wanted(
    dsn: str, database: Connection
) -> None:
    """Work that recurs for ever: between two runs nobody has the row."""
    await attach_audits(database)
    app = runner(dsn)

    @app.job("audit")
    async def audit(row: dict[str, Any]) -> Any:
        return Repeat("1h") if row["website_url"] == "again" else row["status"]

    async with working(app):
        number = await wanted(database, "again")
        await until_fetched(database, "SELECT run_at > now() FROM hybrid_runner.jobs", True)
        again = await row(database, number)
        assert (again["status"], again["processing_worker_id"]) == ("pending", None)
        await database.execute("UPDATE public.audits SET website_url = 'last'")
        await database.execute("SELECT hybrid_runner.retry(id) FROM hybrid_runner.jobs")
        assert (await shows(database, number, "completed"))["raw_data"] == '"processing"'


async def test_a_row_whose_handler_hangs_past_its_time_out_is_tried_again(
    dsn: str, database: Connection
) -> None:
    """D5: the error is in the row until an attempt completes it."""
    await attach_audits(database)
    app = runner(dsn)

    @app.job("audit", timeout=0.1, retry=AT_ONCE)
    async def audit(row: dict[str, Any], job: Job) -> list[str]:
        if job.attempt == 1:
            await asyncio.sleep(600)
        return [row["status"], row["error"]]

    async with working(app):
        ended = await shows(database, await wanted(database), "completed")
    status, error = json.loads(ended["raw_data"])
    assert status == "processing"
    assert error.startswith("ran longer than its time-out")
    assert (ended["retry_count"], ended["error"]) == (1, None)


async def test_a_row_wanted_anew_while_its_job_runs_is_worked_on_once_more(
    dsn: str, database: Connection
) -> None:
    """Section 6: the application sets `pending` while the job runs."""
    await attach_audits(database)
    app, begun, go_on = runner(dsn), list[str](), asyncio.Event()

    @app.job("audit")
    async def audit(row: dict[str, Any]) -> str:
        begun.append(row["website_url"])
        await go_on.wait()
        return begun[-1]

    async with working(app):
        number = await wanted(database, "old")
        await until(lambda: begun == ["old"])
        await database.execute("UPDATE public.audits SET status = 'pending', website_url = 'new'")
        go_on.set()
        ended = await shows(database, number, "completed")
    assert begun == ["old", "new"]
    assert ended["raw_data"] == '"new"'
    assert await database.fetchval("SELECT count(*) FROM hybrid_runner.archive") == 2


@pytest.mark.parametrize("word", ["completed", "archived"])
async def test_a_word_that_the_application_writes_while_the_job_runs_is_kept(
    dsn: str, database: Connection, word: str
) -> None:
    """Section 6: a final word of its own, or one that is none of ours; neither is late."""
    await attach_audits(database)
    app, go_on = runner(dsn), asyncio.Event()

    @app.job("audit")
    async def audit(_: dict[str, Any]) -> str:
        await go_on.wait()
        return "ours"

    async with working(app) as worker:
        number = await wanted(database)
        await shows(database, number, "processing")
        await database.execute(
            "UPDATE public.audits SET status = $1, raw_data = '\"theirs\"'", word
        )
        go_on.set()
        await worker.settled(1)
    kept = await row(database, number)
    assert (kept["status"], kept["raw_data"]) == (word, '"theirs"')
    assert await database.fetchval("SELECT count(*) FROM hybrid_runner.late_rows") == 0
    assert await database.fetchval("SELECT result FROM hybrid_runner.archive") == '"ours"'


async def test_a_retry_by_hand_of_an_ended_job_shows_on_its_row(
    dsn: str, database: Connection
) -> None:
    """Section 6: queued again, if the row still exists; and worked on."""
    await attach_audits(database)
    app, begun = runner(dsn), list[str]()

    @app.job("audit", max_attempts=1)
    async def audit(row: dict[str, Any]) -> str:
        begun.append(row["status"])
        if len(begun) == 1:
            raise ValueError("no answer")
        return "at last"

    async with working(app):
        number = await wanted(database)
        await shows(database, number, "failed")
        job = await database.fetchval("SELECT id FROM hybrid_runner.archive")
        assert await app.retry(job) == "queued"
        ended = await shows(database, number, "completed")
    assert (ended["raw_data"], ended["error"]) == ('"at last"', None)
    assert begun == ["processing", "processing"]


async def test_a_late_row_is_written_by_the_worker_itself_once_it_is_free(
    dsn: str, database: Connection
) -> None:
    """Section 6: the handler held it in an open transaction and returned."""
    await attach_audits(database)
    app, held = runner(dsn), await connect(dsn)
    transaction = held.transaction()

    @app.job("audit")
    async def audit(row: dict[str, Any]) -> int:
        await transaction.start()
        await held.execute("UPDATE public.audits SET website_url = 'mine' WHERE id = $1", row["id"])
        return 7

    async with working(app) as worker:
        number = await wanted(database)
        await worker.settled(1)
        assert (await row(database, number))["status"] == "processing"
        await transaction.commit()
        ended = await shows(database, number, "completed")
    await held.close()
    assert (ended["website_url"], ended["raw_data"]) == ("mine", "7")
