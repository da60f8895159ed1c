"""What one poll of one monitored service changes: decided here, stored by record_round."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from hybrid_runner.durations import parse_duration
from hybrid_runner.model.monitors import (
    Decision,
    Dependency,
    ErrorEntry,
    Event,
    EventKind,
    Known,
    Latency,
    Polled,
    Same,
    Service,
    Standing,
    Stopped,
    Unchanged,
)
from hybrid_runner.policy.monitor_rounds import gathered
from hybrid_runner.policy.monitored_dependencies import Found, compare, digest_of
from hybrid_runner.resilience.breaker import Breaker, BreakerState
from hybrid_runner.resilience.due_times import DueTimes
from hybrid_runner.waiting.backoff import Backoff


@dataclass(frozen=True, slots=True)
class PollRules:
    """What holds for all services of a fleet."""

    breaker: Breaker = Breaker()  # noqa: RUF009  # frozen
    backoff: Backoff = Backoff("1s", cap="5m", jitter=0.0)  # noqa: RUF009  # frozen
    tick: timedelta = field(default=timedelta(seconds=5))
    """So late a poll may be without its service's rhythm being lost."""


def needs_dependencies(service: Service, polled: Polled) -> bool:
    """Whether the answer has to be compared with what is stored of its dependencies."""
    if not polled.ok:
        return False
    standing = service.standing
    return standing is None or standing.is_unsettled or standing.digest != digest_of(polled.items)


def is_well(service: Service) -> bool:
    """Whether nothing but times and latencies changes when it answers what it answered last."""
    standing = service.standing
    return (
        standing is not None
        and standing
        == Standing(
            due_at=standing.due_at,
            url=service.url,
            polled_at=standing.polled_at,
            ok=True,
            latency_ms=standing.latency_ms,
            since=standing.since,
            certificate_ends_at=standing.certificate_ends_at,
            digest=standing.digest,
        )
        and None not in {standing.since, standing.digest, service.version}
        and service.dependency_ids is not None
        and service.suppressed is None
    )


def unchanged(
    known: Known, polled: Polled, now: datetime, rules: PollRules, place: float | None
) -> Unchanged | None:
    """What `decide` comes to of a service that is well and was polled well, in short; None: there
    is something to decide.
    """
    service = known.service
    standing, ids = service.standing, service.dependency_ids
    if standing is None or ids is None or not polled.ok or polled.warnings:
        return None
    if polled.certificate_ends_at != standing.certificate_ends_at:
        return None
    same = polled.same
    if same is None:
        if digest_of(polled.items) != standing.digest:
            return None
        same = Same(
            tuple(item.name for item in polled.items), [item.latency_ms for item in polled.items]
        )
    told = [
        (ids[name], latency)
        for name, latency in zip(same.names, same.latencies, strict=True)
        if latency > 0 and name in ids
    ]
    return Unchanged(
        service.id,
        due_when_well(service, known.due_at, now, rules, place),
        now,
        polled.latency_ms,
        [each[0] for each in told],
        [each[1] for each in told],
    )


def decide(
    service: Service,
    polled: Polled,
    stored: Mapping[str, Dependency] | None,
    now: datetime,
    rules: PollRules,
    *,
    chance: float,
    place: float | None = None,
) -> Decision:
    """`stored` are its dependencies by name; None: `needs_dependencies` said no. `now` is when the
    poll ended, by Postgres's clock; `place` that of its host among all: with it, good polls are
    gathered.
    """
    before = service.standing or Standing(due_at=now, url=service.url)
    found = (
        compare(service, polled.items, stored, now) if polled.ok and stored is not None else None
    )
    state = rules.breaker.after(breaker_state(service), polled.ok, now)
    after = replace(
        before,
        due_at=_next_due(service, state, now, rules, chance, place),
        url=polled.url,
        polled_at=now,
        ok=polled.ok,
        latency_ms=polled.latency_ms,
        failures=state.failures,
        breaker=state.mode,
        opened_at=state.opened_at,
        error=polled.error,
        failure=polled.failure,
        warnings=polled.warnings,
        certificate_ends_at=polled.certificate_ends_at
        or (None if polled.ok else before.certificate_ends_at),
    )
    if found is not None:
        after = replace(after, digest=digest_of(polled.items), is_unsettled=found.is_unsettled)
    told = _told(service, before, after, now)
    return Decision(
        service.id,
        told.after,
        dependencies=() if found is None else found.changed,
        gone=() if found is None else found.gone,
        errors=(*_errors(service, before, polled), *(() if found is None else found.errors)),
        latencies=tuple(
            Latency(service.id, item.name, item.latency_ms)
            for item in polled.items
            if item.latency_ms > 0
        ),
        events=(
            *_started(service),
            *_of_breaker(service, before, after),
            *_of_poll(service, polled, found),
            *(() if found is None else found.events),
            *told.events,
        ),
        polled=polled,
    )


def missed(service: Service, polled: Polled, now: datetime, rules: PollRules) -> Decision:
    """This process had no network, or the poll was put off: the service is due again after its
    interval, and nothing else is known of it. A breaker that was to be probed is to be probed then.
    Whoever asked for a poll that was put off has no answer yet, and it is due at once.
    """
    is_unanswered = polled.is_put_off and service.is_asked
    before = service.standing or Standing(due_at=now, url=service.url)
    after = replace(before, due_at=now if is_unanswered else now + service.every)
    if before.breaker == "half_open":
        opened_at = after.due_at - parse_duration(rules.breaker.cooldown)
        after = replace(after, breaker="open", opened_at=opened_at)
    found = None if is_unanswered else polled
    return Decision(service.id, after, events=_started(service), polled=found)


class Tried(NamedTuple):
    """What its breaker says of a poll."""

    service: Service
    """As it is from now on: of a probe it is known that it is on its way."""
    put_off: Decision | None = None
    """It does not go."""
    is_probe: bool = False
    """It is the one that shows whether the breaker may close."""


def try_breaker(service: Service, now: datetime, rules: PollRules) -> Tried:
    """Whoever asks for a poll by name passes the breaker."""
    state, may_go = rules.breaker.before(breaker_state(service), now)
    if service.is_asked or state.mode == "closed" or service.standing is None:
        return Tried(service)
    standing = replace(service.standing, breaker=state.mode, opened_at=state.opened_at)
    service = replace(service, standing=standing)
    if may_go:
        return Tried(service, is_probe=True)
    return Tried(service, put_off(service, rules.breaker.ends_at(state, now)))


def put_off(service: Service, due_at: datetime) -> Decision:
    """It is not polled now."""
    before = service.standing or Standing(due_at=due_at, url=service.url)
    return Decision(service.id, replace(before, due_at=due_at), events=_started(service))


def stop(stopped: Stopped) -> tuple[Event, ...]:
    """What is told of a service that is polled no longer."""
    payload = {"serviceId": stopped.service_id, "serviceName": stopped.name}
    return (Event("service:stopped", stopped.service_id, payload),)


def breaker_state(service: Service) -> BreakerState:
    """What its breaker has seen; at another address it begins anew."""
    standing = service.standing
    if standing is None or standing.url != service.url:
        return BreakerState()
    return BreakerState(standing.breaker, standing.failures, standing.opened_at)


def _next_due(
    service: Service,
    state: BreakerState,
    now: datetime,
    rules: PollRules,
    chance: float,
    place: float | None,
) -> datetime:
    if state.failures or state.mode != "closed":
        cooldown = rules.breaker.cooldown
        times = DueTimes(interval=service.every, backoff=rules.backoff, cooldown=cooldown)
        return times.next_due(now, state, chance=chance)
    standing = service.standing
    return due_when_well(service, now if standing is None else standing.due_at, now, rules, place)


def due_when_well(
    service: Service, was_due_at: datetime, now: datetime, rules: PollRules, place: float | None
) -> datetime:
    """When it is due after a good poll that ended now."""
    # What was polled a little late, together with others, keeps its place in time: for half an
    # interval where all have the same few, or a fleet that is short of time would move them on and
    # on.
    a_little = min(rules.tick, service.every)
    if place is not None:
        a_little = max(a_little, service.every / 2)
    if not timedelta(0) <= now - was_due_at <= a_little:
        return now + service.every
    due_at = was_due_at + service.every
    if place is None:
        return due_at
    moment = gathered(place, due_at, service.every, rules.tick)
    # After a poll that was late the moment to which it is moved may be over, or about to come.
    is_too_soon = moment < min(due_at, now + rules.tick)
    return moment + service.every if is_too_soon else moment


class _Told(NamedTuple):
    after: Standing
    events: tuple[Event, ...] = ()


def _told(service: Service, before: Standing, after: Standing, now: datetime) -> _Told:
    """Whether it is down, since when, and what is told of that."""
    if before.since is None:
        after = replace(after, since=now)
    if bool(after.ok) is not before.is_down:  # it goes on as it was
        if before.contrary_since is not None or before.recoveries:
            after = replace(after, contrary_since=None, recoveries=0)
        if before.is_down and not before.told_down and service.suppressed is None:
            return _Told(replace(after, told_down=True), (_of_health(service, after),))
        return _Told(after)
    after = replace(after, contrary_since=before.contrary_since or now)
    if before.is_down:
        after = replace(after, recoveries=before.recoveries + 1)
        if after.recoveries < service.recover_after:
            return _Told(after)
    elif after.failures < service.fail_after:
        return _Told(after)
    after = replace(
        after,
        is_down=not before.is_down,
        since=after.contrary_since,
        contrary_since=None,
        recoveries=0,
        told_down=not before.is_down and service.suppressed is None,
    )
    return _Told(after, (_of_health(service, after),))


def _of_health(service: Service, after: Standing) -> Event:
    """Bad news is suppressed in a maintenance window or below a parent; good news never is."""
    kind: EventKind = "service:down" if after.is_down else "service:up"
    since = None if after.since is None else after.since.isoformat()
    payload = {**_who(service), "error": after.error, "since": since}
    return Event(kind, service.id, payload, service.suppressed if after.is_down else None)


def _of_breaker(service: Service, before: Standing, after: Standing) -> tuple[Event, ...]:
    """A probe that failed is no news."""
    was_open, is_open = before.breaker != "closed", after.breaker != "closed"
    if was_open is is_open:
        return ()
    kind: EventKind = "circuit:open" if is_open else "circuit:close"
    return (Event(kind, service.id, _who(service)),)


def _of_poll(service: Service, polled: Polled, found: Found | None) -> tuple[Event, ...]:
    changes = [] if found is None else found.status_changes
    complete: dict[str, Any] = {
        "serviceId": service.id,
        "success": polled.ok,
        "dependenciesUpdated": len(polled.items),
        "statusChanges": changes,
        "latencyMs": polled.latency_ms,
    }
    if polled.warnings:
        complete["warnings"] = list(polled.warnings)
    if polled.ok:
        return (Event("poll:complete", service.id, complete),)
    complete["error"] = polled.error
    error = {**_who(service), "error": polled.error}
    return (
        Event("poll:complete", service.id, complete),
        Event("poll:error", service.id, error),
    )


def _started(service: Service) -> tuple[Event, ...]:
    if service.standing is not None:
        return ()
    return (Event("service:started", service.id, _who(service)),)


def _errors(service: Service, before: Standing, polled: Polled) -> tuple[ErrorEntry, ...]:
    """The history of the polls themselves: a failure when it is another one than before, and that
    it is over.
    """
    if (polled.failure, polled.error) == (before.failure, before.error):
        return ()
    return (ErrorEntry(service.id, None, polled.failure, polled.error),)


def _who(service: Service) -> dict[str, Any]:
    return {"serviceId": service.id, "serviceName": service.name}
