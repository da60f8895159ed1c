"""The example from end to end: forty services, the shop's list, what is stored and what is told."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from examples.status_monitor.app import app, monitors, told
from examples.status_monitor.application import Shop, open_shop
from examples.status_monitor.fake.server import FakeServices
from examples.status_monitor.services import SERVICES, Service, fakes
from hybrid_runner.storage.connections.connection import Connection
from tests.support.waiting import until, until_fetched

QUIET = 120.0


@pytest.fixture
async def shop(dsn: str) -> AsyncIterator[Shop]:
    """All services are in the list, and a worker polls them."""
    app.use(dsn=dsn)
    await monitors.migrate()
    async with AsyncExitStack() as stack:
        played = await stack.enter_async_context(FakeServices(fakes()))
        opened = await stack.enter_async_context(open_shop(dsn, played))
        await opened.add_all()
        await stack.enter_async_context(app)
        await stack.enter_async_context(app.worker({"monitors": 20, "monitors-events": 5}))
        yield opened


async def test_every_service_is_found_to_be_what_it_is(shop: Shop, database: Connection) -> None:
    """C1, C7, C8, C12: forty that misbehave do not disturb each other."""

    async def standings() -> dict[str, str | None]:
        rows = await database.fetch(
            "SELECT name, failure FROM hybrid_monitors.standings WHERE polled_at IS NOT NULL"
        )
        return {row["name"]: row["failure"] for row in rows}

    expected: dict[str, set[str | None]] = {
        "newsletter": {"http"},
        "warehouse": {None, "http"},
        "ledger": {"timeout"},
        "tracking": {"timeout"},
        "couriers": {"timeout"},
        "feed": {"too_large", "timeout"},
        "mirror": {"too_large"},
        "pictures": {"too_large"},
        "baskets": {"network"},
        "mail": {"network"},
        "chat": {"http"},
        "forum": {"parse"},
        "blog": {"parse"},
        "backup": {"parse"},
        "sessions": {"redirect"},
        "profiles": {"redirect"},
        "passwords": {"address"},
    }
    for name in ("orders", "orders-report", "shipping", "stock", "accounts", "target", "status"):
        expected[name] = {None}
    others = {*expected}

    def are_known(seen: dict[str, str | None]) -> bool:
        """Each was found to be that at one time: where the machine stands still, any is late."""
        others.difference_update(
            name for name, found in seen.items() if found in expected.get(name, ())
        )
        return len(seen) == len(SERVICES) and not others

    await until(standings, are_known)


async def test_one_address_is_asked_once_and_both_who_have_it_know(
    shop: Shop, database: Connection
) -> None:
    """C6"""
    both = """
        SELECT count(DISTINCT service_id) FROM hybrid_monitors.dependencies
        WHERE name = 'database' AND service_id IN (
            SELECT id FROM hybrid_monitors.services WHERE name LIKE 'orders%')
    """
    await until_fetched(database, both, 2, patience=QUIET)
    journal = shop.fakes.journal
    assert len(journal.of("orders")) == 1
    assert journal.most_at_address() == 1
    assert journal.most_at_host() <= 5


async def test_the_handler_is_told_of_a_change_and_of_nothing_twice(
    shop: Shop, database: Connection
) -> None:
    """C9, C13"""
    told.clear()
    shop.fakes.play("orders", "flapping")
    changes = "SELECT count(*) FROM hybrid_monitors.events WHERE kind = 'status:change'"
    await until(lambda: database.fetchval(changes), patience=QUIET)
    await until(lambda: len(told), lambda count: count >= 1, what="an event that was told")
    ids = [event.id for event in told]
    assert len(ids) == len(set(ids))


async def test_what_the_shop_edits_is_noticed(shop: Shop, database: Connection) -> None:
    """C1, C4: by plain SQL, with no call to anybody."""
    down = "SELECT ok FROM hybrid_monitors.standings WHERE name = 'newsletter'"
    await until_fetched(database, down, False, patience=QUIET)
    url = shop.fakes.url("prices")
    moved = "UPDATE hybrid_monitors.services SET url = $1 WHERE name = 'newsletter'"
    await shop.change("it moves", moved, url)
    await until_fetched(database, down, True, patience=QUIET)
    await shop.change("it is gone", "DELETE FROM hybrid_monitors.services WHERE name = 'forum'")
    stopped = """
        SELECT count(*) FROM hybrid_monitors.events
        WHERE kind = 'service:stopped' AND payload ->> 'serviceName' = 'forum'
    """
    await until_fetched(database, stopped, 1, patience=QUIET)


def test_the_list_has_forty_services_and_each_option_is_a_column() -> None:
    assert len(SERVICES) == 40
    assert len({service.name for service in SERVICES}) == 40
    assert json.dumps([service.options for service in SERVICES])
    assert isinstance(SERVICES[0], Service)
