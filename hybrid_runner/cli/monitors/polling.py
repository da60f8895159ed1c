"""hybrid-runner monitors poll and test."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from hybrid_runner.cli.monitors.session import monitored
from hybrid_runner.cli.output import as_text, counted, print_json, print_table, span
from hybrid_runner.display import one_line
from hybrid_runner.errors import RunnerError
from hybrid_runner.model.monitors import Item, Polled, Standing
from hybrid_runner.settings import Settings
from hybrid_runner.storage import monitor_calls
from hybrid_runner.storage.connections.connection import Connection

PATIENCE: Final = timedelta(seconds=90)
_LOOK: Final = 0.1
"""Seconds between two looks for the answer."""
_ITEMS: Final = ("", "STATE", "DEPENDENCY", "TYPE", "LATENCY", "WHY")


async def poll(arguments: argparse.Namespace) -> int:
    name = one_line(arguments.name)
    async with monitored(arguments) as connection:
        number = await monitor_calls.ask_poll(connection, arguments.name)
        try:
            async with asyncio.timeout(arguments.wait_timeout.total_seconds()):
                standing = await _answer(connection, number, name)
        except TimeoutError:
            raise RunnerError(
                f"nobody has polled {name!r} within {span(arguments.wait_timeout)}, and it stays"
                " asked for: is there a worker for the queue monitors?"
            ) from None
    if arguments.json:
        print_json({"id": number, "name": arguments.name, "standing": standing})
        return 0 if standing.ok else 1
    took = "" if standing.latency_ms is None else f" in {standing.latency_ms:,} ms"
    if not standing.ok:
        why = one_line(": ".join(part for part in (standing.failure, standing.error) if part))
        raise RunnerError(f"the poll of {name!r} has failed: {why}")
    print(f"service {name!r} has answered{took}")
    for warning in standing.warnings:
        print(f"warning: {one_line(warning)}")
    return 0


async def _answer(connection: Connection, number: int, name: str) -> Standing:
    while True:
        answer = await monitor_calls.answer_of_poll(connection, number)
        if not answer.is_there:
            raise RunnerError(f"service {name!r} was removed meanwhile")
        if not answer.is_pending and answer.standing is not None:
            return answer.standing
        await asyncio.sleep(_LOOK)


async def test(arguments: argparse.Namespace) -> int:
    """What a poll of this URL would find, asked from here."""
    # They bring aiohttp, which no other command needs.
    from hybrid_runner.cli.session import start_logs  # noqa: PLC0415  # see above
    from hybrid_runner.monitors.answers.poll import poll_group  # noqa: PLC0415  # see above
    from hybrid_runner.monitors.answers.previews import preview_service  # noqa: PLC0415  # see above
    from hybrid_runner.monitors.answers.session import open_session  # noqa: PLC0415  # see above

    start_logs(arguments, Settings.load(dsn=arguments.dsn), quiet=True)
    service = preview_service(
        arguments.url,
        arguments.mapping,
        expect=arguments.expect,
        **({} if arguments.timeout is None else {"timeout": arguments.timeout}),
    )
    session = open_session()
    try:
        [polled] = await poll_group(session, [service], now=datetime.now(UTC))
    finally:
        await session.close()
    if arguments.json:
        print_json(polled)
        return 0 if polled.ok else 1
    if not polled.ok:
        raise RunnerError(f"{polled.failure}: {one_line(polled.error or '')}")
    _print(polled)
    return 0


def _print(polled: Polled) -> None:
    print(f"answered in {polled.latency_ms:,} ms: {_found(polled.items)}")
    if polled.items:
        print_table(
            _ITEMS,
            [_row(item) for item in polled.items],
            ["green" if item.healthy else "red" for item in polled.items],
        )
    for warning in polled.warnings:
        print(f"warning: {one_line(warning)}")


def _found(items: Sequence[Item]) -> str:
    ill = sum(not item.healthy for item in items)
    said = counted(len(items), "dependency", "dependencies")
    return f"{said}, {ill} unhealthy" if ill else said


def _row(item: Item) -> tuple[str, ...]:
    error = "" if item.error is None else as_text(item.error)
    return (
        "",
        "skipped" if item.skipped else "healthy" if item.healthy else "unhealthy",
        one_line(item.name)[:60],
        one_line(item.type),
        f"{item.latency_ms} ms" if item.latency_ms else "",
        one_line(item.error_message or error),
    )
