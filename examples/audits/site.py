"""Looks at web sites; here they are played."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from urllib.parse import urlsplit


class NoSuchSite(Exception): ...


class Unreachable(Exception): ...


@dataclass
class Sites:
    """Takes so many seconds for each of the three looks at a site."""

    look: float = 1.0

    async def audit(self, url: str) -> dict[str, int]:
        """Its scores. `nowhere` in the host's name: there is none; `down`: it does not answer."""
        host = urlsplit(url).hostname
        if not host or "nowhere" in host:
            raise NoSuchSite(f"there is no site {url}")
        scores = {}
        for number, what in enumerate(("speed", "search", "access"), 1):
            await asyncio.sleep(self.look)
            if "down" in host:
                raise Unreachable(f"{host} does not answer")
            scores[what] = 100 - len(host) * number % 50
        return scores


sites = Sites()
