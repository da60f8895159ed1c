"""What the explorer of sources says, by real sessions: every order of the statements of an
application, a worker, and those who write late rows and apply changes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

import pytest

from hybrid_runner.storage.connections.connection import Connection
from tests.model.sources.on_postgres import (
    Play,
    Stage,
    Step,
    apply_changes,
    begin,
    claim,
    commit,
    edit,
    finish,
    is_circle,
    orders,
    retry,
    roll_back,
    show,
    write_late,
)
from tests.support.attached import AUDITS, COLUMNS, attach_table

Opened = Callable[[], Awaitable[Connection]]

ARM = "UPDATE public.audits SET status = 'pending', website_url = 'armed' WHERE id = $1"
# Of a row that is not queued any more it says nothing about what is wanted.
EDIT = (
    "UPDATE public.audits SET website_url = CASE status WHEN 'pending' THEN 'edited'"
    " ELSE website_url END WHERE id = $1"
)
STOP = "UPDATE public.audits SET status = 'stopped' WHERE id = $1"
DELETE = "DELETE FROM public.audits WHERE id = $1"
INSERT = (
    "INSERT INTO public.audits (id, website_url) OVERRIDING SYSTEM VALUE VALUES ($1, 'inserted')"
)


def both(*steps: Step) -> Step:
    """One after the other, as one step."""

    async def step(on: Connection, play: Play) -> None:
        for one in steps:
            await one(on, play)

    return step


WORKER = (both(begin, show), commit, both(begin, finish), commit)
ENDING = (both(begin, finish), commit)
LATER = (write_late,)
CHANGING = (both(begin, apply_changes), commit)

STORIES: dict[str, tuple[str, Mapping[str, Sequence[Step]]]] = {
    "edited while it is shown and ends": (
        "claimed",
        {"application": (both(begin, edit(EDIT)), commit), "worker": WORKER, "later": LATER},
    ),
    "held for nothing while it is shown and ends": (
        "claimed",
        {"application": (both(begin, edit(EDIT)), roll_back), "worker": WORKER, "later": LATER},
    ),
    "armed again while it ends": (
        "shown",
        {
            "application": (both(begin, edit(ARM)), edit(ARM, 1), commit),
            "worker": ENDING,
            "later": LATER,
        },
    ),
    "armed again in the other order": (
        "shown",
        {
            "application": (both(begin, edit(EDIT, 1)), edit(ARM), edit(ARM, 1), commit),
            "worker": ENDING,
        },
    ),
    "stopped and armed again": (
        "queued",
        {
            "application": (edit(STOP), both(begin, edit(ARM)), commit),
            "changes": CHANGING,
        },
    ),
    "stopped and armed again while it is shown": (
        "claimed",
        {
            "application": (edit(STOP), edit(ARM)),
            "worker": WORKER,
            "changes": (apply_changes,),
        },
    ),
    "deleted and inserted again": (
        "queued",
        {
            "application": (edit(DELETE), both(begin, edit(INSERT)), commit),
            "changes": CHANGING,
        },
    ),
    "deleted and inserted again while it ends": (
        "shown",
        {
            "application": (edit(DELETE), both(begin, edit(INSERT)), commit),
            "worker": ENDING,
            "changes": (apply_changes,),
        },
    ),
    "run again by somebody while its row is held": (
        "ended",
        {
            "application": (both(begin, edit(EDIT)), roll_back),
            "operator": (retry,),
            "worker": (both(claim, show), finish),
        },
    ),
    "run again by somebody while its end is written later": (
        "held",
        {
            "application": (roll_back,),
            "later": (both(begin, write_late), commit),
            "operator": (retry,),
            "worker": (both(claim, show),),
        },
    ),
    "stopped while it is shown and ends": (
        "claimed",
        {"application": (both(begin, edit(STOP)), commit), "worker": WORKER, "later": LATER},
    ),
}


@pytest.fixture
async def source(database: Connection) -> int:
    await database.execute(AUDITS)
    cancel = "{row}.status = 'stopped'"
    return (await attach_table(database, "public.audits", columns=COLUMNS, cancel=cancel)).number


async def told(stage: Stage, database: Connection, state: str, rows: int = 2) -> Play:
    """Rows whose jobs are queued, claimed, shown, ended, or ended while somebody holds a row."""
    play = await stage.begun(rows)
    if state != "queued":
        await claim(database, play)
    if state in ("shown", "ended", "held"):
        await show(database, play)
    if state == "held":
        await stage.take("application", both(begin, edit(EDIT)), play)
    if state in ("ended", "held"):
        play.retried = [claim.id for claim in play.claims.values()]
        await finish(database, play)
    return play


async def what_is_wrong(database: Connection, play: Play, last: Mapping[int, str]) -> list[str]:
    wrong = [str(error) for error in play.errors]
    if play.retried:
        attempts = await database.fetch(
            "SELECT state::text FROM hybrid_runner.archive WHERE id = ANY ($1)", play.retried
        )
        wrong += [
            f"a job that was run again is {row[0]}" for row in attempts if row[0] != "completed"
        ]
    for row in await database.fetch("SELECT * FROM public.audits WHERE id = ANY ($1)", play.rows):
        shown = (row["status"], row["raw_data"], row["website_url"])
        if row["status"] == "stopped":
            if last.get(row["id"]) != "stopped":
                wrong.append(f"{row['id']} was armed again, and shows {shown}")
        elif row["status"] != "completed":
            wrong.append(f"{row['id']} shows {shown}")
        elif row["raw_data"] != f'"{row["website_url"]}"':
            wrong.append(f"nobody read what {row['id']} shows: {shown}")
    return wrong


@pytest.mark.parametrize("name", STORIES)
async def test_in_every_order_each_row_ends_as_it_was_last_wanted(
    database: Connection, another: Opened, source: int, name: str
) -> None:
    """Section 6: set to pending, edited, cancelled, deleted while the job waits, runs or ends."""
    state, scripts = STORIES[name]
    stage = await Stage.of(source, list(scripts), another)
    ends_stopped = name.startswith("stopped while")
    for order in orders({actor: len(steps) for actor, steps in scripts.items()}):
        play = await told(stage, database, state)
        await stage.play(play, scripts, order)
        await stage.rest(play)
        last = {play.rows[0]: "stopped"} if ends_stopped else {}
        assert not await what_is_wrong(database, play, last), order


# --- each rule is there for a fault that is seen without it

DROPPED = {
    "who ends a job waits for its row": (
        "source_1_write",
        "NO KEY UPDATE OF new SKIP LOCKED",
        "NO KEY UPDATE OF new",
        "armed again in the other order",
    ),
    "no job is stored by whoever ends one": (
        "row_verdict",
        "'again'",
        "'keep'",
        "armed again while it ends",
    ),
    "what is queued was never changed": (
        "row_verdict",
        "OR is_untouched",
        "OR true",
        "edited while it is shown and ends",
    ),
    "what is written later goes over what was changed": (
        "source_1_write",
        "$12 AND a.state = 'running'",
        "false AND a.state = 'running'",
        "edited while it is shown and ends",
    ),
    "who runs a job again does not wait for who writes its row later": (
        "retry",
        "WHERE l.source = done.source",
        "WHERE false AND l.source = done.source",
        "run again by somebody while its end is written later",
    ),
    "an ended row that nobody touched is kept": (
        "row_verdict",
        "shows = 'ended' AND is_untouched",
        "false",
        "run again by somebody while its row is held",
    ),
    "a row inserted beside a live job is not noted": (
        "source_1_inserted",
        "IF cardinality(made) < wanted THEN",
        "IF false THEN",
        "deleted and inserted again",
    ),
}


@pytest.mark.parametrize("rule", DROPPED)
async def test_without_its_rule_a_row_goes_wrong_in_some_order(
    database: Connection, another: Opened, source: int, rule: str
) -> None:
    function, part, instead, name = DROPPED[rule]
    definition = await database.fetchval(
        "SELECT pg_get_functiondef(p.oid) FROM pg_proc AS p WHERE p.proname = $1", function
    )
    assert part in definition
    # The time-out of what rows are written by would break a circle, too.
    definition = definition.replace("SET lock_timeout TO '50ms'", "")
    await database.execute(definition.replace(part, instead))
    state, scripts = STORIES[name]
    stage = await Stage.of(source, list(scripts), another)
    for order in orders({actor: len(steps) for actor, steps in scripts.items()}):
        play = await told(stage, database, state)
        await stage.play(play, scripts, order)
        if play.errors:
            break
        await stage.rest(play)
        if await what_is_wrong(database, play, {}):
            break
    else:
        pytest.fail("every order went well")


async def test_a_naive_mirror_and_its_application_wait_for_each_other_and_ours_does_not(
    database: Connection, another: Opened, source: int
) -> None:
    """Section 1: who updates a row and then arms it again, while it waits for who ended its job."""
    application = (both(begin, edit(EDIT)), edit(ARM), commit)
    circles = {}
    for name, worker in (
        ("naive", (both(begin, end_naively), mirror_naively, commit)),
        ("ours", ENDING),
    ):
        scripts = {"application": application, "worker": worker}
        stage = await Stage.of(source, list(scripts), another)
        circles[name] = 0
        for order in orders({actor: len(steps) for actor, steps in scripts.items()}):
            play = await told(stage, database, "shown", rows=1)
            await stage.play(play, scripts, order)
            circles[name] += any(map(is_circle, play.errors))
    assert circles["naive"]
    assert circles["ours"] == 0


async def end_naively(on: Connection, play: Play) -> None:
    ids = [claim.id for claim in play.claims.values()]
    await on.execute("DELETE FROM hybrid_runner.jobs WHERE id = ANY ($1)", ids)


async def mirror_naively(on: Connection, play: Play) -> None:
    await on.execute("UPDATE public.audits SET status = 'completed' WHERE id = ANY ($1)", play.rows)


async def test_fifty_rows_held_by_an_application_stop_no_job_and_are_written_when_it_commits(
    database: Connection, another: Opened, source: int
) -> None:
    """2,000 jobs over 500 rows end meanwhile."""
    stage = await Stage.of(source, [], another)
    play = await stage.begun(500)
    form, ended = await another(), 0
    held = play.rows[:50]
    async with form.transaction():
        await form.execute("SELECT FROM public.audits WHERE id = ANY ($1) FOR UPDATE", held)
        while ended < 2000:
            await claim(database, play)
            await show(database, play)
            ended += len(play.read)
            await finish(database, play)
            assert not await database.fetchval("SELECT count(*) FROM hybrid_runner.jobs")
            await database.execute(
                "UPDATE public.audits SET status = 'pending' WHERE id <> ALL ($1)", held
            )
            late = await database.fetch("SELECT row_key FROM hybrid_runner.late_rows")
            assert {int(row["row_key"]) for row in late} == set(held)
    await stage.rest(play)
    shown = await database.fetch("SELECT status, count(*) FROM public.audits GROUP BY status")
    assert [tuple(row) for row in shown] == [("completed", 500)]
