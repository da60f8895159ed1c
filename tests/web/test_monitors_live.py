"""Pages about monitored services, of a worker that polls real ones."""

from __future__ import annotations

import pytest

from examples.status_monitor.fake.server import FakeService, FakeServices
from hybrid_runner.settings import Settings
from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.telemetry.metrics.monitor_instruments import MONITOR_SERVICES
from hybrid_runner.web.database import PageDatabase
from hybrid_runner.web.pages.metric_values import metric_values_of
from hybrid_runner.web.server import PageServer
from hybrid_runner.web.stream import monitor_feed
from tests.monitors.polling import polling, store
from tests.support.ports import free_port
from tests.support.streams import BEARER, TOKEN, pages
from tests.support.waiting import until, until_fetched

GOOD_POLLS = "SELECT count(*) FROM hybrid_monitors.events WHERE kind = 'poll:complete'"
POLLED = "SELECT count(*) FROM hybrid_monitors.standings WHERE polled_at IS NOT NULL"


async def test_a_service_is_polled_shown_told_and_counted(
    monitors_dsn: str, monitored: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C12: good polls are stored while somebody reads, and only then."""
    monkeypatch.setattr(monitor_feed, "LOOK", 0.05)
    fakes = FakeServices([FakeService("orders"), FakeService("stock")])
    settings = Settings.load(dsn=monitors_dsn, http_token=TOKEN, http_status="all")
    async with fakes, polling(monitors_dsn) as (_, worker):
        await store(monitored, fakes, "orders")
        await until_fetched(monitored, POLLED, 1)
        assert await monitored.fetchval(GOOD_POLLS) == 0
        port, database = free_port(), PageDatabase(settings, lambda: monitors_dsn)
        async with (
            PageServer("127.0.0.1", port, database=database) as server,
            pages(port) as client,
        ):
            server.show(worker.status)
            async with client.events("/monitors/events") as seen:
                lit = "SELECT hybrid_monitors.events_are_read()"
                await until_fetched(monitored, lit, True)
                await store(monitored, fakes, "stock")
                started = await seen.until("service:started")
                assert started.data["serviceName"] == "stock"
                done = await seen.until("poll:complete")
                assert done.data["success"] is True
                async with client.session.post("/monitors/orders/poll", headers=BEARER) as response:
                    assert response.status == 202
                again = await seen.until("poll:complete")
                assert again.data["serviceId"] != done.data["serviceId"]
            _, body = await client.get("/monitors/orders")
            assert (body["state"], len(body["dependencies"]) > 0) == ("up", True)
            async with client.session.get("/status") as response:
                text = await response.text()
            assert "All services are up" in text
            async with client.session.get("/metrics") as response:
                metrics = await response.text()
        assert 'hybrid_runner_monitor_polls_total{outcome="ok"} ' in metrics
        await until(
            lambda: metric_values_of(worker.status()).get(MONITOR_SERVICES.name, {}),
            lambda found: found.get(("closed",)) == 2,
        )
