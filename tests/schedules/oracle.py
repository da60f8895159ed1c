"""Two other opinions on when a cron expression fires: cronsim's, and the rule itself, minute by
minute.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from itertools import islice
from zoneinfo import ZoneInfo

from cronsim import CronSim

ZONES = (
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "America/Santiago",
    "UTC",
    "Asia/Kolkata",
    "Pacific/Apia",
    "America/Havana",
    "Asia/Tehran",
    "Antarctica/Troll",
    "Pacific/Chatham",
    "Europe/Dublin",
    "America/St_Johns",
    "Asia/Gaza",
)
"""Half hours and quarters, two hours, changes at midnight, a summer that is the standard time."""
MINUTE = timedelta(minutes=1)


def random_expressions(seed: int, count: int) -> Iterator[tuple[str, str, datetime]]:
    """(expression, zone, from when on); most of the times are near a change of the clock."""
    chance = random.Random(seed)
    for _ in range(count):
        zone = chance.choice(ZONES)
        start = datetime(2025, 1, 1, tzinfo=UTC) + timedelta(
            minutes=chance.randint(0, 60 * 24 * 365 * 2)
        )
        if chance.random() < 0.6:
            start = _before_a_change(start, ZoneInfo(zone), chance)
        yield _expression(chance), zone, start


def _before_a_change(start: datetime, zone: ZoneInfo, chance: random.Random) -> datetime:
    for _ in range(400):
        after = start + timedelta(days=1)
        if start.astimezone(zone).utcoffset() != after.astimezone(zone).utcoffset():
            break
        start = after
    return start + timedelta(minutes=chance.randint(-300, 1600))


def _expression(chance: random.Random) -> str:
    day = "L" if chance.random() < 0.05 else _field(chance, 1, 31, 0.6)
    return " ".join(
        (
            _field(chance, 0, 59, 0.2),
            _field(chance, 0, 23, 0.3),
            day,
            _field(chance, 1, 12, 0.7),
            _field(chance, 0, 7, 0.6),
        )
    )


def _field(chance: random.Random, lowest: int, highest: int, stars: float) -> str:
    kind = chance.random() - stars
    if kind < 0:
        return "*"
    if kind < 0.15:
        return f"*/{chance.choice([2, 3, 5, 7, 10, 15, 20, 25])}"
    first = chance.randint(lowest, highest - 1)
    if kind < 0.3:
        step = f"/{chance.choice([1, 2, 3, 5])}" if chance.random() < 0.4 else ""
        return f"{first}-{chance.randint(first + 1, highest)}{step}"
    if kind < 0.45:
        return ",".join(str(chance.randint(lowest, highest)) for _ in range(chance.randint(2, 4)))
    return str(first)


def by_cronsim(expression: str, zone: str, start: datetime, most: int) -> list[datetime] | None:
    """The next times; None: cronsim takes no such expression."""
    try:
        found = CronSim(expression, start.astimezone(ZoneInfo(zone)))
        return [each.astimezone(UTC) for each in islice(found, most)]
    except Exception:
        return None


class Rule:
    """One expression by the rule as it is written: slow, and short enough to be believed.

    With a star in minutes or hours every minute counts that the clock shows; a fixed time counts
    when the clock has reached it for the first time.
    """

    def __init__(self, expression: str) -> None:
        words = expression.split()
        self.is_real_time = words[0].startswith("*") or words[1].startswith("*")
        self._either = not (words[2].startswith("*") or words[4].startswith("*"))
        self._last_day = words[2] == "L"
        highest = (59, 23, 31, 12, 7)
        lowest = (0, 0, 1, 1, 0)
        self._minutes, self._hours, self._days, self._months, self._weekdays = (
            _numbers("1" if word == "L" else word, low, high)
            for word, low, high in zip(words, lowest, highest, strict=True)
        )

    def names(self, clock: datetime) -> bool:
        """Whether the expression names what a clock shows."""
        return (
            clock.minute in self._minutes and clock.hour in self._hours and self.is_on(clock.date())
        )

    def is_on(self, day: date) -> bool:
        """Whether it names that day."""
        if day.month not in self._months:
            return False
        on_day = (day + timedelta(days=1)).day == 1 if self._last_day else day.day in self._days
        on_weekday = bool({day.isoweekday(), day.isoweekday() % 7} & self._weekdays)
        return (on_day or on_weekday) if self._either else (on_day and on_weekday)

    def ticks(self, zone: str, start: datetime, end: datetime) -> list[datetime]:
        """All after `start`, and not after `end`."""
        here = ZoneInfo(zone)
        moment = start.replace(second=0, microsecond=0) - timedelta(days=1, hours=2)
        reached = _clock(moment, here) - MINUTE
        found = []
        while moment < end:
            moment += MINUTE
            clock = _clock(moment, here)
            if self.is_real_time:
                fires = self.names(clock)
            else:
                fires = False
                while reached < clock:
                    reached += MINUTE
                    fires |= self.names(reached)
            if fires and moment > start:
                found.append(moment)
        return found


def _clock(moment: datetime, zone: ZoneInfo) -> datetime:
    return moment.astimezone(zone).replace(tzinfo=None, fold=0)


def _numbers(word: str, lowest: int, highest: int) -> set[int]:
    found: set[int] = set()
    for part in word.split(","):
        span, _, step = part.partition("/")
        if span == "*":
            first, last = lowest, highest
        elif "-" in span:
            first, last = map(int, span.split("-"))
        else:
            first, last = int(span), highest if step else int(span)
        found.update(range(first, last + 1, int(step or 1)))
    return found
