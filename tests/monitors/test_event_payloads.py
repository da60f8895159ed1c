"""C13: every kind of event, and what is in it, as docs/monitors.md says."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

from hybrid_runner.resilience import Breaker
from hybrid_runner.storage.connections.connection import Connection
from tests.monitors.answers.hostile import message, serving
from tests.monitors.polling import events, polling, told

PAGE = Path(__file__).parents[2] / "docs" / "monitors.md"
IF_THERE_ARE_ANY = {"error", "warnings"}


def documented() -> dict[str, set[str]]:
    """The names in the payload of each kind, from the table of the page."""
    table = PAGE.read_text(encoding="utf-8").partition("\n## Events\n")[2]
    found: dict[str, set[str]] = {}
    for line in table.partition("\n\nThree ways")[0].splitlines():
        if line.startswith("| `"):
            kinds, _, payload = line.strip("| ").split(" | ")
            for kind in re.findall(r"`([^`]+)`", kinds):
                found[kind] = set(re.findall(r"`([^`]+)`", payload))
    return found


async def test_every_kind_of_event_has_the_documented_payload(
    monitors_dsn: str, monitored: Connection
) -> None:
    status, items = "200 OK", [{"name": "database", "healthy": True}]

    async def behave(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(message(json.dumps(items).encode(), status))
        await writer.drain()

    options = {"breaker": Breaker(failures=1, cooldown="1h"), "keep_polls": True}
    async with serving(behave) as server, polling(monitors_dsn, **options) as (monitors, _):
        await monitors.add("orders", server.url, every="1h")
        await told(monitored, "service:started")
        items = [{"name": "database", "healthy": False}]
        assert (await monitors.poll("orders")).ok
        items = []
        for _ in range(3):
            await monitors.poll("orders")
        status = "500 Broken"
        await monitors.poll("orders")
        status = "200 OK"
        await monitors.poll("orders")
        await monitors.pause("orders")
        await told(monitored, "service:stopped")
    found = await events(monitored)
    said = documented()
    assert {kind for kind, _ in found} == set(said)
    for kind, payload in found:
        assert said[kind] >= set(payload) >= said[kind] - IF_THERE_ARE_ANY, (kind, payload)
        assert payload["serviceId"] == 1, kind
        assert payload.get("serviceName") in ("orders", None), kind
    polls = [payload for kind, payload in found if kind == "poll:complete"]
    assert [(each["success"], "error" in each) for each in polls] == [
        *[(True, False)] * 5,
        (False, True),
        (True, False),
    ]
