"""attach, detach, sources."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from hybrid_runner.attach.options import option_texts
from hybrid_runner.cli.commands import attach as attach_command
from hybrid_runner.storage.connections.connection import Connection, connect
from tests.cli.running import fails, hybrid_runner, succeeds
from tests.support.own_tables import ORDERS, WORDED, made_for_sources, run_by_psql


async def runs(*arguments: str) -> str:
    return await asyncio.to_thread(succeeds, *arguments)


async def refuses(*arguments: str, code: int = 1) -> str:
    return await asyncio.to_thread(fails, *arguments, code=code)


@pytest.fixture
async def orders(database: Connection) -> None:
    await database.execute(ORDERS)
    await database.execute("INSERT INTO public.orders DEFAULT VALUES")


@pytest.mark.usefixtures("orders")
async def test_a_table_is_attached_listed_shown_and_detached(
    dsn: str, database: Connection
) -> None:
    said = await runs("attach", "orders", *WORDED, "--dsn", dsn)
    assert said.splitlines()[-2:] == [
        "public.orders is attached as source 1 for kind order, queue default",
        "1 row that was wanted already: queued",
    ]
    listed = (await runs("sources", "list", "--dsn", dsn)).splitlines()
    assert [line.split() for line in listed] == [
        ["ID", "STATE", "TABLE", "KIND", "QUEUE", "QUEUED", "RUNNING", "LATE", "NOTE"],
        ["1", "attached", "public.orders", "order", "default", "1", "0", "0"],
    ]
    assert (await runs("sources", "--dsn", dsn)).splitlines() == listed
    shown = dict(
        line.split(None, 1)
        for line in (await runs("sources", "show", "orders", "--dsn", dsn)).splitlines()
    )
    assert shown["jobs"] == "1 queued, 0 running"
    assert 'queued "waiting"' in shown["words"]
    assert shown["columns"] == 'status "status", worker_id "worker", result "result"'
    assert shown["triggers"].startswith("hybrid_runner_1_delete, hybrid_runner_1_insert")
    assert (await runs("detach", "orders", "--dsn", dsn)) == (
        "public.orders is detached; 1 queued job ended\n"
    )
    assert await runs("sources", "list", "--dsn", dsn) == "no table is attached\n"
    assert await made_for_sources(database) == []


async def test_late_rows_are_listed(dsn: str, database: Connection) -> None:
    await database.execute(ORDERS)
    await runs("attach", "orders", *WORDED, "--dsn", dsn)
    await database.execute(
        "INSERT INTO hybrid_runner.late_rows (source, row_key, why) VALUES (1, '7', 'held')"
    )
    listed = (await runs("sources", "--dsn", dsn)).splitlines()[1]
    assert "late rows: 1 (held)" in listed
    assert listed.split()[1] == "late"


@pytest.mark.usefixtures("orders")
async def test_as_json(dsn: str) -> None:
    said = json.loads(await runs("attach", "orders", *WORDED, "--json", "--dsn", dsn))
    assert (said["id"], said["table"], said["is_kept"]) == (1, "public.orders", True)
    assert (said["queued"], said["sql"]) == (1, None)
    [listed] = json.loads(await runs("sources", "list", "--json", "--dsn", dsn))
    assert listed == json.loads(await runs("sources", "show", "1", "--json", "--dsn", dsn))
    assert (listed["table"], listed["complaints"]) == ("public.orders", [])
    assert listed["definition"]["columns"]["status"] == "status"
    detached = json.loads(await runs("detach", "orders", "--json", "--dsn", dsn))
    assert (detached["table"], detached["cancelled"]) == ("public.orders", 1)
    assert json.loads(await runs("sources", "list", "--json", "--dsn", dsn)) == []


@pytest.mark.usefixtures("orders")
async def test_a_check_says_what_would_be_done(dsn: str, database: Connection) -> None:
    said = await runs("attach", "orders", *WORDED, "--check", "--dsn", dsn)
    assert said.splitlines()[-1] == (
        "public.orders can be attached for kind order, queue default; nothing was changed"
    )
    assert await made_for_sources(database) == []


@pytest.mark.usefixtures("orders")
async def test_the_script_is_all_that_is_on_stdout(dsn: str, database: Connection) -> None:
    arguments = ("attach", "orders", *WORDED, "--sql", "--backfill", "none", "--dsn", dsn)
    ended = await asyncio.to_thread(hybrid_runner, *arguments)
    assert ended.returncode == 0
    assert "note: rows that were missed are not looked for" in ended.stderr
    assert await made_for_sources(database) == []
    run_by_psql(dsn, ended.stdout)
    assert len(await made_for_sources(database)) > 5
    assert await database.fetchval("SELECT count(*) FROM hybrid_runner.jobs") == 0


@pytest.mark.usefixtures("orders")
async def test_whoever_holds_the_table_is_named_in_one_line(dsn: str) -> None:
    holder = await connect(dsn)
    await holder.execute("BEGIN; LOCK TABLE public.orders IN ROW EXCLUSIVE MODE")
    quiet = ("--log-level", "error", "--wait", "1s", "--dsn", dsn)
    said = await refuses("attach", "orders", *WORDED, *quiet)
    assert f"session {holder.get_server_pid()} (" in said
    assert said.endswith("and attach again")
    await holder.execute("COMMIT")
    await runs("attach", "orders", *WORDED, *quiet)
    await holder.execute("BEGIN; LOCK TABLE public.orders IN ROW EXCLUSIVE MODE")
    said = await refuses("detach", "orders", *quiet)
    assert f"session {holder.get_server_pid()} (" in said
    assert said.endswith("and detach again")
    await holder.close()


def test_every_option_of_the_call_is_one_of_the_command() -> None:
    from hybrid_runner.cli import make_parser  # noqa: PLC0415

    said = make_parser({"attach"}).parse(["attach", "t", "--kind", "k"])
    assert option_texts().keys() <= vars(said).keys()
    assert attach_command.__doc__ == "hybrid-runner attach."


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("attach",), "the following arguments are required: TABLE, --kind"),
        (("attach", "t", "--kind", "a b"), "'a b' is not a kind"),
        (("attach", "t", "--kind", "k", "--queue", "q q"), "argument --queue"),
        (("attach", "t", "--kind", "k", "--check", "--sql"), "not allowed with argument"),
        (("attach", "t", "--kind", "k", "--wait", "x"), "'x' is not a duration"),
        (("attach", "t", "--kind", "k", "--statsu", "x"), "did you mean '--status'?"),
        (("detach",), "the following arguments are required: TABLE"),
        (("sources", "shwo"), "did you mean 'show'?"),
        (("sources", "show"), "the following arguments are required: TABLE"),
    ],
)
def test_wrong_use(arguments: tuple[str, ...], said: str) -> None:
    assert said in fails(*arguments, code=2)


async def test_what_cannot_be_done_is_one_line(dsn: str) -> None:
    cases: list[tuple[tuple[Any, ...], str]] = [
        (("attach", "nowhere", *WORDED), "there is no table nowhere"),
        (("attach", "nowhere", "--kind", "k"), "name --running, --completed and --failed"),
        (("detach", "nowhere"), "nowhere is not attached: no table is"),
        (("sources", "show", "nowhere"), "nowhere is not attached"),
    ]
    for arguments, said in cases:
        assert said in await refuses(*arguments, "--dsn", dsn)


async def test_a_database_without_our_schema_is_one_line(empty_dsn: str) -> None:
    for arguments in (("attach", "t", *WORDED), ("detach", "t"), ("sources", "list")):
        assert "hybrid-runner migrate" in await refuses(*arguments, "--dsn", empty_dsn)
