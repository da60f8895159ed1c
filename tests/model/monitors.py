"""Walks every interleaving of one monitored service: those who edit it or ask for a poll of it, its
host's round and its end, and the death of a worker that may go on without knowing. The reconciler,
which would repair what is missed a minute later, is left out.

What a poll means is decided by the production code. A world is bad when a fault was made on the way
to it, or when everybody rests and the service is not as the rounds believe, or a poll that was
asked for was not made.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from typing import Literal, NamedTuple

from hybrid_runner.model.monitors import BreakerMode, Polled, Service, Standing, Stopped
from hybrid_runner.policy.monitors import PollRules, decide, stop, try_breaker
from hybrid_runner.resilience.breaker import Breaker

NOW = datetime(2030, 1, 1, tzinfo=UTC)
COOLDOWN = timedelta(minutes=5)
RULES = PollRules(breaker=Breaker(failures=1, cooldown=COOLDOWN))


class Rules(NamedTuple):
    """What the parts must keep; tests drop them one at a time."""

    signal: bool = True
    """Whoever edits or asks signals the host's key."""
    early: bool = True
    """A signal that comes while a run goes on makes the next one due at once."""
    fence: bool = True
    """What a round stores names its claim."""
    compare: bool = True
    """What was found at an address that is no longer the service's is dropped."""
    probe_first: bool = True
    """A probe is written down before it is sent."""
    one_job: bool = True
    """A host has one live job."""
    open_always: bool = True
    """Whoever stores a new service has its host opened, whatever he sees of its job."""
    look_again: bool = True
    """Who ends the job of an idle host looks once more, while nobody can open it."""
    wait: bool = True
    """Who opens a host waits for whoever ends its job."""


class Step(IntEnum):
    """How far a run is."""

    BEGUN = 0
    PROBING = 1  # the probe is not written down yet
    POLLING = 2
    FOUND = 3
    STORED = 4
    CLOSING = 5  # it has the host's lock, and has seen that there is nothing to do


class Seen(NamedTuple):
    """A standing, without times: `is_cool` says that the cool-down is over."""

    url: int
    mode: BreakerMode = "closed"
    is_cool: bool = False


class Run(NamedTuple):
    """One attempt of a job; after its job was given to another it goes on until it notices."""

    job: int
    claim: int
    by_clock: bool
    step: Step = Step.BEGUN
    url: int = 0
    seen: Seen | None = None
    is_asked: bool = False
    is_probe: bool = False
    ok: bool = True
    again: Literal["now", "later", "idle"] = "later"


class Job(NamedTuple):
    """The job of the host; `state` of it and the number of its last claim."""

    number: int
    state: Literal["waits", "due", "runs"] = "due"
    claim: int = 0
    by_clock: bool = False


class World(NamedTuple):
    """All that is shared."""

    edits: tuple[int, ...]
    """What editors are going to store: the number of an address; 0: the service is removed."""
    asks: int
    crashes: int
    ticks: int
    """How often the clock may make something due."""
    service: int = 0
    editing: int | None = None
    """In an open transaction."""
    saw_job: bool = False
    opening: bool = False
    """A job that opens hosts is on its way."""
    signalled: bool = False
    jobs: tuple[Job, ...] = ()
    made: int = 0
    runs: frozenset[Run] = frozenset()
    standing: Seen | None = None
    is_due: bool = False
    asked: bool = False
    told: str = "stopped"
    probes: int = 0
    """Sent since the breaker opened or was probed last."""
    fault: str = ""


class Explored(NamedTuple):
    """What was found: how many worlds, and the shortest way to one that is bad."""

    worlds: int
    story: list[World]


def explore(
    edits: tuple[int, ...],
    asks: int = 0,
    crashes: int = 0,
    ticks: int = 0,
    rules: Rules = Rules(),  # noqa: B008  # frozen
) -> Explored:
    """Walk until nothing is new, or something is bad."""
    start = World(edits, asks, crashes, ticks)
    came_from: dict[World, World | None] = {start: None}
    todo = deque([start])
    while todo:
        world = todo.popleft()
        if world.fault or _is_bad_at_rest(world):
            story: list[World] = []
            at: World | None = world
            while at is not None:
                story.insert(0, at)
                at = came_from[at]
            return Explored(len(came_from), story)
        for after in _moves(world, rules):
            if after not in came_from:
                came_from[after] = world
                todo.append(after)
    return Explored(len(came_from), [])


def _is_bad_at_rest(world: World) -> bool:
    """Nobody is about to do anything but by the clock."""
    goes_on = (
        world.editing is not None
        or world.opening
        or world.runs
        or any(job.state != "waits" or world.signalled for job in world.jobs)
    )
    if goes_on:
        return False
    believed = 0 if world.standing is None else world.standing.url
    return believed != world.service or (world.asked and world.service != 0)


def _moves(world: World, rules: Rules) -> Iterator[World]:
    yield from _of_editors(world, rules)
    yield from _of_jobs(world, rules)
    for run in world.runs:
        yield from _of_run(world._replace(runs=world.runs - {run}), run, rules)
    if world.crashes:
        yield from _of_deaths(world._replace(crashes=world.crashes - 1))
    # A poll takes less time than a cool-down.
    is_probed = any(run.is_probe and run.step <= Step.POLLING for run in world.runs)
    if world.ticks and world.standing is not None and not is_probed:
        passed = world._replace(ticks=world.ticks - 1, is_due=True)
        if world.standing.mode != "closed":
            passed = passed._replace(standing=world.standing._replace(is_cool=True), probes=0)
        yield passed._replace(
            jobs=tuple(
                job._replace(state="due", by_clock=True) if job.state == "waits" else job
                for job in world.jobs
            )
        )


def _of_editors(world: World, rules: Rules) -> Iterator[World]:
    if world.editing is not None:
        is_new = bool(world.editing) and not world.service
        opens = not world.saw_job or (rules.open_always and is_new)
        after = world._replace(service=world.editing, editing=None, opening=world.opening or opens)
        yield _signalled(after, rules)
    elif world.edits:
        yield world._replace(
            editing=world.edits[0], edits=world.edits[1:], saw_job=bool(world.jobs)
        )
    is_on_its_way = any(run.step in (Step.POLLING, Step.PROBING) for run in world.runs)
    if world.asks and world.service and not world.asked and not is_on_its_way:
        yield _signalled(world._replace(asks=world.asks - 1, asked=True), rules)


def _signalled(world: World, rules: Rules) -> World:
    counts = rules.signal and (rules.early or all(job.state == "waits" for job in world.jobs))
    return world._replace(signalled=world.signalled or counts)


def _of_jobs(world: World, rules: Rules) -> Iterator[World]:
    has_work = world.service or world.standing is not None
    is_closing = any(run.step is Step.CLOSING and _job_of(world, run) for run in world.runs)
    if world.opening and not (rules.wait and is_closing):
        after = world._replace(opening=False)
        is_free = not world.jobs or (not rules.one_job and len(world.jobs) < 2)
        yield _with_job(after) if has_work and is_free else after
    for job in world.jobs:
        if job.state == "waits" and world.signalled:
            yield _changed(world, job, job._replace(state="due", by_clock=False))
        if job.state == "due":
            claimed = job._replace(state="runs", claim=job.claim + 1)
            run = Run(job.number, claimed.claim, job.by_clock and not world.signalled)
            after = _changed(world, job, claimed)
            yield after._replace(signalled=False, runs=after.runs | {run})


def _with_job(world: World) -> World:
    return world._replace(jobs=(*world.jobs, Job(world.made)), made=world.made + 1)


def _changed(world: World, job: Job, after: Job | None) -> World:
    jobs = tuple(each for each in world.jobs if each is not job)
    return world._replace(jobs=jobs if after is None else (*jobs, after))


def _of_deaths(world: World) -> Iterator[World]:
    for run in world.runs:
        job = _job_of(world, run)
        if job is None:
            continue
        rescued = _changed(world, job, job._replace(state="due", claim=job.claim + 1))
        yield rescued  # it goes on, and does not know
        yield rescued._replace(runs=world.runs - {run})


def _job_of(world: World, run: Run) -> Job | None:
    """The job, if the run's claim is still valid."""
    for job in world.jobs:
        if (job.number, job.claim, job.state) == (run.job, run.claim, "runs"):
            return job
    return None


def _of_run(world: World, run: Run, rules: Rules) -> Iterator[World]:
    """What it does next; `world` is without it."""
    is_stale = _job_of(world, run) is None
    match run.step:
        case Step.BEGUN:
            yield world if is_stale else _with(world, _taken(world, run))
        case Step.PROBING:
            yield world if is_stale and rules.fence else _probing(world, run, rules)
        case Step.POLLING:
            if run.is_probe:
                fault = "two probes within one cool-down" if world.probes else ""
                world = world._replace(probes=world.probes + 1, fault=world.fault or fault)
            for ok in (True, False):
                yield _with(world, run._replace(step=Step.FOUND, ok=ok))
        case Step.FOUND:
            yield world if is_stale and rules.fence else _stored(world, run, rules)
        case Step.STORED:
            yield _settled(world, run, rules)
        case Step.CLOSING:
            yield world if is_stale else _closed(world, run)


def _probing(world: World, run: Run, rules: Rules) -> World:
    """begin_probes."""
    seen = run.seen
    if rules.probe_first and seen is not None and world.standing is not None:
        seen = seen._replace(mode="half_open", is_cool=False)
        world = world._replace(standing=seen, is_due=False)
    return _with(world, run._replace(step=Step.POLLING, seen=seen))


def _with(world: World, run: Run) -> World:
    return world._replace(runs=world.runs | {run})


def _taken(world: World, run: Run) -> Run:
    """take_round, and what its breaker says."""
    seen = world.standing
    is_wanted = world.is_due or world.asked or seen is None or seen.url != world.service
    if not world.service or not is_wanted:
        return run._replace(step=Step.FOUND, url=0, seen=seen)
    run = run._replace(url=world.service, seen=seen, is_asked=world.asked)
    tried = try_breaker(_service(run), NOW, RULES)
    if tried.put_off is not None:
        return run._replace(step=Step.FOUND, url=0)
    return run._replace(
        step=Step.PROBING if tried.is_probe else Step.POLLING, is_probe=tried.is_probe
    )


def _stored(world: World, run: Run, rules: Rules) -> World:
    """record_round: all of it, or nothing."""
    if run.url:
        if run.url == world.service or not rules.compare:
            world = _with_poll(world, run)
    elif world.standing is not None and not world.service:
        [event] = stop(Stopped(1, "orders", is_deleted=True))
        world = _told(world, event.kind)._replace(standing=None, is_due=False)
    is_current = world.standing is not None and world.standing.url == world.service
    if world.service:
        again: Literal["now", "later", "idle"] = (
            "now" if world.asked or world.is_due or not is_current else "later"
        )
    else:
        again = "now" if world.standing is not None else "idle"
    return _with(world, run._replace(step=Step.STORED, again=again))


def _with_poll(world: World, run: Run) -> World:
    if run.url != world.service:
        world = world._replace(fault="what an older address said was stored")
    polled = Polled(1, str(run.url), 1, failure=None if run.ok else "http", error=None)
    seen = run.seen
    if run.is_probe and seen is not None:  # known by the round even if it is not written down
        run = run._replace(seen=seen._replace(mode="half_open", is_cool=False))
    decision = decide(_service(run), polled, {}, NOW, RULES, chance=0.5)
    for event in decision.events:
        world = _told(world, event.kind)
    after = decision.after
    was_closed = seen is None or seen.mode == "closed"
    return world._replace(
        standing=Seen(run.url, after.breaker, is_cool=after.due_at <= NOW),
        is_due=False,
        asked=world.asked and not run.is_asked,
        probes=0 if after.breaker == "closed" or was_closed else world.probes,
    )


def _told(world: World, kind: str) -> World:
    if kind not in ("service:started", "service:stopped"):
        return world
    word = kind.removeprefix("service:")
    fault = f"it was told twice that the service has {word}" if world.told == word else ""
    return world._replace(told=word, fault=world.fault or fault)


def _settled(world: World, run: Run, rules: Rules) -> World:
    """Repeat, or close_host of a job that has had nothing to do for long."""
    job = _job_of(world, run)
    if job is None:
        return world
    if run.again == "idle" and run.by_clock:
        has_work = world.service or world.standing is not None
        if not (rules.look_again and has_work):
            return _with(world, run._replace(step=Step.CLOSING))
    state: Literal["waits", "due"] = "due" if run.again == "now" else "waits"
    return _changed(world, job, job._replace(state=state, by_clock=False))


def _closed(world: World, run: Run) -> World:
    """The commit of whoever ends it."""
    job = _job_of(world, run)
    return world if job is None else _changed(world, job, None)


def _service(run: Run) -> Service:
    """As take_round hands it out."""
    standing = None
    if run.seen is not None:
        opened_at = NOW - COOLDOWN if run.seen.is_cool else NOW
        standing = Standing(
            due_at=NOW,
            url=str(run.seen.url),
            polled_at=NOW,
            ok=run.seen.mode == "closed",
            failures=0 if run.seen.mode == "closed" else 1,
            breaker=run.seen.mode,
            opened_at=None if run.seen.mode == "closed" else opened_at,
            since=NOW,
        )
    return replace(_SERVICE, url=str(run.url), is_asked=run.is_asked, standing=standing)


_SERVICE = Service(
    id=1,
    name="orders",
    url="1",
    every=timedelta(seconds=30),
    timeout=timedelta(seconds=10),
    format="dependencies",
    mapping=None,
    expect=None,
    headers=None,
    follow=0,
    fail_after=1,
    recover_after=1,
    is_asked=False,
    suppressed=None,
    standing=None,
)
