"""What fake services remember of every request."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, NamedTuple


class Visit(NamedTuple):
    """One request; times are seconds of the monotonic clock, which all processes share."""

    service: str
    host: str
    """As the request's header named it, without the port."""
    address: str
    """Host, path and query."""
    number: int
    """How many requests of this service came before it."""
    began: float
    ended: float
    at_host: int
    """How many were in flight for that host when it began, itself included."""
    at_address: int
    answered: bool
    """False: the client went away before all of it was sent."""
    who: str = ""
    """The header X-Worker of the request."""


@dataclass
class Beginning:
    """A request that is in flight."""

    service: str
    host: str
    address: str
    number: int
    began: float
    at_host: int
    at_address: int
    who: str

    def ends(self, at: float, *, answered: bool) -> Visit:
        return Visit(
            self.service,
            self.host,
            self.address,
            self.number,
            self.began,
            at,
            self.at_host,
            self.at_address,
            answered,
            self.who,
        )


@dataclass
class Journal:
    """All visits that have ended, in that order; also in a file if there is one."""

    file: IO[str] | None = None
    visits: list[Visit] = field(default_factory=list)
    in_flight: Counter[str] = field(default_factory=Counter)
    """For each host, and for each address."""
    begun: Counter[str] = field(default_factory=Counter)
    """For each service."""

    def begin(self, service: str, host: str, address: str, now: float, who: str) -> Beginning:
        number = self.begun[service]
        self.begun[service] += 1
        self.in_flight[host] += 1
        self.in_flight[address] += 1
        counts = self.in_flight[host], self.in_flight[address]
        return Beginning(service, host, address, number, now, *counts, who)

    def end(self, beginning: Beginning, now: float, *, answered: bool) -> None:
        self.in_flight[beginning.host] -= 1
        self.in_flight[beginning.address] -= 1
        visit = beginning.ends(now, answered=answered)
        if self.file is None:
            self.visits.append(visit)
        else:
            self.file.write(json.dumps(visit) + "\n")

    def of(self, service: str) -> list[Visit]:
        return [visit for visit in self.visits if visit.service == service]

    def most_at_host(self) -> int:
        return max((visit.at_host for visit in self.visits), default=0)

    def most_at_address(self) -> int:
        return max((visit.at_address for visit in self.visits), default=0)

    def by_service(self) -> dict[str, list[Visit]]:
        """The visits of each in the order in which they began."""
        found: dict[str, list[Visit]] = defaultdict(list)
        for visit in sorted(self.visits, key=lambda visit: visit.began):
            found[visit.service].append(visit)
        return found


def read(path: Path) -> Journal:
    """A journal that another process has written."""
    return Journal(visits=list(_read(path)))


def _read(path: Path) -> Iterator[Visit]:
    with path.open(encoding="utf-8") as file:
        for line in file:
            yield Visit(*json.loads(line))
