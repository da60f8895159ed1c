"""What an application does with schedules at run time: those that are stored, whoever made them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Unpack

from hybrid_runner.client.calls import Client
from hybrid_runner.client.handle import JobHandle
from hybrid_runner.errors import ConfigurationError
from hybrid_runner.handlers.kind import JobKind
from hybrid_runner.handlers.registry import Registry
from hybrid_runner.handlers.schedule_checks import check_cron
from hybrid_runner.handlers.schedule_options import ScheduleOptions
from hybrid_runner.handlers.schedules import check_schedule_name, make_schedule
from hybrid_runner.model.schedules import (
    MOST_LISTED,
    MOST_TICKS,
    ScheduleSummary,
    ScheduleView,
    Tick,
)
from hybrid_runner.storage import schedule_calls

_NO_PAYLOAD: Any = {}


class ScheduleCalls:
    """The part of `Runner` that is about stored schedules."""

    registry: Registry
    _client: Client

    async def add_schedule(
        self,
        name: str,
        kind: JobKind[Any, Any] | str,
        payload: Any = _NO_PAYLOAD,
        **options: Unpack[ScheduleOptions],
    ) -> datetime | None:
        """Store a schedule that fires whatever the code of workers says, or change the one of that
        name; its next tick, None if it never fires. `app.schedule` declares one in code.
        """
        schedule = make_schedule(self.registry.get, name, kind, payload, options)
        on = await self._client.pool()
        next_at = await schedule_calls.store_schedule(on, schedule)
        await self._client.warn_of_typo(on, kind)
        return next_at

    async def remove_schedule(self, name: str) -> bool:
        """Forget it; False: there is none. Jobs that it has stored go on. One that live workers
        declare comes back when the next of them starts: pause it, or take it out of the code.
        """
        check_schedule_name(name)
        return await schedule_calls.remove_schedule(await self._client.pool(), name)

    async def pause_schedule(self, name: str) -> bool:
        """Let it fire no more until it is resumed; False: it was paused, or there is none."""
        check_schedule_name(name)
        return await schedule_calls.pause_schedule(await self._client.pool(), name)

    async def resume_schedule(self, name: str) -> bool:
        """Let it fire again; False: it was not paused, or there is none."""
        check_schedule_name(name)
        return await schedule_calls.resume_schedule(await self._client.pool(), name)

    async def run_now(self, name: str) -> JobHandle[Any]:
        """A job of this schedule now, beside its ticks; while one of it lives, and its `overlap` is
        not `allow`, that one, and the handle says `exists`.
        """
        check_schedule_name(name)
        job_id, lived = await schedule_calls.run_now(await self._client.pool(), name)
        return JobHandle(self._client, job_id, "exists" if lived else "inserted", None)

    async def schedules(
        self, *, most: int = MOST_LISTED, offset: int = 0
    ) -> Sequence[ScheduleSummary]:
        """The stored schedules, by name."""
        return await schedule_calls.list_schedules(await self._client.pool(), most, offset)

    async def get_schedule(self, name: str) -> ScheduleView | None:
        """One of them, with its payload."""
        check_schedule_name(name)
        return await schedule_calls.get_schedule(await self._client.pool(), name)

    async def next_ticks(self, name: str, most: int = 5) -> Sequence[Tick]:
        """When a stored schedule will fire: at no time while it is paused."""
        check_schedule_name(name)
        _check_most(most)
        on = await self._client.pool()
        ticks = await schedule_calls.next_ticks_of(on, name, most)
        if not ticks and await schedule_calls.get_schedule(on, name) is None:
            raise schedule_calls.no_schedule(name)
        return ticks

    async def preview(self, cron: str, timezone: str = "UTC", most: int = 5) -> Sequence[datetime]:
        """When a schedule with this expression would fire; nothing is stored."""
        check_cron(cron)
        _check_most(most)
        on = await self._client.pool()
        return await schedule_calls.next_ticks(on, cron, timezone, most)


def _check_most(most: object) -> None:
    if isinstance(most, bool) or not isinstance(most, int) or not 1 <= most <= MOST_TICKS:
        raise ConfigurationError(f"ask for 1 to {MOST_TICKS:,} ticks, not {str(most)[:60]}")
