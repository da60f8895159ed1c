"""`--guess`: usual names, and it says what it took."""

from __future__ import annotations

import pytest

from hybrid_runner.attach.guess import guess
from hybrid_runner.errors import ConfigurationError
from hybrid_runner.model.sources import Columns, Words
from hybrid_runner.storage.connections.connection import Connection
from tests.attach.definitions import AUDITS, asked, checked

EXECUTION_JOBS = """
CREATE TABLE public.execution_jobs (
    id uuid PRIMARY KEY, recording_id uuid,
    status text CHECK (status IN ('queued', 'running', 'completed', 'failed', 'cancelled')),
    csv_data jsonb, config jsonb, total_rows int, completed_rows int, worker_id text,
    version integer DEFAULT 1, started_at timestamptz, completed_at timestamptz,
    created_at timestamptz, updated_at timestamptz
)
"""
SHELL_QUERY_RUNS = """
CREATE TYPE public.run_status AS ENUM ('queued', 'running', 'ready', 'failed', 'canceled');
CREATE TABLE public.shell_query_runs (
    id uuid PRIMARY KEY, tenant_id uuid, status public.run_status NOT NULL, task_id text,
    row_count bigint, error_message text, poll_started_at timestamp, started_at timestamp,
    completed_at timestamp, created_at timestamp
)
"""


@pytest.mark.parametrize(
    ("made", "table", "said"),
    [
        (
            AUDITS,
            "audits",
            (
                "--status status --worker-id processing_worker_id"
                " --started-at processing_started_at --heartbeat-at last_heartbeat"
                " --retry-count retry_count"
                " --queued pending --running processing --completed completed --failed failed"
            ),
        ),
        (
            EXECUTION_JOBS,
            "execution_jobs",
            (
                "--status status --worker-id worker_id --started-at started_at"
                " --finished-at completed_at --queued queued --running running"
                " --completed completed --failed failed --cancelled cancelled"
            ),
        ),
        (
            SHELL_QUERY_RUNS,
            "shell_query_runs",
            (
                "--status status --started-at started_at --finished-at completed_at"
                " --error error_message --queued queued --running running --completed ready"
                " --failed failed --cancelled canceled"
            ),
        ),
    ],
)
async def test_a_table_as_people_have_them_is_guessed(
    database: Connection, made: str, table: str, said: str
) -> None:
    """Section 7: three tables; what was guessed can be attached, and is said as options."""
    await database.execute(made)
    guessed = await guess(database, table, {}, {})
    assert " ".join(guessed.said) == said
    definition = asked(
        table=table,
        when="true",
        words=Words(**guessed.words),
        columns=Columns(**guessed.columns),
    )
    assert (await checked(database, definition)).source.words.queued in ("pending", "queued")


async def test_what_is_given_is_kept(database: Connection) -> None:
    await database.execute(AUDITS)
    guessed = await guess(
        database,
        "audits",
        {"failed": "stalled", "completed": "failed"},
        {"worker_id": "website_url", "result": "raw_data"},
    )
    assert guessed.words == {
        "queued": "pending",
        "running": "processing",
        "completed": "failed",
        "failed": "stalled",
    }
    assert guessed.columns["worker_id"] == "website_url"
    assert guessed.columns["result"] == "raw_data"
    assert not [line for line in guessed.said if "worker" in line or "failed" in line]


async def test_a_column_that_is_used_already_is_not_taken(database: Connection) -> None:
    await database.execute(
        "CREATE TABLE public.runs (worker_id text PRIMARY KEY, output text, claimed_by text,"
        " status text CHECK (status IN ('new', 'running', 'done', 'failed')))"
    )
    guessed = await guess(database, "runs", {}, {"error": "output"})
    assert guessed.columns == {"error": "output", "status": "status", "worker_id": "claimed_by"}


async def test_the_default_is_the_queued_word(database: Connection) -> None:
    await database.execute(
        "CREATE TABLE public.runs (id int PRIMARY KEY, \"State\" text DEFAULT 'fresh'"
        " CHECK (\"State\" IN ('new', 'fresh', 'Running', 'Done', 'error', 'it''s off')))"
    )
    guessed = await guess(database, "runs", {}, {})
    assert guessed.columns == {"status": "State"}
    assert guessed.words == {
        "queued": "fresh",
        "running": "Running",
        "completed": "Done",
        "failed": "error",
    }
    assert guessed.said[0] == "--status State"


@pytest.mark.parametrize(
    ("made", "said"),
    [
        ("id int PRIMARY KEY, phase text", "no column of public.runs looks like a status: name"),
        (
            "id int PRIMARY KEY, status text",
            (
                "which words of status are --queued and --running and --completed and --failed"
                " cannot be guessed: name them; no enum and no CHECK names its words"
            ),
        ),
        (
            "id int PRIMARY KEY, status text CHECK (status IN ('new', 'running', 'gut'))",
            "are --completed and --failed cannot be guessed: name them; it has new, running, gut",
        ),
    ],
)
async def test_what_has_no_usual_name_has_to_be_named(
    database: Connection, made: str, said: str
) -> None:
    await database.execute(f"CREATE TABLE public.runs ({made})")
    with pytest.raises(ConfigurationError, match=said.replace("(", r"\(")):
        await guess(database, "runs", {}, {})


async def test_a_field_that_is_none_is_refused(database: Connection) -> None:
    await database.execute(AUDITS)
    with pytest.raises(ConfigurationError, match="columns has no field 'worker'"):
        await guess(database, "audits", {}, {"worker": "website_url"})
