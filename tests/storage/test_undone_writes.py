"""A trigger of an attached table drops, takes back or translates what is written into its rows."""

from __future__ import annotations

from typing import Any

import pytest

from hybrid_runner.model.jobs import State
from hybrid_runner.model.settlements import Finished
from hybrid_runner.storage import claim_calls, row_calls, source_calls
from hybrid_runner.storage.connections.connection import Connection
from tests.support.attached import attach_audits

KINDS = claim_calls.Kinds([claim_calls.KindLimits("audit", 3, None)])
INSERT = "INSERT INTO public.audits (website_url) VALUES ('a.example')"
STATUS = "SELECT status FROM public.audits"
LATE = "SELECT state, why, is_refused FROM hybrid_runner.late_rows"
WHY = "a trigger of the table keeps its status"
TRIGGER = """
CREATE FUNCTION public.keep() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {} END $$;
CREATE TRIGGER keep {} UPDATE ON public.audits FOR EACH ROW EXECUTE FUNCTION public.keep()
"""
BEFORE = {
    "drops": "RETURN NULL;",
    "keeps": "new.status := old.status; RETURN new;",
    "returns the old row": "RETURN old;",
    "translates": "new.status := upper(new.status); RETURN new;",
}
ENDS = {
    "keeps": "IF new.status = 'completed' THEN new.status := old.status; END IF; RETURN new;",
    "drops": "IF new.status = 'completed' THEN RETURN NULL; END IF; RETURN new;",
}
AFTER = (
    "IF new.status = 'processing' THEN UPDATE public.audits SET status = 'pending'"
    " WHERE id = new.id; END IF; RETURN NULL;"
)


async def runs(database: Connection, number: int) -> int:
    """Works on what is there; how many jobs that was."""
    claims = (
        await claim_calls.claim_jobs(database, "default", KINDS, 9, "worker-1", number)
    ).claims
    await source_calls.show_claims(database, [(claim.id, claim.number) for claim in claims])
    ends = [Finished(claim, State.COMPLETED, result="1") for claim in claims]
    await claim_calls.finish_jobs(database, ends)
    return len(claims)


async def late(database: Connection) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in await database.fetch(LATE)]


async def write_late(database: Connection) -> str | None:
    outcomes = await row_calls.write_late_rows(database, 1, ["1"])
    return outcomes.get("1")


@pytest.mark.parametrize("body", BEFORE.values(), ids=BEFORE)
async def test_row_whose_trigger_undoes_every_write_runs_once(
    database: Connection, body: str
) -> None:
    await attach_audits(database)
    await database.execute(TRIGGER.format(body, "BEFORE"))
    await database.execute(INSERT)
    assert [await runs(database, number) for number in range(1, 4)] == [1, 0, 0]
    assert await late(database) == [("completed", WHY, True)]
    assert await write_late(database) == "undone"
    assert await runs(database, 4) == 0
    await database.execute("DROP TRIGGER keep ON public.audits")
    assert await write_late(database) == "written"
    assert await database.fetchval(STATUS) == "completed"
    assert await late(database) == []


@pytest.mark.parametrize("body", ENDS.values(), ids=ENDS)
async def test_row_whose_trigger_undoes_its_end_runs_once(database: Connection, body: str) -> None:
    """The row check leaves it alone as well: it is late, and not stray."""
    await attach_audits(database)
    await database.execute(TRIGGER.format(body, "BEFORE"))
    await database.execute(INSERT)
    assert await runs(database, 1) == 1
    assert await database.fetchval(STATUS) == "processing"
    assert await late(database) == [("completed", WHY, True)]
    assert await row_calls.find_stray_rows(database, 1, 9) == []
    assert await runs(database, 2) == 0


async def test_row_that_an_after_trigger_sets_back_runs_once(database: Connection) -> None:
    await attach_audits(database)
    await database.execute(TRIGGER.format(AFTER, "AFTER"))
    await database.execute(INSERT)
    assert [await runs(database, number) for number in range(1, 4)] == [1, 0, 0]
    assert await database.fetchval(STATUS) == "completed"


async def test_row_that_an_after_trigger_moves_on_from_its_end_is_not_late(
    database: Connection,
) -> None:
    """It is the application that goes on from there."""
    await attach_audits(database)
    on_end = AFTER.replace("'processing'", "'completed'").replace("'pending'", "'archived'")
    await database.execute(TRIGGER.format(on_end, "AFTER"))
    await database.execute(INSERT)
    assert await runs(database, 1) == 1
    assert await database.fetchval(STATUS) == "archived"
    assert await late(database) == []


async def test_other_rows_of_a_batch_are_written_beside_an_undone_one(
    database: Connection,
) -> None:
    await attach_audits(database)
    await database.execute(
        TRIGGER.format("IF old.id = 2 THEN RETURN NULL; END IF; RETURN new;", "BEFORE")
    )
    for _ in range(3):
        await database.execute(INSERT)
    assert await runs(database, 1) == 3
    words = await database.fetch("SELECT status FROM public.audits ORDER BY id")
    assert [row[0] for row in words] == ["completed", "pending", "completed"]
    assert await late(database) == [("completed", WHY, True)]
    assert await runs(database, 2) == 0


async def test_row_that_is_wanted_anew_after_an_undone_write_runs_again(
    database: Connection,
) -> None:
    """An update of the application's own is no write of a job."""
    await attach_audits(database)
    await database.execute(TRIGGER.format(BEFORE["drops"], "BEFORE"))
    await database.execute(INSERT)
    claims = (await claim_calls.claim_jobs(database, "default", KINDS, 9, "worker-1", 1)).claims
    await source_calls.show_claims(database, [(claim.id, claim.number) for claim in claims])
    await database.execute("DROP TRIGGER keep ON public.audits")
    await database.execute("UPDATE public.audits SET website_url = 'b.example'")
    ends = [Finished(claim, State.COMPLETED, result="1") for claim in claims]
    await claim_calls.finish_jobs(database, ends)
    assert await runs(database, 2) == 1
    assert await database.fetchval(STATUS) == "completed"
