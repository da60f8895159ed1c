"""Workers that come at a bad moment, beside the fleet, and go again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from tests.behaviour.chaos.faults import Newcomer
from tests.behaviour.chaos.fleet import Member

_FIRST_NUMBER = 100


class Newcomers:
    """Each has a place of its own, to which nobody comes after it."""

    def __init__(
        self, dsn: str, lease: float, folder: Path, complain: Callable[[str], None]
    ) -> None:
        self.members: list[Member] = []
        self._dsn = dsn
        self._lease = lease
        self._folder = folder
        self._complain = complain

    async def live(self, newcomer: Newcomer) -> None:
        """From its start to its end."""
        await asyncio.sleep(newcomer.after)
        number = _FIRST_NUMBER + len(self.members)
        member = Member(number, self._dsn, self._lease, self._folder, self._complain)
        self.members.append(member)
        life = asyncio.create_task(member.live())
        try:
            await asyncio.sleep(newcomer.lives)
            if newcomer.is_killed:
                member.kill()
            else:
                await member.leave()
            await life
        finally:
            member.kill()
            life.cancel()
            await asyncio.gather(life, return_exceptions=True)
