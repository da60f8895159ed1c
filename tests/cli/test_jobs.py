"""jobs list, show, cancel, retry, prune; queues pause, resume."""

from __future__ import annotations

import asyncio
import json
import re
from datetime import timedelta

import pytest

from hybrid_runner.model.jobs import NewJob, State
from hybrid_runner.model.settlements import Finished, Requeued
from hybrid_runner.storage import claim_calls, client_calls, worker_calls
from hybrid_runner.storage.connections.connection import Connection
from tests.cli.running import fails, succeeds
from tests.support.archive import aged, exists, partition
from tests.support.attached import attach_audits
from tests.support.jobs import claim, ended, enqueue, running

ERROR = {
    "at": "2026-01-01T00:00:00+00:00",
    "attempt": 1,
    "type": "ValueError",
    "message": "a \x1b[2J bad\nthing",
    "traceback": "Trace\n  line 1",
}


async def succeeds_(*arguments: str) -> str:
    return await asyncio.to_thread(succeeds, *arguments)


async def fails_(*arguments: str) -> str:
    return await asyncio.to_thread(fails, *arguments)


async def failed(database: Connection) -> int:
    claim = await running(database)
    await claim_calls.finish_jobs(
        database, [Finished(claim, State.FAILED, error=json.dumps(ERROR))]
    )
    return claim.id


async def test_list_shows_live_and_archived_jobs_newest_first(
    dsn: str, database: Connection
) -> None:
    first, second = await ended(database), await failed(database)
    third = await enqueue(database, queue="other")
    lines = (await succeeds_("jobs", "list", "--dsn", dsn)).splitlines()
    assert lines[0].split() == ["ID", "STATE", "QUEUE", "KIND", "ATTEMPT", "WHEN", "NOTE"]
    assert [line.split()[:3] for line in lines[1:]] == [
        [str(third), "queued", "other"],
        [str(second), "failed", "default"],
        [str(first), "completed", "default"],
    ]
    assert "ValueError: a \ufffd[2J bad thing" in lines[2]
    assert lines[3].endswith('"done"')


async def test_a_job_that_waits_for_the_one_that_has_its_key_says_so(
    dsn: str, database: Connection
) -> None:
    holder = await running(database, "k")
    behind = await client_calls.enqueue_job(database, NewJob("work", key="k"), "follow")
    [_, line, _] = (await succeeds_("jobs", "list", "--dsn", dsn)).splitlines()
    assert line.split()[0] == str(behind.id)
    note = f"after job {holder.id} waits for job {holder.id}, which has its key"
    assert " ".join(line.split()).endswith(note)
    shown = await succeeds_("jobs", "show", str(behind.id), "--dsn", dsn)
    assert f"job {holder.id}, which has its key" in shown
    await claim_calls.finish_jobs(database, [Finished(holder, State.COMPLETED, result="null")])
    lines = (await succeeds_("jobs", "list", "--dsn", dsn)).splitlines()
    assert not any("which has its key" in line for line in lines)


async def test_snoozes_are_shown(dsn: str, database: Connection) -> None:
    taken = await running(database)
    await claim_calls.requeue_jobs(
        database, [Requeued(taken, timedelta(hours=1), charged=False, why="snooze")]
    )
    assert "0/5, 1 snooze " in (await succeeds_("jobs", "list", "--dsn", dsn)).splitlines()[1]
    assert (
        json.loads(await succeeds_("jobs", "show", str(taken.id), "--json", "--dsn", dsn))[
            "snoozes"
        ]
        == 1
    )
    shown = dict(
        line.split(None, 1)
        for line in (await succeeds_("jobs", "show", str(taken.id), "--dsn", dsn))
        .split("\n\n")[0]
        .splitlines()
    )
    assert (shown["attempt"], shown["snoozes"]) == ("0", "1")


async def test_list_shows_the_signal_that_a_job_waits_for(dsn: str, database: Connection) -> None:
    taken = await running(database)
    wait = Requeued(
        taken, timedelta(hours=1), charged=False, why="snooze", wake_on="approved:42\x1b"
    )
    await claim_calls.requeue_jobs(database, [wait])
    line = (await succeeds_("jobs", "list", "--dsn", dsn)).splitlines()[1]
    assert "waits for approved:42" in line
    assert "\x1b" not in line


async def test_list_is_narrowed_by_state_queue_kind_and_limit(
    dsn: str, database: Connection
) -> None:
    done = await ended(database)
    other = await enqueue(database, queue="other", kind="other")

    async def listed(*options: str) -> list[int]:
        return [
            job["id"]
            for job in json.loads(await succeeds_("jobs", "list", "--json", "--dsn", dsn, *options))
        ]

    assert await listed() == [other, done]
    assert await listed("--state", "completed") == [done]
    assert await listed("--queue", "other") == [other]
    assert await listed("--kind", "work") == [done]
    assert await listed("--limit", "1") == [other]
    assert await listed("--state", "failed") == []
    assert await succeeds_("jobs", "list", "--dsn", dsn, "--state", "failed") == "no jobs\n"


async def test_show_tells_everything_and_errors_are_readable(
    dsn: str, database: Connection
) -> None:
    job = await failed(database)
    text = await succeeds_("jobs", "show", str(job), "--dsn", dsn)
    assert "state                failed" in text
    assert "attempt 1 at 2026-01-01T00:00:00+00:00  ValueError: a \ufffd[2J bad thing" in text
    assert "\n    Trace\n      line 1\n" in text
    assert "\x1b" not in text
    document = json.loads(await succeeds_("jobs", "show", str(job), "--dsn", dsn, "--json"))
    assert document["errors"] == [ERROR]
    assert set(document) >= {"id", "payload", "result", "finished_at", "progress", "traceparent"}


async def test_show_lists_the_runs_after_which_a_job_was_put_back(
    dsn: str, database: Connection
) -> None:
    """B16: what, which attempt, due, started, how long, by whom; and the run that goes on."""
    taken = await running(database)
    await claim_calls.requeue_jobs(
        database, [Requeued(taken, timedelta(0), charged=False, why="snooze")]
    )
    [again] = await claim(database)
    await claim_calls.requeue_jobs(
        database, [Requeued(again, timedelta(0), charged=True, why="retry")]
    )
    [last] = await claim(database)
    await claim_calls.finish_jobs(database, [Finished(last, State.COMPLETED)])
    text = await succeeds_("jobs", "show", str(taken.id), "--dsn", dsn)
    head, *runs = text.split("\n\n")[1].splitlines()
    assert head.split() == ["ATTEMPT", "END", "DUE", "STARTED", "TOOK", "WORKER"]
    assert [run.split()[:2] for run in runs] == [
        ["1", "snooze"],
        ["1", "retry"],
        ["2", "completed"],
    ]
    assert all(run.split()[-1] == "worker-1" for run in runs)
    document = json.loads(await succeeds_("jobs", "show", str(taken.id), "--dsn", dsn, "--json"))
    assert [run["what"] for run in document["history"]] == ["snooze", "retry"]
    assert set(document["history"][0]) == {"what", "attempt", "worker", "due", "started", "ended"}


async def test_show_lists_no_runs_of_a_job_that_was_never_put_back(
    dsn: str, database: Connection
) -> None:
    job = await ended(database)
    assert "TOOK" not in await succeeds_("jobs", "show", str(job), "--dsn", dsn)


async def test_a_history_that_somebody_wrote_by_sql_is_shown_harmlessly(
    dsn: str, database: Connection
) -> None:
    job = await enqueue(database)
    for history in (
        '[7, {"what": "\\u001b[2J", "started": "soon", "due": "0001-01-01T00:00:00+00:00"}]',
        '"\\u001b[2J"',
        '{"a": [1]}',
    ):
        await database.execute("UPDATE hybrid_runner.jobs SET history = $1::jsonb", history)
        assert "\x1b" not in await succeeds_("jobs", "show", str(job), "--dsn", dsn)


async def test_cancel_and_retry_say_what_became_of_each_job(dsn: str, database: Connection) -> None:
    taken = await running(database)
    queued = await enqueue(database)
    text = await succeeds_(
        "jobs", "cancel", str(queued), str(taken.id), "--reason", "no longer wanted", "--dsn", dsn
    )
    assert text.splitlines() == [
        f"job {queued} is cancelled",
        f"job {taken.id} runs, and was told to stop",
    ]
    view = await client_calls.get_job(database, queued)
    assert view is not None
    assert view.errors[-1]["message"] == "no longer wanted"
    assert (
        await succeeds_("jobs", "retry", str(queued), "--dsn", dsn)
        == f"job {queued} is queued again\n"
    )
    assert json.loads(await succeeds_("jobs", "retry", str(queued), "--json", "--dsn", dsn)) == [
        {"id": queued, "outcome": "queued"}
    ]
    assert f"job {taken.id} is running on worker worker-1: cancel it first" == await fails_(
        "jobs", "retry", str(taken.id), "--dsn", dsn
    )


async def test_jobs_that_cannot_be_found_or_changed_are_one_line(
    dsn: str, database: Connection
) -> None:
    done = await ended(database, key="mine")
    holder = await enqueue(database, key="mine")
    assert await fails_("jobs", "show", "12345", "--dsn", dsn) == "there is no job 12345"
    assert (
        await fails_("jobs", "cancel", "12345", "54321", "--dsn", dsn)
        == "there is no job 12345; there is no job 54321"
    )
    assert await fails_("jobs", "retry", "12345", "--dsn", dsn) == "there is no job 12345"
    assert (
        await fails_("jobs", "cancel", str(done), "--dsn", dsn) == f"job {done} has ended already"
    )
    assert "another live job has its key" in await fails_("jobs", "retry", str(done), "--dsn", dsn)
    assert await client_calls.get_job(database, holder) is not None


async def test_queues_are_paused_and_resumed(dsn: str) -> None:
    assert await succeeds_("queues", "pause", "images", "--dsn", dsn) == "queue images is paused\n"
    assert (
        await succeeds_("queues", "pause", "images", "--dsn", dsn)
        == "queue images was paused already\n"
    )
    answer = json.loads(
        await succeeds_("queues", "resume", "images", "other", "--json", "--dsn", dsn)
    )
    assert answer == [
        {"queue": "images", "paused": False, "changed": True},
        {"queue": "other", "paused": False, "changed": False},
    ]


async def test_payloads_that_python_can_hardly_hold_do_not_hide_the_others(
    dsn: str, database: Connection
) -> None:
    done = await ended(database)
    for payload in ("[1e400]", "[1e5000]", "[" * 900 + "]" * 900, "[" * 3000 + "]" * 3000):
        await database.execute(
            "INSERT INTO hybrid_runner.jobs (kind, payload) VALUES ('work', $1::jsonb)", payload
        )
    lines = (await succeeds_("jobs", "list", "--dsn", dsn)).splitlines()
    assert len(lines) == 6
    assert lines[-1].split()[0] == str(done)
    assert len(json.loads(await succeeds_("jobs", "list", "--json", "--dsn", dsn))) == 5


@pytest.mark.usefixtures("partitions_of_now")
async def test_prune_forgets_and_says_in_one_line_what_went(dsn: str, database: Connection) -> None:
    assert await succeeds_("jobs", "prune", "--dsn", dsn) == "nothing to forget\n"
    parts = [
        await partition(database, "archive_completed", hours * 60, (hours - 1) * 60)
        for hours in (4, 3)
    ]
    await aged(database, 190)
    assert re.fullmatch(
        r"partitions: 2 dropped; \d\d\.\d kB freed\n",
        await succeeds_("jobs", "prune", "--dsn", dsn),
    )
    assert not any([await exists(database, part) for part in parts])
    again = await partition(database, "archive_completed", 240, 180)
    [done] = json.loads(await succeeds_("jobs", "prune", "--json", "--dsn", dsn))
    assert done["bytes"] > 0
    assert done == {"what": "dropped", "partition": again, "bytes": done["bytes"]}


async def test_prune_beside_another_says_so(dsn: str, database: Connection) -> None:
    async with database.transaction():
        await worker_calls.prune(database, 1)
        said = await succeeds_("jobs", "prune", "--dsn", dsn)
    assert said == "another is pruning, or somebody retries an ended job: nothing was done\n"


async def test_a_job_of_an_attached_table_shows_its_row(dsn: str, database: Connection) -> None:
    """Also once the table is attached no more."""
    await attach_audits(database)
    await enqueue(database)
    await database.execute("INSERT INTO public.audits (website_url) VALUES ('a.example')")
    job = await database.fetchval("SELECT id FROM hybrid_runner.jobs WHERE source IS NOT NULL")
    lines = (await succeeds_("jobs", "list", "--dsn", dsn)).splitlines()
    assert lines[0].split()[:5] == ["ID", "STATE", "QUEUE", "KIND", "ROW"]
    assert lines[1].split()[3:6] == ["audit", "public.audits", "1"]
    shown = await succeeds_("jobs", "show", str(job), "--dsn", dsn)
    assert re.search(r"^row_key +1\ntable_name +public.audits$", shown, re.MULTILINE)
    await database.execute("DELETE FROM hybrid_runner.sources")
    lines = (await succeeds_("jobs", "list", "--dsn", dsn)).splitlines()
    assert lines[1].split()[3:7] == ["audit", "source", "1", "1"]
