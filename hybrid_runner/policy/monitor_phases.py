"""When services are due that would otherwise all be due at once: new ones that came together, and
those that nobody has polled while the fleet was away.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import Final, NamedTuple

from hybrid_runner.model.monitors import Service

MANY: Final = 10
"""New services of a host that are more than these are spread over their intervals."""
_GOLDEN: Final = 0x9E3779B97F4A7C15
_WHOLE: Final = 1 << 64
_BEGINNING: Final = datetime(2000, 1, 1, tzinfo=UTC)


class Spread(NamedTuple):
    """Services that are polled now, and those that are put off, with their times."""

    now: tuple[Service, ...]
    later: tuple[tuple[Service, datetime], ...]


def spread(
    services: Sequence[Service], now: datetime, *, was_away: bool, tick: timedelta
) -> Spread:
    """Whoever was asked for, is new alone, or has another address goes at once."""
    are_many = sum(service.standing is None for service in services) > MANY
    at_once, later = list[Service](), list[tuple[Service, datetime]]()
    for service in services:
        if _waits(service, now, are_many=are_many, was_away=was_away, tick=tick):
            later.append((service, now + phase(service.id, service.every)))
        else:
            at_once.append(service)
    return Spread(tuple(at_once), tuple(later))


def was_away(late: timedelta, tick: timedelta, *, has_spread: bool) -> bool:
    """Whether nobody has polled the host for a while: its round began late. A round that is late
    after one that has put services off polls them: where too few workers are, all are late.
    """
    return not has_spread and late > 2 * tick


def phase(service_id: int, every: timedelta) -> timedelta:
    """A service's place in its interval: numbers in a row lie far apart, and evenly."""
    return every * ((service_id * _GOLDEN % _WHOLE) / _WHOLE)


def next_round(host: str, now: datetime, next_due: timedelta, tick: timedelta) -> timedelta:
    """How long until the host's next round: what comes due within a tick is polled together, and
    the ticks of two hosts are not the same.
    """
    if next_due >= tick or next_due <= timedelta(0):
        return next_due
    place = tick * (int.from_bytes(blake2b(host.encode(), digest_size=8).digest()) / _WHOLE)
    return max(next_due, (place - (now - _BEGINNING)) % tick)


def _waits(
    service: Service, now: datetime, *, are_many: bool, was_away: bool, tick: timedelta
) -> bool:
    if service.is_asked:
        return False
    if service.standing is None:
        return are_many
    return was_away and service.standing.url == service.url and service.standing.due_at < now - tick
