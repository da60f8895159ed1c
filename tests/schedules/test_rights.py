"""Who may do what with schedules, from an application."""

from __future__ import annotations

import pytest

from hybrid_runner import Runner, RunnerError
from tests.support.logins import Login, Logins


async def test_a_producer_makes_and_changes_its_own(login: Logins) -> None:
    async with Runner(login(Login.PRODUCER)) as app:
        assert await app.add_schedule("s", "work", every="1h") is not None
        handle = await app.run_now("s")
        assert handle.enqueued == "inserted"
        assert (await app.run_now("s")).id == handle.id
        assert len(await app.next_ticks("s", 3)) == 3
        assert await app.pause_schedule("s") is True
        assert await app.resume_schedule("s") is True
        assert await app.remove_schedule("s") is True


async def test_a_producer_does_not_change_those_of_others(login: Logins) -> None:
    async with Runner(login(Login.PRODUCER)) as app:
        await app.add_schedule("s", "work", every="1h")
    async with Runner(login(Login.OTHER_PRODUCER)) as app:
        for call in (app.pause_schedule, app.remove_schedule, app.run_now):
            with pytest.raises(RunnerError, match=r"^schedule 's' belongs to ") as raised:
                await call("s")
            assert "grant this role" not in str(raised.value)
        with pytest.raises(RunnerError, match=r"^schedule 's' belongs to "):
            await app.add_schedule("s", "work", every="2h")
    async with Runner(login(Login.WORKER)) as app:
        assert await app.pause_schedule("s") is True


async def test_a_reader_sees_all_and_changes_nothing(login: Logins) -> None:
    async with Runner(login(Login.PRODUCER)) as app:
        await app.add_schedule("s", "work", {"n": 1}, every="1h")
    async with Runner(login(Login.READER)) as app:
        [one] = await app.schedules()
        view = await app.get_schedule("s")
        assert view is not None
        assert (one.made_by, view.payload) == (Login.PRODUCER.role, {"n": 1})
        assert len(await app.next_ticks("s", 3)) == 3
        assert len(await app.preview("@daily")) == 5
        for call in (app.pause_schedule, app.remove_schedule, app.run_now):
            with pytest.raises(RunnerError):
                await call("s")
