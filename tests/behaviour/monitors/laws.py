"""What must be so, whoever was killed: compared are the services' own journal and what was stored.

A visit is excused when its worker was killed before it can have stored it: nothing that this worker
asked of that host later was stored.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from examples.status_monitor.fake.journal import Journal, Visit
from tests.behaviour.monitors.plan import COOLDOWN, FAILURES, TIMEOUT, Planned
from tests.behaviour.monitors.records import Records, Told

PER_HOST = 5
_APART = COOLDOWN * 0.6
"""Two probes are further apart: an open breaker lets one through per cool-down, counted from when
its round began.
"""


class Violation(NamedTuple):
    law: str
    about: str

    def __str__(self) -> str:
        return f"{self.law}: {self.about}"


def check(
    planned: Sequence[Planned], journal: Journal, records: Records, killed: set[str]
) -> list[Violation]:
    crowds = list(crowded(journal))
    journal = without_repeats(planned, journal)
    excused = excused_visits(planned, journal, records, killed)
    return [
        *crowds,
        *double_probes(planned, journal, excused),
        *stored_wrongly(planned, journal, records, excused),
        *numbered_wrongly(records),
        *changed_wrongly(planned, records),
        *polled_wrongly(planned, records),
        *broken_wrongly(planned, records),
        *told_wrongly(records),
    ]


def crowded(journal: Journal) -> Iterator[Violation]:
    """No host sees more than five polls at a time, none of its addresses two."""
    for visit in journal.visits:
        if visit.at_host > PER_HOST:
            yield Violation("too many at a host", f"{visit.at_host}: {visit}")
        if visit.at_address > 1:
            yield Violation("two at an address", str(visit))


def without_repeats(planned: Sequence[Planned], journal: Journal) -> Journal:
    """An HTTP client asks again, once and at once, if a connection that it had kept is closed
    without a word: that is one poll, in the time of one.
    """
    closing = {service.fake.name for service in planned if service.fake.plays == "closing"}
    visits, last = list[Visit](), dict[str, Visit]()
    for visit in sorted(journal.visits, key=lambda visit: visit.began):
        before = last.get(visit.service)
        last[visit.service] = visit
        if (
            visit.service in closing
            and before is not None
            and visit.who == before.who
            # A poll ends after its time-out, or when a busy machine lets it; the next comes later.
            and visit.began - before.ended < 2 * TIMEOUT
        ):
            del last[visit.service]
        else:
            visits.append(visit)
    return Journal(visits=visits)


def excused_visits(
    planned: Sequence[Planned], journal: Journal, records: Records, killed: set[str]
) -> set[Visit]:
    stored = _stored_by_fake(planned, records)
    last: dict[tuple[str, str], float] = defaultdict(float)
    for visit in journal.visits:
        if visit.number in stored[visit.service]:
            place = visit.who, visit.host
            last[place] = max(last[place], visit.began)
    return {
        visit
        for visit in journal.visits
        if visit.who in killed
        and visit.ended >= last[visit.who, visit.host]
        and visit.number not in stored[visit.service]
    }


def double_probes(
    planned: Sequence[Planned], journal: Journal, excused: set[Visit]
) -> Iterator[Violation]:
    """While a breaker is open, one visit per cool-down; an excused one is made up for at once."""
    says = {service.fake.name: service for service in planned}
    shared = _shared(planned)
    for fake, visits in journal.by_service().items():
        failures, before = 0, None
        for visit in visits:
            is_open = failures >= FAILURES and fake not in shared
            if is_open and before is not None and visit.began - before.began < _APART:
                yield Violation("two probes of an open breaker", f"{before}, {visit}")
            if visit in excused:
                before = None
                continue
            before = visit
            failures = failures + 1 if says[fake].says(visit.number) is None else 0


def stored_wrongly(
    planned: Sequence[Planned], journal: Journal, records: Records, excused: set[Visit]
) -> Iterator[Violation]:
    """Each answered visit is stored once, in the order of visits; nothing else is."""
    visits = {
        name: {one.number: one for one in all_} for name, all_ in journal.by_service().items()
    }
    covered: dict[str, set[int]] = defaultdict(set)
    for service in planned:
        seen, numbers = visits.get(service.fake.name, {}), records.stored.get(service.name, [])
        covered[service.fake.name].update(numbers)
        for number in numbers:
            if number not in seen or service.says(number) is None:
                yield Violation("stored without a good visit", f"{service.name} {number}")
        for number, count in Counter(numbers).items():
            if count > 1:
                yield Violation("stored twice", f"{service.name} {number}")
        if numbers != sorted(numbers):
            yield Violation("stored out of order", f"{service.name} {numbers}")
    failed, shared = _failed_polls(records), _shared(planned)
    for fake, service in {service.fake.name: service for service in planned}.items():
        missing = [
            visit
            for number, visit in visits.get(fake, {}).items()
            if visit.answered
            and number not in covered[fake]
            and service.says(number) is not None
            and visit not in excused
        ]
        bad = [v for n, v in visits.get(fake, {}).items() if service.says(n) is None]
        # One that came too late for its client is a failed poll.
        told = [visit for visit in bad if visit not in excused]
        spare = max(0, failed[service.name] - len(told))
        if len(missing) > spare:
            yield Violation("a visit was not stored", f"{missing[0]} and {len(missing) - 1} more")
        lost = len(told) - failed[service.name]
        if lost > 0 and fake not in shared:
            yield Violation("a failed poll was not stored", f"{lost} of {fake}")


def numbered_wrongly(records: Records) -> Iterator[Violation]:
    """Events are numbered from 1, in the order of commits, without gaps."""
    numbers = [event.id for event in records.events]
    if numbers != list(range(1, len(numbers) + 1)):
        gaps = [one for one in pairwise(numbers) if one[1] != one[0] + 1]
        yield Violation("events are numbered with gaps", f"{numbers[:1]}, {gaps[:5]}")


def changed_wrongly(planned: Sequence[Planned], records: Records) -> Iterator[Violation]:
    """Each change of health between two stored visits is one event, and nothing else is."""
    events = _by_service(records, "status:change")
    for service in planned:
        expected, before = list[tuple[str, bool]](), dict[str, bool]()
        for number in records.stored.get(service.name, []):
            for name, healthy in (service.says(number) or {}).items():
                if before.get(name, healthy) != healthy:
                    expected.append((name, healthy))
                before[name] = healthy
        told = [
            (event.payload["dependencyName"], event.payload["currentHealthy"])
            for event in events[service.name]
        ]
        if told != expected:
            yield Violation(
                "changes of health", f"{service.name}: told {told}, expected {expected}"
            )
        for name, healthy in before.items():
            if ((service.name, name) in records.unhealthy) is healthy:
                yield Violation("health as stored", f"{service.name} {name} is {healthy}")


def polled_wrongly(planned: Sequence[Planned], records: Records) -> Iterator[Violation]:
    """One poll:complete for each stored poll, one poll:error more for each failed one."""
    errors, started = (_by_service(records, kind) for kind in ("poll:error", "service:started"))
    polls = _by_service(records, "poll:complete")
    for service in planned:
        good = sum(event.payload["success"] for event in polls[service.name])
        if good != len(records.stored.get(service.name, [])):
            yield Violation("polls told", f"{service.name}: {good} good ones")
        if len(polls[service.name]) - good != len(errors[service.name]):
            yield Violation("failed polls told", f"{service.name}: {len(errors[service.name])}")
        begun = len(started[service.name])
        if begun > 1 or (polls[service.name] and not begun):
            yield Violation("started", f"{service.name}: {begun} times")


def broken_wrongly(planned: Sequence[Planned], records: Records) -> Iterator[Violation]:
    """Breakers open and close in turns."""
    opened = _by_service(records, "circuit:open", "circuit:close")
    for service in planned:
        kinds = [event.kind for event in opened[service.name]]
        turns = [("circuit:open", "circuit:close")[turn % 2] for turn in range(len(kinds))]
        is_open = bool(kinds) and kinds[-1] == "circuit:open"
        if kinds != turns or is_open is not (service.name in records.open):
            yield Violation("breakers told", f"{service.name}: {kinds}, open: {is_open}")


def told_wrongly(records: Records) -> Iterator[Violation]:
    """Each change of health is one job, whose handler ran."""
    changes = {event.id for event in records.events if event.kind == "status:change"}
    for event in sorted(changes | set(records.jobs)):
        if records.jobs[event] != (1 if event in changes else 0):
            yield Violation("jobs of an event", f"{event}: {records.jobs[event]}")
        if records.told[event] < 1:
            yield Violation("nobody was told", str(event))


# --- in other words


def _stored_by_fake(planned: Sequence[Planned], records: Records) -> Mapping[str, set[int]]:
    found: dict[str, set[int]] = defaultdict(set)
    for service in planned:
        found[service.fake.name].update(records.stored.get(service.name, []))
    return found


def _shared(planned: Sequence[Planned]) -> set[str]:
    """Fakes that several services ask."""
    count = Counter(service.fake.name for service in planned)
    return {name for name, services in count.items() if services > 1}


def _failed_polls(records: Records) -> Counter[str]:
    return Counter(event.service for event in records.events if event.kind == "poll:error")


def _by_service(records: Records, *kinds: str) -> Mapping[str, list[Told]]:
    found: dict[str, list[Told]] = defaultdict(list)
    for event in records.events:
        if event.kind in kinds:
            found[event.service].append(event)
    return found
