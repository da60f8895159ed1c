"""Columns, keys and words that do not fit: one line each that says what would help (section 5)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hybrid_runner.model.sources import Columns, Words
from hybrid_runner.storage.connections.connection import Connection
from tests.attach.definitions import AUDITS, COLUMNS, WORDS, asked, checked, refusal


@pytest.fixture
async def audits(database: Connection) -> Connection:
    """A database with the table audits."""
    await database.execute(AUDITS)
    return database


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"status": "state"}, "has no column state (--status): did you mean status?"),
        ({"status": "x"}, "has no column x (--status): it has id, website_url, status, raw_data"),
        ({"status": "raw_data"}, "raw_data (--status) is jsonb: words need a text or an enum"),
        ({"worker_id": "id"}, "id (--worker-id) is uuid: it must be a text"),
        ({"started_at": "status2"}, "has no column status2 (--started-at): did you mean status?"),
        ({"heartbeat_at": "website_url"}, "(--heartbeat-at) is text: it must be a timestamptz"),
        ({"retry_count": "website_url"}, "(--retry-count) is text: it must be an integer"),
        ({"finished_at": "retry_count"}, "(--finished-at) is integer: it must be a timestamptz"),
        ({"result": "report"}, "report (--result) is bytea: it must be a jsonb, a json or a text"),
        ({"error": "urgency"}, "(--error) is integer: it must be a text, a jsonb or a json"),
        (
            {"error": "processing_worker_id"},
            "processing_worker_id is named by --worker-id and by --error: a column can show one",
        ),
    ],
)
async def test_a_column_that_cannot_show_what_it_should_is_refused(
    audits: Connection, columns: dict[str, str], said: str
) -> None:
    assert said in await refusal(audits, asked(columns=replace(COLUMNS, **columns)))


@pytest.mark.parametrize(
    ("made", "columns", "said"),
    [
        (
            "id int PRIMARY KEY, status text, n int GENERATED ALWAYS AS (id + 1) STORED",
            {"retry_count": "n"},
            "n (--retry-count) of public.runs is computed by Postgres and cannot be written",
        ),
        (
            "id int PRIMARY KEY, status text, n int GENERATED ALWAYS AS IDENTITY",
            {"retry_count": "n"},
            "n (--retry-count) of public.runs is computed by Postgres and cannot be written",
        ),
        (
            "id int, status text, PRIMARY KEY (id, status)",
            {},
            "status (--status) is part of the key, which must not change: take another column",
        ),
    ],
)
async def test_a_column_that_must_not_be_written_is_refused(
    database: Connection, made: str, columns: dict[str, str], said: str
) -> None:
    await database.execute(f"CREATE TABLE public.runs ({made})")
    definition = asked(table="runs", columns=Columns(status="status", **columns))
    assert said in await refusal(database, definition)


@pytest.mark.parametrize(
    ("key", "said"),
    [
        (("tenant",), "nothing makes tenant unique in public.runs: run CREATE UNIQUE INDEX ON"),
        (("tenant", "name"), "name (--key) may be NULL: run ALTER TABLE public.runs ALTER COLUMN"),
        (("tenant", "tenant"), "--key tenant,tenant names a column twice"),
        (("nobody",), "public.runs has no column nobody (--key)"),
        (("slug",), "nothing makes slug unique in public.runs"),
        (("late",), "nothing makes late unique in public.runs"),
    ],
)
async def test_a_key_that_does_not_tell_rows_apart_is_refused(
    database: Connection, key: tuple[str, ...], said: str
) -> None:
    """A partial index and a deferred constraint do not tell all rows apart at all times."""
    await database.execute(
        "CREATE TABLE public.runs (tenant text NOT NULL, name text, status text,"
        " slug text NOT NULL, late text NOT NULL UNIQUE DEFERRABLE, UNIQUE (tenant, name));"
        " CREATE UNIQUE INDEX ON public.runs (slug) WHERE status = 'pending'"
    )
    definition = asked(table="runs", key=key, columns=Columns(status="status"))
    assert said in await refusal(database, definition)


@pytest.mark.parametrize(
    ("payload", "said"),
    [
        (("id", "url"), "has no column url (--payload)"),
        ((), "--payload names no column: leave it out, or name one"),
    ],
)
async def test_a_payload_of_no_column_is_refused(
    audits: Connection, payload: tuple[str, ...], said: str
) -> None:
    assert said in await refusal(audits, asked(payload=payload))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"queued": None, "when": "true"}, "--queued is missing: say which word of status means"),
        (
            {"queued": None, "when": "status = 'pending' OR status = 'stalled'"},
            "--queued is missing",
        ),
        ({"running": "pending"}, "--queued and --running are both 'pending': a row would be"),
        ({"failed": "pending"}, "--queued and --failed are both 'pending'"),
        ({"snoozed": "pending"}, "--queued and --snoozed are both 'pending'"),
        ({"completed": "processing"}, "--running and --completed are both 'processing': nobody"),
        ({"cancelled": "processing"}, "--running and --cancelled are both 'processing'"),
        ({"snoozed": "failed"}, "--snoozed and --failed are both 'failed'"),
        ({"completed": ""}, "--completed is empty: name a word of the status column"),
        (
            {"completed": "done"},
            (
                "status of public.audits cannot hold 'done' (--completed): the constraint"
                " audits_status_check refuses it; choose another word, or change the constraint"
            ),
        ),
    ],
)
async def test_words_that_cannot_be_told_apart_or_held_are_refused(
    audits: Connection, changes: dict[str, Any], said: str
) -> None:
    """Decision: the queued word means nothing else, the running one no end."""
    when = changes.pop("when", "status = 'pending'")
    definition = asked(when=when, words=replace(WORDS, **changes))
    assert said in await refusal(audits, definition)


@pytest.mark.parametrize(
    ("made", "kind", "said"),
    [
        (
            "CREATE TYPE public.state AS ENUM ('pending', 'processing', 'completed')",
            "public.state",
            (
                "cannot hold 'failed' (--failed): public.state has pending, processing, completed;"
                " choose one of these, or run ALTER TYPE public.state ADD VALUE 'failed'"
            ),
        ),
        (
            "CREATE DOMAIN public.state AS text CHECK (VALUE <> 'failed')",
            "public.state",
            "cannot hold 'failed' (--failed): value for domain public.state violates check",
        ),
        (
            "",
            "varchar(9)",
            (
                "cannot hold 'processing' (--running), which has room for 9 characters: it would"
                " say 'processin'; choose another word, or a wider type"
            ),
        ),
        (
            "",
            "integer",
            "cannot hold 'processing' (--running): invalid input syntax for type integer",
        ),
        (
            (
                "CREATE TABLE public.states (name text PRIMARY KEY);"
                " INSERT INTO public.states VALUES ('pending'), ('processing'), ('completed')"
            ),
            "text REFERENCES public.states",
            "cannot hold 'failed' (--failed): it refers to public.states, which has no such name;",
        ),
        (
            "",
            "text CHECK (length(status) / (length(status) - 6) > 0)",
            "the constraint runs_status_check refuses it (division by zero)",
        ),
    ],
)
async def test_a_word_that_the_column_refuses_is_refused(
    database: Connection, made: str, kind: str, said: str
) -> None:
    """Section 5: a word that the enum or a CHECK of one column refuses, evaluated and named."""
    await database.execute(made or "SELECT 1")
    await database.execute(f"CREATE TABLE public.runs (id int PRIMARY KEY, status {kind})")
    definition = asked(table="runs", when="true", columns=Columns(status="status"))
    assert said in await refusal(database, definition)


async def test_a_constraint_that_is_not_enforced_refuses_nothing(database: Connection) -> None:
    if await database.fetchval("SELECT current_setting('server_version_num')::int < 180000"):
        pytest.skip("SKIPPED: PostgreSQL 18 has such constraints")
    await database.execute(
        "CREATE TABLE public.runs (id int PRIMARY KEY,"
        " status text CHECK (status = 'new') NOT ENFORCED)"
    )
    await checked(database, asked(table="runs", columns=Columns(status="status")))


async def test_numbers_can_be_words(database: Connection) -> None:
    await database.execute("CREATE TABLE public.runs (id int PRIMARY KEY, status smallint)")
    definition = asked(
        table="runs",
        when="status = 0",
        words=Words(queued="0", running="1", completed="2", failed="3"),
        columns=Columns(status="status"),
    )
    source = (await checked(database, definition)).source
    assert source.condition.new == "((new.status = '0'::smallint)) AND ((new.status = 0))"


async def test_a_table_that_is_partitioned_by_its_status_is_refused(database: Connection) -> None:
    """Each word would move the row; a unique index of such a table has the status in it."""
    await database.execute(
        "CREATE TABLE public.runs (id int, status text, PRIMARY KEY (id, status))"
        " PARTITION BY LIST (status)"
    )
    said = await refusal(database, asked(table="runs", columns=Columns(status="status")))
    assert "status (--status) is part of the key, which must not change" in said
