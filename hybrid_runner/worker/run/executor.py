"""Runs claimed jobs, each in a task: decode the payload, call the handler, name the outcome, hand
it to the settler.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from hybrid_runner.handlers.job import Job, JobPort
from hybrid_runner.handlers.notes import Notes
from hybrid_runner.handlers.registry import Registry
from hybrid_runner.model.claims import Claim
from hybrid_runner.model.jobs import State
from hybrid_runner.model.outcomes import Completed, Outcome, Raised, Stopped, outcome_of_exception
from hybrid_runner.model.settlements import Finished, Settlement
from hybrid_runner.policy.settlement import completed, decide, error_text
from hybrid_runner.telemetry.log_events import log_event
from hybrid_runner.telemetry.logs.job_fields import job_fields
from hybrid_runner.telemetry.tracing.current import current_claim
from hybrid_runner.telemetry.tracing.tracing import Tracing
from hybrid_runner.worker.liveness.watchdog import Stall
from hybrid_runner.worker.queue.slots import Slots
from hybrid_runner.worker.run.attempt import Attempt, uncancel
from hybrid_runner.worker.run.deadlines import Deadlines
from hybrid_runner.worker.run.late import out_of_time, too_late
from hybrid_runner.worker.run.leaving import leave
from hybrid_runner.worker.run.needs import Needs
from hybrid_runner.worker.run.payloads import Payloads
from hybrid_runner.worker.run.places import NoPlace
from hybrid_runner.worker.run.pools import HandlerPools
from hybrid_runner.worker.run.reading import read_payload
from hybrid_runner.worker.run.rows import Rows
from hybrid_runner.worker.waits.taker import SignalTaker
from hybrid_runner.worker.waits.unwound import unwound

log = logging.getLogger("hybrid_runner.worker")


class Executor:
    """All attempts that run in this worker."""

    def __init__(
        self,
        registry: Registry,
        pools: HandlerPools,
        settle: Callable[[Settlement], None],
        port: JobPort,
        tracing: Tracing,
        payloads: Payloads,
        rows: Rows,
        signals: SignalTaker,
    ) -> None:
        self._registry = registry
        self._pools = pools
        self._settle = settle
        self._port = port
        self._tracing = tracing
        self._payloads = payloads
        self._needs = Needs(payloads, rows, signals)
        self._context = tracing.context()
        self._deadlines = Deadlines()
        # By job and claim: an old attempt of the same job may still go on.
        self._running: dict[tuple[int, int], Attempt] = {}
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def running(self) -> list[int]:
        """The ids of the jobs that run now. May be called from any thread."""
        return [job_id for job_id, _ in list(self._running)]

    def runs(self, job_id: int) -> bool:
        """Whether an attempt of this job runs here."""
        return any(running == job_id for running, _ in self._running)

    @property
    def waiting(self) -> int:
        """How many attempts wait for a thread or a process. May be called from any thread."""
        return sum(attempt.waits for attempt in list(self._running.values()))

    def by_queue(self) -> dict[str, int]:
        """How many jobs run now. May be called from any thread."""
        return dict(Counter(attempt.claim.queue for attempt in list(self._running.values())))

    @property
    def claims(self) -> list[tuple[int, int]]:
        """Job id and claim number of each attempt that runs now. May be called from any thread."""
        return list(self._running)

    def shown(self) -> list[Claim]:
        """The claims whose rows show that their jobs run."""
        return [each.claim for each in self._running.values() if each.claim.shown is not None]

    def start(self, claims: list[Claim], slots: Slots) -> None:
        loop, started = asyncio.get_running_loop(), list[Attempt]()
        try:
            for claim in claims:
                attempt = self._new_attempt(claim, slots)
                # All before its task: a loop with eager tasks runs that here, perhaps to its end.
                started.append(attempt)
                self._idle.clear()
                self._running[claim.id, claim.number] = attempt
                if attempt.kind.executor != "async":
                    self._pools.places[attempt.kind.executor].claimed += 1
                attempt.task = loop.create_task(self._run(attempt), context=self._context.copy())
        finally:
            slots.take(len(started))
            loop.call_soon(self._release_unbegun, started)  # once each has taken its first step

    def _new_attempt(self, claim: Claim, slots: Slots) -> Attempt:
        kind = self._registry[claim.kind]
        if not kind.wants_job:
            return Attempt(claim, kind, slots)
        notes = Notes(claim, kind)
        return Attempt(claim, kind, slots, Job(claim, kind, self._port, notes), notes)

    def stop(self, job_id: int, why: Stopped) -> bool:
        """Stop all attempts of a job; False if there is none."""
        attempts = [attempt for (running, _), attempt in self._running.items() if running == job_id]
        _stop(attempts, why)
        return bool(attempts)

    def cancel(self, job_id: int) -> None:
        """Stop the attempts of a job that somebody asked to cancel."""
        if self.stop(job_id, Stopped.CANCEL):
            log.info(
                "somebody asked to cancel it: its handler is stopped",
                extra=log_event("job.cancel_requested", job=job_id),
            )

    def stop_without_rows(self, claims: Iterable[tuple[int, int]]) -> None:
        """Stop attempts whose rows were deleted or taken away: their outcomes could not be written.

        Attempts of the same jobs under other claims go on.
        """
        for key in claims:
            attempt = self._running.get(key)
            if attempt is None or attempt.stop is not None or attempt.claim.completed_by_handler:
                continue  # each heartbeat names it again: a handler that cleans up is not cut off
            log.info(
                "the job's row was deleted or taken away: its handler is stopped",
                extra=job_fields(attempt.claim, "job.row_gone"),
            )
            attempt.stop = Stopped.ROW_GONE
            if not attempt.expired:
                attempt.wind_down()

    def stop_waiting(self) -> None:
        """Release what waits for a thread or a process, and whatever would have to from now on."""
        self._pools.close_waits()
        _stop([each for each in self._running.values() if each.waits], Stopped.SHUTDOWN)

    def stop_all(self) -> None:
        """Stop everything that runs; the jobs are released."""
        _stop(list(self._running.values()), Stopped.SHUTDOWN)

    def overdue(self, timeout_grace: float) -> set[int]:
        """Jobs whose time-outs should have ended them so many seconds ago. From any thread."""
        latest = time.monotonic() - timeout_grace
        return {
            attempt.claim.id for attempt in list(self._running.values()) if attempt.due_at < latest
        }

    def mark_stall(self, stall: Stall) -> dict[str, object]:
        """Add the stall to the span of the attempt that blocks the event loop; returns log fields
        that name the job. May be called from any thread.
        """
        for attempt in list(self._running.values()):
            if attempt.task is not None and attempt.task is asyncio.current_task(
                attempt.task.get_loop()
            ):
                if attempt.span is not None:
                    attempt.span.add_event(
                        "event loop blocked",
                        {"seconds": stall.seconds, "code.stacktrace": stall.stack},
                    )
                return {
                    "job": attempt.claim.id,
                    "queue": attempt.claim.queue,
                    "kind": attempt.claim.kind,
                }
        return {}

    async def idle(self) -> None:
        """Wait until nothing runs."""
        await self._idle.wait()

    async def close(self) -> None:
        """End the processes and forget time-outs, once nothing runs any more."""
        self._deadlines.close()
        await self._pools.close()

    async def _run(self, attempt: Attempt) -> None:
        claim = attempt.claim
        current_claim.set(claim)
        claim.began = time.monotonic()
        try:
            outcome, left = leave(attempt, await self._attempt(attempt), self._port.find)
            claim.ended = time.monotonic()
            settlement: Settlement
            if isinstance(outcome, Completed):
                settlement = completed(claim, outcome, left)
            else:
                now, chance = claim.server_time(claim.ended), random.random()
                rules = attempt.kind.rules
                settlement = decide(claim, outcome, rules, now=now, chance=chance, left=left)
            if attempt.span is not None:
                self._tracing.end_run(attempt.span, outcome, settlement)
            self._settle(settlement)
        except BaseException as error:  # whatever was returned: the job must end, and free its slot
            log.exception(
                "what the handler returned cannot be used", extra=log_event("job.outcome_unusable")
            )
            claim.ended = time.monotonic()
            raised = Raised(
                type(error).__name__, "what the handler returned cannot be used: see the log"
            )
            unusable = Finished(
                claim,
                State.FAILED,
                error=error_text(
                    claim, claim.server_time(claim.ended), raised.kind, raised.message
                ),
            )
            if attempt.span is not None:
                self._tracing.end_run(attempt.span, raised, unusable)
            self._settle(unusable)
        finally:
            self._leave(attempt)

    def _release_unbegun(self, started: list[Attempt]) -> None:
        # A handler may cancel all tasks, before their first step too: then nothing of `_run` runs.
        for attempt in started:
            if attempt.ended or (attempt.task is not None and not attempt.task.done()):
                continue
            claim, outcome = attempt.claim, attempt.stop or Stopped.SHUTDOWN
            now = claim.server_time(time.monotonic())
            self._settle(decide(claim, outcome, attempt.kind.rules, now=now, chance=0.0))
            self._leave(attempt)

    def _leave(self, attempt: Attempt) -> None:
        self._running.pop((attempt.claim.id, attempt.claim.number), None)
        attempt.end()
        self._payloads.leave(attempt.claim)
        if attempt.limited:
            self._deadlines.ended()
        surviving_thread = self._pools.surviving_thread(attempt.claim.id)
        if surviving_thread is None:
            self._free_place(attempt)
        else:  # a thread cannot be ended: its slot stays taken until it ends by itself
            log.warning(
                "the attempt has ended, its thread goes on: the slot stays taken until it returns",
                extra=log_event("job.thread_goes_on"),
            )
            self._pools.places["thread"].outlived_by(surviving_thread)
            surviving_thread.add_done_callback(lambda _: self._free_place(attempt))
        if not self._running:
            self._idle.set()

    def _free_place(self, attempt: Attempt) -> None:
        if attempt.kind.executor != "async":
            self._pools.places[attempt.kind.executor].leave()
        attempt.slots.release()

    async def _attempt(self, attempt: Attempt) -> Outcome:
        claim, kind = attempt.claim, attempt.kind
        needs = self._needs
        if needs.any(attempt) and (ended := await needs.meet(attempt)) is not None:
            return ended
        payload, unreadable = read_payload(attempt)
        if unreadable is not None:
            return unreadable
        if log.isEnabledFor(logging.DEBUG):
            log.debug("%s starts", kind.name, extra=log_event("job.started", job=claim.id))
        outcome = await self._call(attempt, payload)
        return outcome if claim.signals is None else unwound(claim, outcome)

    async def _call(self, attempt: Attempt, payload: object) -> Outcome:
        kind = attempt.kind
        try:
            attempt.entered = True
            if kind.executor == "async":
                return kind.as_outcome(await self._call_in_time(attempt, payload))
            return await self._call_outside_the_loop(attempt, payload)
        except asyncio.CancelledError as error:
            if attempt.stop is not None or attempt.expired:
                uncancel(attempt.task)
                return attempt.stop or out_of_time(attempt.claim)
            # The handler cancelled itself, another one cancelled it, or the loop ends: then nobody
            # reads the outcome.
            uncancel(asyncio.current_task())
            return Stopped.NO_PLACE if attempt.waits else _outcome_of(error)
        except BaseException as error:  # SystemExit from a handler must not end the worker
            outcome = _outcome_of(error)
            # A handler that was stopped and raised while it cleaned up was stopped all the same;
            # what it says on purpose counts, as it does when it is returned.
            return attempt.stop if attempt.stop and isinstance(outcome, Raised) else outcome
        finally:
            attempt.entered = False

    async def _call_outside_the_loop(self, attempt: Attempt, payload: object) -> Outcome:
        """The attempt's time begins when a thread or a process is free."""
        kind, claim = attempt.kind, attempt.claim
        attempt.waits = True
        try:
            async with self._pools.reserve(kind, claim):
                attempt.waits = False
                claim.began = time.monotonic()
                if (late := too_late(claim)) is not None:
                    return late
                answer = await self._call_in_time(attempt, payload)
        except NoPlace:
            claim.began = 0.0
            return attempt.stop or Stopped.NO_PLACE
        if kind.executor != "process":
            return kind.as_outcome(answer)
        outcome: Outcome
        outcome, attempt.left = answer
        return outcome

    async def _call_in_time(self, attempt: Attempt, payload: object) -> Any:
        claim = attempt.claim
        seconds = claim.timeout_seconds
        if claim.finish_by is not None:
            left = (claim.finish_by - claim.server_time(time.monotonic())).total_seconds()
            seconds = left if seconds is None else min(seconds, left)
        if seconds is not None:
            attempt.limited = True
            attempt.due_at = time.monotonic() + seconds
            self._deadlines.add(seconds, attempt)
        if claim.trace is None or (span := self._tracing.start_run(claim)) is None:
            return await self._pools.call(attempt.kind, payload, attempt.job, claim)
        with span as attempt.span:
            return await self._pools.call(attempt.kind, payload, attempt.job, claim)


def _stop(attempts: Iterable[Attempt], why: Stopped) -> None:
    for attempt in attempts:
        attempt.stop = attempt.stop or why
        attempt.wind_down()


def _outcome_of(error: BaseException) -> Outcome:
    outcome = outcome_of_exception(error)
    if isinstance(outcome, Raised):
        log.debug(
            "the handler raised %s",
            type(error).__name__,
            exc_info=error,
            extra=log_event("job.raised"),
        )
    return outcome
