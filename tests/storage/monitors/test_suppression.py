"""Of which services nothing bad is told."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from hybrid_runner.storage.connections.connection import Connection
from tests.support.monitored import add, good, play

WINDOW = (
    "INSERT INTO hybrid_monitors.windows (label, begins, ends)"
    " VALUES ('{}', now(), now() + interval '1 h')"
)


async def test_bad_news_are_suppressed_by_windows_by_quiet_and_by_parents_that_are_down(
    monitored: Connection,
) -> None:
    grandparent = await add(monitored, "grandparent", "http://b.internal/")
    parent = await add(monitored, "parent", "http://b.internal/")
    child = await add(monitored, "child")
    for number, above in ((child, parent), (parent, grandparent)):
        await monitored.execute(
            'UPDATE hybrid_monitors.services SET depends_on = $2, labels = \'{"team": "x"}\''
            " WHERE id = $1",
            number,
            above,
        )
    there = await play(monitored, "b.internal")
    taken = await there.take()
    await there.record(
        [good(each, taken.now, is_down=each.id == grandparent) for each in taken.services]
    )

    async def why() -> str | None:
        [service] = (await (await play(monitored)).take()).services
        return service.suppressed

    assert await why() == "parent"
    await monitored.execute("UPDATE hybrid_monitors.standings SET is_down = false")
    assert await why() is None
    window = (
        "INSERT INTO hybrid_monitors.windows (service_id, label, begins, ends, every) VALUES"
        " ($1, $2, now() + make_interval(hours => $3), now() + make_interval(hours => $4), $5)"
    )
    day = timedelta(days=1)
    for arguments, is_suppressed in (
        ((child, None, -1, 1, None), True),
        ((parent, None, -1, 1, None), False),
        ((child, None, -2, -1, None), False),
        ((child, None, 1, 2, None), False),
        ((None, '{"team": "x"}', -1, 1, None), True),
        ((None, '{"team": "y"}', -1, 1, None), False),
        ((None, "{}", -1, 1, None), True),
        ((child, None, -241, -239, day), True),
        ((child, None, -239, -237, day), False),
        ((child, None, 23, 25, day), False),
    ):
        async with monitored.transaction():
            await monitored.execute(window, *arguments)
        assert (await why() == "maintenance") is is_suppressed, arguments
        maintained = await monitored.fetch("SELECT service_id FROM hybrid_monitors.maintained")
        assert ((child,) in [tuple(row) for row in maintained]) is is_suppressed, arguments
        await monitored.execute("DELETE FROM hybrid_monitors.windows")
    await monitored.execute(
        "UPDATE hybrid_monitors.services SET quiet_until = now() + interval '1 h' WHERE id = $1",
        child,
    )
    assert await why() == "maintenance"
    await monitored.execute(
        "UPDATE hybrid_monitors.services SET quiet_until = now() - interval '1 s' WHERE id = $1",
        child,
    )
    assert await why() is None


@pytest.mark.parametrize("every", [None, timedelta(days=1)])
async def test_a_window_is_open_from_its_begin_on_and_not_at_its_end(
    undone: Connection, every: timedelta | None
) -> None:
    """Of two that follow each other one is open at each moment; so each time it opens again."""
    begins, hour = datetime(2030, 1, 6, 2, tzinfo=UTC), timedelta(hours=1)
    shifts = (timedelta(0), timedelta(days=3)) if every else (timedelta(0),)
    for shift in shifts:
        found = [
            await undone.fetchval(
                "SELECT hybrid_monitors.is_window_open($1, $2, $3, $4)",
                *(begins, begins + hour, every, begins + shift + at),
            )
            for at in (-timedelta(milliseconds=1), timedelta(0), hour / 2, hour)
        ]
        assert found == [False, True, True, False]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("UPDATE hybrid_monitors.services SET quiet_until = now() + interval '1 h'", "maintenance"),
        (WINDOW, "maintenance"),
        ("UPDATE hybrid_monitors.services SET depends_on = 1 WHERE id = 2", "parent"),
    ],
    ids=["quiet", "window", "parent"],
)
async def test_each_reason_is_enough_alone(monitored: Connection, change: str, why: str) -> None:
    await add(monitored, "parent", "http://b.internal/")
    there = await play(monitored, "b.internal")
    taken = await there.take()
    await there.record([good(each, taken.now, is_down=True) for each in taken.services])
    await add(monitored, "a")
    await monitored.execute(change)
    [service] = (await (await play(monitored)).take()).services
    assert service.suppressed == why


@pytest.mark.parametrize(("steps", "is_suppressed"), [(10, True), (11, False)])
async def test_parents_are_followed_over_ten_steps(
    monitored: Connection, steps: int, is_suppressed: bool
) -> None:
    """As docs/monitors.md says."""
    above = await add(monitored, "top", "http://b.internal/")
    there = await play(monitored, "b.internal")
    taken = await there.take()
    await there.record([good(each, taken.now, is_down=True) for each in taken.services])
    for step in range(steps):
        above = await monitored.fetchval(
            "INSERT INTO hybrid_monitors.services (name, url, depends_on)"
            " VALUES ('s' || $1::int, 'http://h' || $1::int || '.internal/', $2) RETURNING id",
            step,
            above,
        )
    [service] = (await (await play(monitored, f"h{steps - 1}.internal")).take()).services
    assert service.suppressed == ("parent" if is_suppressed else None)


async def test_a_parent_that_is_paused_suppresses_nothing(monitored: Connection) -> None:
    """Nobody knows whether it is down."""
    parent = await add(monitored, "parent", "http://b.internal/")
    there = await play(monitored, "b.internal")
    taken = await there.take()
    await there.record([good(each, taken.now, is_down=True) for each in taken.services])
    child = await add(monitored, "child")
    await monitored.execute(
        "UPDATE hybrid_monitors.services SET depends_on = $2 WHERE id = $1", child, parent
    )
    for active, suppressed in ((True, "parent"), (False, None)):
        await monitored.execute(
            "UPDATE hybrid_monitors.services SET active = $2 WHERE id = $1", parent, active
        )
        [service] = (await (await play(monitored)).take()).services
        assert service.suppressed == suppressed


async def test_a_circle_of_parents_that_two_transactions_made_harms_nobody(
    monitored: Connection,
) -> None:
    await add(monitored, "a")
    await add(monitored, "b")
    await monitored.execute("ALTER TABLE hybrid_monitors.services DISABLE TRIGGER check_service")
    await monitored.execute("UPDATE hybrid_monitors.services SET depends_on = 3 - id")
    assert [each.suppressed for each in (await (await play(monitored)).take()).services] == [
        None
    ] * 2
