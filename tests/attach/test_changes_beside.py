"""What applications and owners do to a table while its rows are worked on."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import asyncpg
import pytest

from hybrid_runner.model.claims import Claim
from hybrid_runner.model.jobs import State
from hybrid_runner.model.settlements import Finished
from hybrid_runner.model.sources import ShownRow
from hybrid_runner.storage import claim_calls, source_calls
from hybrid_runner.storage.connections.connection import Connection
from tests.support.attached import COLUMNS, attach_audits, attach_table, read_row

Opens = Callable[[], Awaitable[Connection]]
KINDS = claim_calls.Kinds([claim_calls.KindLimits("audit", 3, None)])
INSERT = "INSERT INTO public.audits (website_url) VALUES ('a.example')"


async def claimed(database: Connection, number: int = 1) -> Claim:
    (claim,) = (await claim_calls.claim_jobs(database, "default", KINDS, 9, "w-1", number)).claims
    return claim


async def shown(database: Connection, claim: Claim) -> ShownRow:
    return (await source_calls.show_claims(database, [(claim.id, claim.number)]))[claim.id]


async def finish(database: Connection, claim: Claim) -> None:
    done = Finished(claim, State.COMPLETED, result="1")
    assert await claim_calls.finish_jobs(database, [done]) == {claim.id}


async def late(database: Connection) -> list[tuple[Any, ...]]:
    found = await database.fetch("SELECT row_key, why FROM hybrid_runner.late_rows")
    return list(map(tuple, found))


async def test_the_handler_sees_the_row_as_of_the_claim(database: Connection) -> None:
    """Row edited while queued"""
    await attach_audits(database)
    await database.execute(INSERT)
    await database.execute("UPDATE public.audits SET website_url = 'b.example'")
    claim = await claimed(database)
    await shown(database, claim)
    payload = await read_row(database, claim)
    assert json.loads(payload or "")["website_url"] == "b.example"


@pytest.mark.parametrize("word", ["completed", "failed", "archived"])
async def test_a_word_that_the_application_sets_while_the_job_runs_is_kept(
    word: str, database: Connection
) -> None:
    """App sets a final word itself while the job runs"""
    await attach_audits(database)
    await database.execute(INSERT)
    claim = await claimed(database)
    await shown(database, claim)
    await database.execute("UPDATE public.audits SET status = $1, error = 'own'", word)
    await finish(database, claim)
    row = await database.fetchrow("SELECT status, error, raw_data FROM public.audits")
    assert row is not None
    assert tuple(row) == (word, "own", None)
    assert await late(database) == []
    assert await database.fetchval("SELECT count(*) FROM hybrid_runner.jobs") == 0


@pytest.mark.parametrize("mapped", [True, False])
async def test_a_column_that_is_dropped_stops_no_job_and_attach_mends_it(
    mapped: bool, database: Connection
) -> None:
    """Column dropped or renamed"""
    await attach_audits(database)
    await database.execute(INSERT)
    claim = await claimed(database)
    await shown(database, claim)
    column = "retry_count" if mapped else "website_url"
    await database.execute(f"ALTER TABLE public.audits DROP {column}")
    await finish(database, claim)
    if not mapped:
        assert await late(database) == []
        return
    ((key, why),) = await late(database)
    assert key == "1"
    assert "retry_count" in why
    types = {name: value for name, value in vars(COLUMNS).items() if name != "retry_count"}
    await attach_table(database, "public.audits", columns=type(COLUMNS)(**types))
    await database.execute("UPDATE public.audits SET status = 'done'")
    await database.execute("UPDATE public.audits SET status = 'pending'")
    claim = await claimed(database, 2)
    assert (await shown(database, claim)).outcome == "written"
    await finish(database, claim)
    assert await database.fetchval("SELECT status FROM public.audits") == "completed"
    assert await late(database) == []


async def test_a_renamed_table_stops_no_job_and_attach_mends_it(database: Connection) -> None:
    """Table renamed"""
    await attach_audits(database)
    await database.execute(INSERT)
    claim = await claimed(database)
    await shown(database, claim)
    await database.execute("ALTER TABLE public.audits RENAME TO checks")
    await database.execute(INSERT.replace("audits", "checks"))
    await finish(database, claim)
    ((key, why),) = await late(database)
    assert key == "1"
    assert "attach it anew" in why
    again = await attach_table(database, "public.checks", columns=COLUMNS)
    assert again.number == 1
    claim = await claimed(database, 2)
    assert (await shown(database, claim)).outcome == "written"


async def test_a_dropped_table_stops_no_job(database: Connection) -> None:
    """Table dropped"""
    await attach_audits(database)
    await database.execute(INSERT)
    claim = await claimed(database)
    await shown(database, claim)
    await database.execute("DROP TABLE public.audits")
    await finish(database, claim)
    ((_, why),) = await late(database)
    assert "attach it anew" in why


async def test_a_job_whose_row_is_deleted_ends_and_the_row_is_not_late(
    database: Connection,
) -> None:
    """Delete of queued / running / finished row"""
    await attach_audits(database)
    await database.execute(INSERT)
    claim = await claimed(database)
    await shown(database, claim)
    await database.execute("DELETE FROM public.audits")
    await finish(database, claim)
    assert await late(database) == []
    await database.execute(INSERT)
    claim = await claimed(database, 2)
    await database.execute("DELETE FROM public.audits")
    assert (await shown(database, claim)).outcome == "gone"


async def test_whoever_reads_repeatably_is_refused_as_by_any_other_write(
    database: Connection, another: Opens
) -> None:
    """SERIALIZABLE / REPEATABLE READ writers"""
    await attach_audits(database)
    await database.execute(INSERT)
    form = await another()
    async with form.transaction(isolation="repeatable_read"):
        await form.fetchval("SELECT status FROM public.audits")
        claim = await claimed(database)
        await shown(database, claim)
        with pytest.raises(asyncpg.SerializationError):
            await form.execute("UPDATE public.audits SET website_url = 'b.example'")
    await finish(database, claim)
    async with form.transaction(isolation="serializable"):
        await form.execute("UPDATE public.audits SET status = 'pending'")
    assert (await claimed(database, 2)).row_key == "1"


async def test_a_foreign_key_to_the_row_holds_up_nobody(
    database: Connection, another: Opens
) -> None:
    """A child row that is not committed yet."""
    await attach_audits(database)
    await database.execute("CREATE TABLE public.children (audit bigint REFERENCES public.audits)")
    await database.execute(INSERT)
    form = await another()
    claim = await claimed(database)
    async with form.transaction():
        await form.execute("INSERT INTO public.children VALUES (1)")
        assert (await shown(database, claim)).outcome == "written"
        await finish(database, claim)
    assert await late(database) == []


async def test_what_own_triggers_wait_for_makes_the_row_late(
    database: Connection, another: Opens
) -> None:
    """Postgres gives up after 50 ms, and the settle goes on."""
    await attach_audits(database)
    await database.execute(
        "CREATE TABLE public.totals (number integer); INSERT INTO public.totals VALUES (0);"
        "CREATE FUNCTION public.count() RETURNS trigger LANGUAGE plpgsql AS"
        " 'BEGIN UPDATE public.totals SET number = number + 1; RETURN null; END';"
        "CREATE TRIGGER count AFTER UPDATE ON public.audits FOR EACH ROW"
        " EXECUTE FUNCTION public.count()"
    )
    await database.execute(INSERT)
    claim = await claimed(database)
    await shown(database, claim)
    form = await another()
    async with form.transaction():
        await form.execute("UPDATE public.totals SET number = 0")
        await finish(database, claim)
    ((_, why),) = await late(database)
    assert "lock timeout" in why


async def test_a_row_is_given_as_it_is_also_what_jsonb_could_not_hold(
    database: Connection,
) -> None:
    """A column of type json takes a NUL; so does the handler, which is given a text."""
    await attach_audits(database)
    await database.execute("ALTER TABLE public.audits ADD given json")
    await database.execute('INSERT INTO public.audits (given) VALUES (\'{"a": "\\u0000"}\')')
    claim = await claimed(database)
    row = await shown(database, claim)
    assert (row.outcome, await late(database)) == ("written", [])
    assert json.loads(await read_row(database, claim) or "")["given"] == {"a": "\0"}
