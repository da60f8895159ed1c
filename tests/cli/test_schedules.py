"""hybrid-runner schedules."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from hybrid_runner.cli.commands import schedules as command
from hybrid_runner.cli.parsing import Parser
from hybrid_runner.handlers.schedule_options import option_texts
from hybrid_runner.storage.connections.connection import Connection
from tests.cli.running import fails, hybrid_runner, succeeds
from tests.support.scheduled import a_worker

_WRONG = """
from hybrid_runner import Runner
app = Runner()
@app.job("work")
async def work(payload: dict[str, int]) -> None: ...
app.schedule("nightly", work, cron="0 24 * * *")
"""
NEW_YEAR = "2040-01-01T00:00+00:00"


async def runs(*arguments: str) -> str:
    return await asyncio.to_thread(succeeds, "schedules", *arguments)


async def refuses(*arguments: str, code: int = 1) -> str:
    return await asyncio.to_thread(fails, "schedules", *arguments, code=code)


async def test_a_schedule_is_added_listed_shown_run_paused_and_removed(
    dsn: str, database: Connection
) -> None:
    await a_worker(database)
    assert await runs("list", "--dsn", dsn) == "no schedules\n"
    said = await runs("add", "once", "work", '{"n": 1}', "--at", NEW_YEAR, "--dsn", dsn)
    assert said.startswith("schedule 'once' fires in ")
    headers, line = (await runs("list", "--dsn", dsn)).splitlines()
    assert headers.split() == ["NEXT", "STATE", "SCHEDULE", "KIND", "WHEN", "LAST", "FIRED", "NOTE"]
    assert " on  " in line
    assert "at 2040-01-01T00:00:00+00:00" in line
    assert await runs("--dsn", dsn) == await runs("list", "--dsn", dsn)
    shown = await runs("show", "once", "--dsn", dsn)
    fields = dict(line.split(None, 1) for line in shown.split("\n\n")[0].splitlines())
    assert (fields["kind"], fields["payload"], fields["overlap"]) == ("work", '{"n": 1}', "skip")
    assert "next ticks\n  2040-01-01 00:00:00+00:00  in " in shown
    assert (await runs("run", "once", "--dsn", dsn)).endswith("of schedule 'once' is queued\n")
    assert await runs("pause", "once", "--dsn", dsn) == "schedule 'once' is paused\n"
    assert await runs("pause", "once", "--dsn", dsn) == "schedule 'once' was paused already\n"
    assert "paused" in await runs("list", "--dsn", dsn)
    assert await runs("resume", "once", "--dsn", dsn) == "schedule 'once' fires again\n"
    assert await runs("remove", "once", "--dsn", dsn) == "schedule 'once' is forgotten\n"
    assert await runs("list", "--dsn", dsn) == "no schedules\n"


async def test_as_json(dsn: str, database: Connection) -> None:
    await a_worker(database)
    said = json.loads(await runs("add", "hourly", "work", "--every", "1h", "--json", "--dsn", dsn))
    assert said["name"] == "hourly"
    listed = json.loads(await runs("list", "--json", "--dsn", dsn))
    [one] = listed["schedules"]
    assert (one["name"], one["state"], one["every"], listed["more"]) == (
        "hourly",
        "on",
        3600,
        False,
    )
    assert one["next_at"] == said["next_at"]
    shown = json.loads(await runs("show", "hourly", "--next", "3", "--json", "--dsn", dsn))
    assert (shown["payload"], len(shown["next"])) == ({}, 3)
    assert shown["next"][0]["tick"] == said["next_at"]
    ran = json.loads(await runs("run", "hourly", "--json", "--dsn", dsn))
    job = await database.fetchval("SELECT id FROM hybrid_runner.jobs")
    assert ran == {"name": "hourly", "id": job, "enqueued": "inserted"}
    again = await runs("run", "hourly", "--dsn", dsn)
    assert again == f"job {job} of schedule 'hourly' lives already: nothing was stored\n"
    assert json.loads(await runs("pause", "hourly", "--json", "--dsn", dsn)) == [
        {"name": "hourly", "outcome": "paused", "changed": True}
    ]


async def test_ticks_are_shown_in_the_schedules_own_zone(dsn: str) -> None:
    await runs(
        "add", "s", "work", "--cron", "30 2 * 7 *", "--timezone", "Europe/Berlin", "--dsn", dsn
    )
    ticks = (await runs("show", "s", "--next", "2", "--dsn", dsn)).split("next ticks\n")[1]
    assert [line.split()[1] for line in ticks.splitlines()] == ["02:30:00+02:00"] * 2


async def test_one_that_never_fires_says_so(dsn: str) -> None:
    said = await runs("add", "s", "work", "--cron", "0 0 30 2 *", "--dsn", dsn)
    assert said == "schedule 's' is stored, and never fires: no time is left\n"
    assert (await runs("list", "--dsn", dsn)).splitlines()[1].split()[:2] == ["never", "never"]
    shown = await runs("show", "s", "--dsn", dsn)
    assert "state       never" in shown
    assert shown.endswith("\nnever fires again\n")


async def test_one_whose_kind_nobody_knows_says_so(dsn: str) -> None:
    await runs("add", "s", "wrok", "--every", "1h", "--dsn", dsn)
    assert "no live worker knows the kind 'wrok'" in await runs("list", "--dsn", dsn)
    assert "no live worker knows the kind 'wrok'" in await runs("show", "s", "--dsn", dsn)


async def test_a_name_that_is_not_there_changes_nothing(dsn: str) -> None:
    await runs("add", "s", "work", "--every", "1h", "--dsn", dsn)
    for what in ("pause", "remove"):
        said = await refuses(what, "s", "nowhere", "--dsn", dsn)
        assert said == "there is no schedule 'nowhere'"
    assert "paused" not in await runs("list", "--dsn", dsn)
    for what in ("show", "run"):
        assert await refuses(what, "nowhere", "--dsn", dsn) == "there is no schedule 'nowhere'"


async def test_a_kind_that_looks_like_another_is_asked_about(
    dsn: str, database: Connection
) -> None:
    await database.execute("INSERT INTO hybrid_runner.kinds (name, queue) VALUES ('work', 'mail')")
    added = await asyncio.to_thread(
        hybrid_runner, "schedules", "add", "s", "wrok", "--every", "1h", "--dsn", dsn
    )
    assert added.returncode == 0
    assert "no worker has a handler for kind 'wrok': did you mean 'work'?" in added.stderr


async def test_a_worker_whose_code_declares_what_cannot_be_does_not_start(
    dsn: str, tmp_path: Path
) -> None:
    (tmp_path / "tasks.py").write_text(_WRONG, encoding="utf-8")
    said = await asyncio.to_thread(
        fails, "worker", "tasks:app", "--dsn", dsn, "--log-level", "error", cwd=tmp_path
    )
    assert said == "schedule 'nightly': cron: hour '24' is outside 0 to 23"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("add", "s"), "required: KIND"),
        (("add", "a b", "work"), "schedule 'a b': name must be 1 to 128 letters"),
        (("add", "s", "a b"), "'a b' is not a kind"),
        (("add", "s", "work", "{"), "the payload is not JSON"),
        (("add", "s", "work", "--at", "tomorrow"), "'tomorrow' is not a date and time"),
        (("add", "s", "work", "--evry", "5s"), "did you mean '--every'"),
        (("show", "s", "--next", "0"), "'0' is not a whole number 1 to 1000"),
        (("pause",), "required: NAME"),
        (("lst",), "did you mean 'list'"),
    ],
)
async def test_wrong_use_is_one_line(arguments: tuple[str, ...], said: str) -> None:
    assert said in await refuses(*arguments, code=2)


@pytest.mark.parametrize("name", sorted(option_texts()))
def test_the_command_has_every_option_with_its_text(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    parser = Parser(prog="schedules")
    command.configure(parser)
    with pytest.raises(SystemExit):
        parser.parse(["add", "--help"])
    said = "".join(capsys.readouterr().out.split())
    assert f"--{name.replace('_', '-')}" in said
    assert "".join(option_texts()[name].replace("`", "").split()) in said
