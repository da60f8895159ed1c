"""What type checkers make of the public API; never run. A line with `type: ignore` is one that must
not pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Never, assert_never, assert_type

import asyncpg
from pydantic import BaseModel

from hybrid_runner import (
    AmendAnswer,
    Attached,
    AttachOptions,
    Backoff,
    Cancel,
    CancelAnswer,
    CollectOptions,
    Columns,
    Confirmations,
    DeclaredSchedule,
    Detached,
    Ended,
    EnqueueAnswer,
    Enqueued,
    EnqueueOptions,
    Fail,
    Gate,
    Job,
    JobEvent,
    JobHandle,
    JobKind,
    JobStatus,
    JobSummary,
    JobView,
    NewJob,
    Repeat,
    Retry,
    RetryAnswer,
    RetryPolicy,
    Runner,
    ScheduleSummary,
    ScheduleView,
    Snooze,
    SourceView,
    State,
    Tick,
    Tries,
    Words,
    Worker,
    WorkerStatus,
    key_of,
)
from hybrid_runner.resilience import (
    Adapt,
    AdaptiveScheduler,
    BackoffState,
    Breaker,
    BreakerState,
    Change,
    Clock,
    Coalescing,
    DueTimes,
    HostLimits,
    Place,
)
from hybrid_runner.resilience.clock import SteadyClock

app = Runner()
Runner("postgresql://localhost/jobs", slots=10, heartbeat="5s", log_level="debug", http_token=None)
Runner(slots="ten")  # type: ignore[arg-type]
Runner(slotz=10)  # type: ignore[call-arg]
app.use(dsn="postgresql://localhost/jobs", lease=timedelta(minutes=1))
app.use(log_format="xml")  # type: ignore[arg-type]


class Thumbnail(BaseModel):
    url: str
    width: int = 320


class WideThumbnail(Thumbnail):
    height: int = 200


@dataclass
class Report:
    year: int


# --- handlers: the payload and the result are read from the signature


@app.job(
    "thumbnail",
    queue="images",
    max_attempts=5,
    timeout=30,
    retry=RetryPolicy(cap=timedelta(minutes=1)),
)
async def thumbnail(payload: Thumbnail, job: Job) -> dict[str, int]:
    assert_type(job.id, int)
    assert_type(job.attempt, int)
    assert_type(job.key, str | None)
    assert_type(job.run_at, datetime)
    assert_type(job.cancel_requested, bool)
    await job.progress(0.5, "resizing")
    return {"bytes": payload.width}


@app.job("brief", timeout="5m")
async def brief(payload: Thumbnail) -> int:
    return payload.width


@app.job("report", executor="process", timeout=timedelta(minutes=5))
def report(payload: Report, job: Job) -> str:
    job.progress(0.1)
    return str(payload.year)


@app.job("quiet", executor="thread", timeout=None)
def quiet(payload: dict[str, int]) -> None:
    payload.clear()


assert_type(thumbnail, JobKind[Thumbnail, dict[str, int]])
assert_type(brief, JobKind[Thumbnail, int])
assert_type(report, JobKind[Report, str])
assert_type(quiet, JobKind[dict[str, int], None])


# --- outcomes are no part of the result


@app.job("poll")
async def poll(payload: Report) -> str | Snooze:
    return Snooze("2s", data={"seen": 1}) if payload.year else "done"


@app.job("choosy")
def choosy(payload: Report, job: Job) -> int | Snooze | Retry | Fail | Cancel | None:
    return Retry(after=5, reason="busy") if job.attempt == 1 else None


@app.job("hopeless")
async def hopeless(payload: Report) -> Fail | Cancel:
    return Fail("there is no way")


@app.job("raises outcomes")
async def raises_outcomes(payload: Report) -> int:
    match payload.year:
        case 1:
            raise Snooze(until=datetime.now(UTC), data=[1])
        case 2:
            raise Snooze(datetime.now(UTC))
        case 3:
            raise Retry(reason="busy") from None
        case 4:
            raise Cancel("no longer wanted")
        case _:
            return card(payload.year)


def card(number: int) -> int:
    if number < 0:
        raise Fail("no such card")
    return number


def is_read(outcome: Snooze | Retry | Fail | Cancel) -> str:
    match outcome:
        case Snooze(delay, data, until):
            assert_type(until, datetime | None)
            return f"{delay} {data} {until}"
        case Retry(after, reason):
            return f"{after} {reason}"
        case Fail(reason) | Cancel(reason):
            return reason


Snooze()
Snooze(reason="not yet", wake_on="approved:42")
Repeat("5m", wake_on="orders have changed")
Snooze("5s", until=datetime.now(UTC))  # type: ignore[call-overload]
Snooze(until="tomorrow")  # type: ignore[call-overload]
Fail()  # type: ignore[call-arg]
Fail("no").reason = "yes"  # type: ignore[misc]

assert_type(raises_outcomes, JobKind[Report, int])
assert_type(poll, JobKind[Report, str])
assert_type(choosy, JobKind[Report, int | None])
assert_type(hopeless, JobKind[Report, Never])


# --- what a job left when it ended has its types


@app.job("clean-up", max_attempts=20)
async def clean_up(end: Ended[Report, Thumbnail]) -> None:
    assert_type(end.payload, Report)
    assert_type(end.data, Thumbnail | None)
    assert_type(end.state, State)
    assert_type(end.reason, str | None)
    assert_type(end.key, str | None)
    assert_type(end.result, Any)


@app.job("note ends")
def note_ends(end: Ended[Any, Any]) -> int:
    assert_type(end.id, int)
    return end.id


assert_type(clean_up, JobKind[Ended[Report, Thumbnail], None])


# --- memories have a type where the handler says so


class Poll(BaseModel):
    task: str
    looks: int = 0


@app.job(
    "remembers",
    data=Poll,
    pace=Backoff("2s", cap="30s", jitter=0.2),
    max_snoozes=120,
    max_duration="29m",
    finish_within=timedelta(hours=1),
    on_end="clean-up",
)
async def remembers(payload: Report, job: Job[Poll]) -> str | Snooze:
    assert_type(job.data, Poll)
    assert_type(job.began_at, datetime)
    assert_type(job.elapsed, timedelta)
    assert_type(job.left, timedelta | None)
    job.data.looks += 1
    job.data.looks += "one"  # type: ignore[operator]
    await job.save(Poll(task="t1"))
    await job.save()
    await job.save("t1")  # type: ignore[arg-type]
    if job.data.looks > 1:
        job.then(brief, Thumbnail(url="a"), key="brief-1", delay="2s", priority=1)
        job.then("tick")
        job.then("tick", {"any": "payload"}, data=Poll(task="t1"))
        job.then(brief, Report(2026))  # type: ignore[misc]
        job.then(brief, Thumbnail(url="a"), on_conflict="replace")  # type: ignore[call-overload]
        return job.data.task
    return any_helper(job).later("not yet")


class Probing(BaseModel):
    idle: Confirmations = Confirmations(times=2, apart="15s")
    rows: Tries = Tries(most=6, pace=Backoff("1.5s", cap="8s"))
    probe: Gate = Gate(after="5s", every=timedelta(seconds=15), most=100)


@app.job("probes", data=Probing)
async def probes(payload: Report, job: Job[Probing]) -> str | Snooze | Repeat | Fail:
    seen = job.data
    assert_type(seen.probe.opens(job), bool)
    assert_type(seen.idle.confirm(job), bool)
    assert_type(seen.rows.again(job), Snooze | None)
    seen.probe.opens()  # type: ignore[call-arg]
    Confirmations(times="2")  # type: ignore[arg-type]
    Tries(pace="2s")  # type: ignore[arg-type]
    if seen.idle.seen:
        return seen.rows.again(job) or Fail(f"not queryable after {seen.rows.most} tries")
    return Repeat("5m", data=seen)


assert_type(probes, JobKind[Report, str])


@app.reconcile("1m", kind=probes, key="probes-{year}", most=100)
def lost_probes() -> str:
    return "SELECT r.year FROM public.reports AS r"


@app.reconcile("1m", kind="probes", key="probes-{year}")  # type: ignore[arg-type]
def by_name() -> str:
    return "SELECT r.year FROM public.reports AS r"


@app.reconcile("1m", kind=probes, key="probes-{year}")  # type: ignore[arg-type]
async def later() -> str:
    return "SELECT r.year FROM public.reports AS r"


@app.job("thinks")
def thinks(payload: dict[str, Any], job: Job) -> dict[str, Any] | Fail:
    assert_type(job.data, Any)
    if job.data is None:
        job.data = {"looks": [1]}
    job.save({"any": "thing"})
    return Fail("no", then=[brief.new(Thumbnail(url="a"), key="k"), NewJob("tick")])


def any_helper(job: Job[Any]) -> Job[Any]:
    return job


brief.new(Report(2026))  # type: ignore[arg-type]
assert_type(brief.new(Thumbnail(url="a"), delay="2s"), NewJob)
assert_type(remembers, JobKind[Report, str])
app.job("paced", pace="2s")  # type: ignore[arg-type]


# --- handlers that are none


@app.job("no payload")  # type: ignore[arg-type]
async def no_payload() -> None: ...


@app.job("not a job")  # type: ignore[arg-type]
async def not_a_job(payload: Report, job: str) -> None: ...


@app.job("three")  # type: ignore[arg-type]
def three(payload: Report, job: Job, more: int) -> None: ...


app.job("nowhere", executor="fork")  # type: ignore[arg-type]


# --- enqueue and wait


async def enqueues(
    connection: asyncpg.Connection[asyncpg.Record], pool: asyncpg.Pool[asyncpg.Record]
) -> None:
    handle = await app.enqueue(
        thumbnail, Thumbnail(url="a"), key="thumb:42", priority=3, delay="5s", queue="images"
    )
    assert_type(handle, JobHandle[dict[str, int]])
    assert_type(handle.id, int)
    assert_type(await handle.wait(timeout=10), dict[str, int])
    assert_type(await handle.get(), JobView)
    assert_type(await handle.cancel("changed my mind"), CancelAnswer)
    assert_type(handle.enqueued, EnqueueAnswer)

    assert_type(await app.enqueue(thumbnail, WideThumbnail(url="a")), JobHandle[dict[str, int]])
    assert_type(await (await app.enqueue(brief, Thumbnail(url="a"))).wait(), int)
    assert_type(
        await (await app.enqueue(report, Report(2026))).wait("1m", on_status=on_status), str
    )
    assert_type(await app.enqueue(quiet, {"a": 1}), JobHandle[None])
    assert_type(await app.enqueue(poll, Report(2026), run_at=datetime.now(UTC)), JobHandle[str])
    assert_type(await app.enqueue(choosy, Report(2026)), JobHandle[int | None])

    assert_type(await app.enqueue("thumbnail", {"url": "a"}), JobHandle[Any])
    assert_type(await app.enqueue("tick"), JobHandle[Any])

    await app.enqueue(brief, Thumbnail(url="a"), connection=connection, on_conflict="replace")
    await app.enqueue(brief, Thumbnail(url="a"), connection=pool)

    await app.enqueue(thumbnail, {"url": "a"})  # type: ignore[misc]
    await app.enqueue(thumbnail, Report(2026))  # type: ignore[misc]
    await app.enqueue(quiet, {"a": "one"})  # type: ignore[misc]
    await app.enqueue(thumbnail)  # type: ignore[call-overload]
    await app.enqueue(brief, Thumbnail(url="a"), on_conflict="ignore")  # type: ignore[call-overload]
    await app.enqueue(brief, Thumbnail(url="a"), prioriti=3)  # type: ignore[call-overload]
    await app.enqueue(brief, Thumbnail(url="a"), run_at="tomorrow")  # type: ignore[call-overload]


# --- keys


@app.job("reindex", unique=("year",))
async def reindex(payload: list[Report], job: Job) -> int:
    return len(payload)


assert_type(reindex, JobKind[list[Report], int])
assert_type(key_of(brief, Thumbnail(url="a"), "url"), str)
assert_type(key_of("brief", {"url": "a"}), str)


async def keys_are_taken() -> None:
    handle = await app.enqueue(
        reindex,
        Report(2026),
        on_conflict="collect",
        delay="2s",
        max_wait="30s",
        max_items=100,
        start_by=datetime.now(UTC),
    )
    assert_type(handle, JobHandle[int])
    assert_type(
        await app.enqueue(reindex, [Report(2026)], on_conflict="collect", key="reports"),
        JobHandle[int],
    )
    assert_type(
        await app.enqueue_many(reindex, [Report(2026)], on_conflict="collect"), list[Enqueued]
    )
    await app.enqueue_many(
        reindex, [[Report(2026)], [Report(2027)]], key=lambda _: "reports", on_conflict="collect"
    )
    options: CollectOptions = {"key": "reports", "max_items": 100}
    await app.enqueue(reindex, Report(2026), on_conflict="collect", **options)
    await app.enqueue(brief, Thumbnail(url="a"), key="a", on_conflict="follow")
    await app.enqueue(brief, Thumbnail(url="a"), key="a", unique_for="1h")

    await app.enqueue(reindex, Report(2026))  # type: ignore[misc]
    await app.enqueue(reindex, Thumbnail(url="a"), on_conflict="collect")  # type: ignore[call-overload]
    await app.enqueue(brief, Thumbnail(url="a"), on_conflict="gather")  # type: ignore[call-overload]
    await app.enqueue(brief, Thumbnail(url="a"), max_items="many")  # type: ignore[call-overload]


async def options_can_be_kept() -> None:
    options: EnqueueOptions = {"queue": "images", "delay": "5s", "priority": None}
    await app.enqueue(brief, Thumbnail(url="a"), **options)
    options["key"] = 5  # type: ignore[typeddict-item]


async def answers_are_closed() -> None:
    answer = await app.cancel(1)
    match answer:
        case "cancelled" | "requested" | "finished":
            pass
        case "unknown":
            pass
        case _:
            assert_never(answer)


def on_status(status: JobStatus) -> None:
    assert_type(status.state, State)


async def enqueues_many() -> None:
    assert_type(
        await app.enqueue_many(brief, [Thumbnail(url="a"), Thumbnail(url="b")], priority=1),
        list[Enqueued],
    )
    assert_type(
        await app.enqueue_many(brief, [NewJob(kind="brief", payload='{"url": "a"}', key="one")]),
        list[Enqueued],
    )
    assert_type(
        await app.enqueue_many("brief", ({"url": str(n)} for n in range(3))), list[Enqueued]
    )
    for enqueued in await app.enqueue_many("brief", [{}]):
        assert_type(enqueued.id, int)
        assert_type(enqueued.enqueued, EnqueueAnswer)

    many = [Thumbnail(url="a")]
    await app.enqueue_many(
        brief, many, key=lambda thumbnail: f"thumb:{thumbnail.url}", data={"seen": 0}
    )
    await app.enqueue_many("brief", [{}], key=str, delay="1h", on_conflict="replace")

    await app.enqueue_many(brief, many, key="one")  # type: ignore[call-overload]
    await app.enqueue_many(brief, many, key=lambda thumbnail: thumbnail.year)  # type: ignore[attr-defined]
    await app.enqueue_many(brief, many, key=lambda thumbnail: thumbnail.width)  # type: ignore[arg-type, return-value]
    await app.enqueue_many(brief, many, prioriti=3)  # type: ignore[call-overload]
    await app.enqueue_many(brief, many, delay=b"1h")  # type: ignore[call-overload]
    await app.enqueue_many(brief, [Report(2026)])  # type: ignore[misc]
    await app.enqueue_many(brief, Thumbnail(url="a"))  # type: ignore[misc]


# --- in the caller's transaction


@app.job("transfer")
async def transfer(payload: Report, job: Job) -> dict[str, int]:
    connection = await asyncpg.connect()
    async with connection.transaction():
        await job.complete({"year": payload.year}, connection=connection)
    await job.complete({"year": payload.year})  # type: ignore[call-arg]
    return {}


# --- everything else


async def looks() -> None:
    assert_type(await app.get(1), JobView | None)
    for job in await app.list_jobs(state="failed", queue="images", kind="thumbnail", most=10):
        assert_type(job, JobSummary)
    assert_type(await app.cancel(1, "no longer wanted"), CancelAnswer)
    assert_type(await app.retry(1), RetryAnswer)
    assert_type(await app.amend(1, version=2, priority=0), AmendAnswer)
    assert_type(await app.pause("images"), bool)
    assert_type(await app.resume("images"), bool)
    assert_type(app.handle(1), JobHandle[Any])
    assert_type(app.handle(1, thumbnail), JobHandle[dict[str, int]])
    assert_type(await app.handle(1, report).wait(), str)

    await app.amend(1, priority=0)  # type: ignore[call-arg]


async def works() -> None:
    async with app, app.worker(queues={"images": 10}, worker_id="one") as worker:
        assert_type(worker, Worker)
        assert_type(worker.status(), WorkerStatus)
        await worker.idle()


async def follow() -> None:
    """Events of a job."""
    async for event in app.events(1, follow_ups=True):
        assert_type(event, JobEvent)
        assert_type(event.job.state, State)
        assert_type(event.job.followed_by, list[int] | None)
        assert_type(event.as_sse(), bytes)
        assert_type(event.name == "snoozed", bool)
    app.events("1")  # type: ignore[arg-type]


@app.job("packed")
async def packed(payload: Thumbnail, job: Job) -> str | Snooze:
    """Signals."""
    assert_type(await job.signal("k", timeout="3d", type=Thumbnail), Thumbnail | None)
    assert_type(await job.signal("k"), Any)
    assert_type(job.signalled, Any)
    assert_type(job.timed_out, bool)
    await job.signal("k", type=3)  # type: ignore[call-overload]
    await job.signal(7)  # type: ignore[call-overload]
    return Snooze("1h", wake_on="k")


async def send() -> None:
    """As an application does."""
    assert_type(await app.signal("k", {"boxes": 3}), int)
    await app.signal("k", connection=await asyncpg.connect(""))
    await app.signal(7)  # type: ignore[arg-type]


async def attach(kind: JobKind[Any, Any]) -> None:
    """As a migration does."""
    words = Words(queued="pending", running="running", completed="done", failed="failed")
    columns = Columns(status="status", worker_id="worker")
    Words(queued="pending")  # type: ignore[call-arg]
    Columns()  # type: ignore[call-arg]
    assert_type(await app.attach("t", kind=kind, words=words, columns=columns), Attached)
    options: AttachOptions = {"when": "paid", "key": ["a", "b"], "wait": "5s", "guess": True}
    await app.attach("t", kind="k", words={"queued": "new"}, **options)
    await app.attach("t", kind="k", on_delete="keep")  # type: ignore[arg-type]
    await app.attach("t", kind="k", wen="true")  # type: ignore[call-arg]
    await app.attach("t")  # type: ignore[call-arg]
    assert_type(await app.detach("t", kind="k", wait=timedelta(seconds=5)), Detached)
    assert_type(await app.sources(), Sequence[SourceView])
    assert_type((await app.source("t")).complaints, Sequence[str])


# --- resilience


async def call_again_and_again() -> None:
    """Loops, breakers, limits and shared calls."""
    clock: Clock = SteadyClock()
    async with AdaptiveScheduler(clock=clock, on_change=on_change, stagger="1s") as loops:
        loops.schedule("one", looks, "30s", lambda: True, at_once=True, timeout=10)
        loops.schedule("two", lambda: None, timedelta(seconds=5), adapt=Adapt("1s", "1m"))
        loops.schedule("three", looks)  # type: ignore[call-arg]
        loops.schedule("four", looks(), "30s")  # type: ignore[arg-type]
        loops.schedule("five", looks, "30s", breaker=10)  # type: ignore[arg-type]
        assert_type(loops.trigger("one"), bool)
        assert_type(loops.backoff_state("one"), BackoffState | None)
        assert_type(loops.reset_backoff("one"), bool)
        loops.pause()
        loops.resume()
        await loops.close("1s")

    now, breaker = datetime.now(UTC), Breaker(failures=10, cooldown="5m")
    assert_type(breaker.before(BreakerState(), now), tuple[BreakerState, bool])
    assert_type(breaker.after(BreakerState("open", 10, now), True, now), BreakerState)
    BreakerState("ajar")  # type: ignore[arg-type]
    due_times = DueTimes("30s", backoff=Backoff("1s", cap="5m"))
    assert_type(due_times.next_due(now, BreakerState(), address_changed=True), datetime)

    limits, coalescing = HostLimits(per_host=5), Coalescing()
    async with limits.place("orders"):
        assert_type(limits.try_place("orders"), Place | None)
    assert_type(await coalescing.run("key", lambda: app.signal("k")), int)
    await coalescing.run("key", lambda: 3)  # type: ignore[arg-type,return-value]


def on_change(change: Change) -> None:
    """As a caller writes it."""
    assert_type(change.error, BaseException | None)


# --- schedules


nightly = app.schedule("nightly", report, Report(year=2030), cron="@daily", overlap="queue")
assert_type(nightly, DeclaredSchedule)
app.schedule("pulse", quiet, every="10s", jitter=timedelta(seconds=1))
app.schedule("elsewhere", "anything", {"n": 1}, at=datetime.now(UTC))
app.schedule("wrong", report, Thumbnail(url=""), every=5)  # type: ignore[misc]
app.schedule("wrong", report, Report(year=2030), evry=5)  # type: ignore[call-overload]
app.schedule("wrong", report, Report(year=2030), every=5, overlap="skpi")  # type: ignore[call-overload]


async def by_the_clock(job: Job) -> None:
    assert_type(job.tick, datetime | None)
    assert_type(job.schedule, str | None)
    assert_type(await app.add_schedule("hourly", "anything", every="1h"), datetime | None)
    assert_type(await app.run_now("nightly"), JobHandle[Any])
    assert_type(await app.schedules(), Sequence[ScheduleSummary])
    assert_type(await app.get_schedule("nightly"), ScheduleView | None)
    assert_type(await app.next_ticks("nightly", 5), Sequence[Tick])
    assert_type(await app.preview("@daily"), Sequence[datetime])
    assert_type(await app.pause_schedule("nightly"), bool)
