"""Rows are found again by keys of every type, in whatever way sessions print them."""

from __future__ import annotations

import pytest

from hybrid_runner.model.jobs import State
from hybrid_runner.model.settlements import Finished
from hybrid_runner.storage import claim_calls, source_calls
from hybrid_runner.storage.connections.connection import Connection
from tests.support.attached import attach_table

KINDS = claim_calls.Kinds([claim_calls.KindLimits("audit", 3, None)])
PREPARED = """
CREATE TYPE public."Odd enum" AS ENUM ('one', 'it''s');
CREATE DOMAIN public.code AS varchar(12) CHECK (value <> '');
CREATE DOMAIN public.number AS bigint;
CREATE DOMAIN public.again AS public.number;
CREATE TABLE public.tasks ({columns}, status text DEFAULT 'pending', PRIMARY KEY ({key}));
"""
APPLICATION = """
SET TimeZone = 'Asia/Kathmandu'; SET DateStyle = 'SQL, DMY'; SET IntervalStyle = 'sql_standard';
SET extra_float_digits = 3; SET bytea_output = 'escape';
"""
WORKER = """
SET TimeZone = 'America/St_Johns'; SET DateStyle = 'Postgres, MDY'; SET IntervalStyle = 'iso_8601';
SET extra_float_digits = 1; SET bytea_output = 'hex';
"""


@pytest.mark.parametrize(
    ("type_", "values"),
    [
        ("smallint", "(1), (-32768)"),
        ("integer", "(1), (-2147483648)"),
        ("bigint", "(1), (9223372036854775807)"),
        ("uuid", "('0b0e2e3e-7e57-4c67-9a39-6ee1e8a3a001'), (gen_random_uuid())"),
        ("text", "(''), ('it''s \\ \"a\" key'), ('ключ'), (repeat('k', 1024))"),
        ("varchar(36)", "('a'), (' a'), ('a ')"),
        ("char(10)", "('a'), (' b')"),
        ("public.code", "('a'), ('it''s')"),
        ("public.again", "(1), (2)"),
        ('public."Odd enum"', "('one'), ('it''s')"),
        ("boolean", "(true), (false)"),
        ("date", "('2026-02-03'), ('0044-03-15 BC'), ('infinity')"),
        ("timestamp", "('2026-02-03 04:05:06.789012'), ('-infinity')"),
        ("timestamptz", "('2026-02-03 04:05:06.789012Z'), ('2026-10-25 01:30:00Z'), ('infinity')"),
        ("numeric", "(1.10), (1e20), (-0.000000000000000000001)"),
        ("double precision", "(0.1), (1e300), (0.30000000000000004)"),
        ("real", "(0.1), (3.4e38)"),
        ("bytea", "('\\x00ff'), (''), ('a')"),
        ("inet", "('10.0.0.1'), ('10.0.0.0/8')"),
        ("time", "('04:05:06.7'), ('24:00')"),
        ("oid", "(1), (4294967295)"),
    ],
)
async def test_a_row_is_found_by_its_key_of_any_type(
    type_: str, values: str, database: Connection
) -> None:
    """uuid, text, composite keys"""
    await database.execute(PREPARED.format(columns=f"id {type_}", key="id"))
    await attach_table(database, "public.tasks", key=("id",))
    await database.execute(APPLICATION)
    inserted = await database.execute(f"INSERT INTO public.tasks (id) VALUES {values}")
    await _all_are_worked_on(database, int(inserted.split()[-1]))


@pytest.mark.parametrize(
    ("columns", "key", "values"),
    [
        ("tenant uuid, number integer", ("tenant", "number"), "(gen_random_uuid(), 1)"),
        ("a text, b text", ("a", "b"), "('x', 'y\"]'), ('x\"', 'y'), ('', ''), ('a\", \"b', '\\')"),
        ("at timestamptz, n bigint", ("n", "at"), "('2026-02-03Z', 1), ('2026-02-03Z', 2)"),
        ('"Odd"" $1 \'name" text, b public.code', ("Odd\" $1 'name", "b"), "('a', 'b')"),
        ('"order" integer, "new" text', ("order", "new"), "(1, 'a'), (2, 'a')"),
        ('"old" text, kind public."Odd enum"', ("old", "kind"), "('a', 'one'), ('a', 'it''s')"),
        ("n numeric, f double precision", ("n", "f"), "(1.0, 0.1), (2.50, 1e-300)"),
    ],
)
async def test_a_row_is_found_by_a_key_of_several_columns(
    columns: str, key: tuple[str, ...], values: str, database: Connection
) -> None:
    """uuid, text, composite keys"""
    quoted = ['"' + name.replace('"', '""') + '"' for name in key]
    await database.execute(PREPARED.format(columns=columns, key=", ".join(quoted)))
    await attach_table(database, "public.tasks", key=key)
    await database.execute(APPLICATION)
    inserted = await database.execute(f"INSERT INTO public.tasks VALUES {values}")
    await _all_are_worked_on(database, int(inserted.split()[-1]))
    # by the index of the key, and not by reading the table
    await database.execute("DELETE FROM public.tasks")
    noted = "SELECT count(*) FROM hybrid_runner.row_changes"
    assert await database.fetchval(noted) == 0


async def test_a_number_is_the_same_key_however_it_is_written(database: Connection) -> None:
    await database.execute(PREPARED.format(columns="id numeric", key="id"))
    await attach_table(database, "public.tasks", key=("id",))
    await database.execute("INSERT INTO public.tasks VALUES (1.0)")
    await database.execute("UPDATE public.tasks SET id = 1.000, status = 'done'")
    await database.execute("UPDATE public.tasks SET status = 'pending'")
    assert await database.fetchval("SELECT count(*) FROM hybrid_runner.jobs") == 1
    assert await database.fetchval("SELECT count(*) FROM hybrid_runner.row_changes") == 0


async def test_rows_with_too_long_a_key_are_left_out_with_a_warning(database: Connection) -> None:
    await database.execute(PREPARED.format(columns="id text", key="id"))
    await attach_table(database, "public.tasks", key=("id",))
    said: list[str] = []
    database.add_log_listener(lambda _, message: said.append(str(message)))
    await database.execute(
        "INSERT INTO public.tasks VALUES (repeat('k', 1025)), ('short'), (repeat('ü', 513))"
    )
    assert await database.fetchval("SELECT string_agg(row_key, ' ') FROM hybrid_runner.jobs") == (
        "short"
    )
    assert len(said) == 1
    assert "rows of tasks whose key is longer than 1024 bytes are not worked on" in said[0]
    await database.execute("UPDATE public.tasks SET status = 'done'")
    await database.execute("UPDATE public.tasks SET status = 'pending'")
    assert len(said) == 3
    assert await database.fetchval("SELECT hybrid_runner.source_1_want(10)") == 0


async def test_rows_without_a_key_are_left_out(database: Connection) -> None:
    """A key of unique columns that may be NULL."""
    await database.execute("CREATE TABLE public.tasks (id bigint UNIQUE, status text)")
    await attach_table(database, "public.tasks", key=("id",))
    await database.execute("INSERT INTO public.tasks VALUES (NULL, 'pending'), (1, 'pending')")
    await database.execute("UPDATE public.tasks SET id = 2 WHERE id IS NULL")
    keys = "SELECT string_agg(row_key, ' ' ORDER BY id) FROM hybrid_runner.jobs"
    assert await database.fetchval(keys) == "1 2"


@pytest.mark.parametrize("key", [("id",), ("tenant", "id")])
async def test_a_row_is_found_by_the_index_of_its_key(
    key: tuple[str, ...], database: Connection
) -> None:
    await database.execute(
        PREPARED.format(columns="tenant text DEFAULT 't', id bigint", key=", ".join(key))
    )
    await attach_table(database, "public.tasks", key=key)
    await database.execute(
        "INSERT INTO public.tasks SELECT 't', n, 'done' FROM generate_series(1, 20000) AS n"
    )
    await database.execute("VACUUM ANALYZE public.tasks")
    await database.execute("INSERT INTO public.tasks VALUES ('t', 20001, 'pending')")
    await _all_are_worked_on(database, 1)
    if database.get_server_version() < (15,):
        pytest.skip("its statistics come when they like")
    await database.execute("SELECT pg_stat_force_next_flush()")
    scans = "SELECT seq_scan FROM pg_stat_user_tables WHERE relname = 'tasks'"
    assert await database.fetchval(scans) == 3  # that of ANALYZE, and two of this test


async def _all_are_worked_on(database: Connection, number: int) -> None:
    """Each row shows that its job runs, and then its end."""
    await database.execute(WORKER)
    claims = (await claim_calls.claim_jobs(database, "default", KINDS, 99, "w", 1)).claims
    assert len(claims) == number
    shown = await source_calls.show_claims(database, [(claim.id, claim.number) for claim in claims])
    assert {row.outcome for row in shown.values()} == {"written"}
    running = "SELECT count(*) FROM public.tasks WHERE status = 'processing'"
    assert await database.fetchval(running) == number
    ends = [Finished(claim, State.COMPLETED, result="1") for claim in claims]
    assert len(await claim_calls.finish_jobs(database, ends)) == number
    done = "SELECT count(*) FROM public.tasks WHERE status = 'completed'"
    assert await database.fetchval(done) == number
    assert await database.fetchval("SELECT count(*) FROM hybrid_runner.late_rows") == 0
