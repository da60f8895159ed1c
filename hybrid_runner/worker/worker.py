"""A worker: how it is started and stopped, and what can be asked of it."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import timedelta
from functools import partial
from typing import Self

from hybrid_runner.handlers.counted_fields import counted_fields
from hybrid_runner.handlers.registry import Registry
from hybrid_runner.model.jobs import Keep
from hybrid_runner.settings import Settings
from hybrid_runner.telemetry.log_events import log_event
from hybrid_runner.telemetry.logs.setup import is_watched
from hybrid_runner.telemetry.metrics.counters import Counters
from hybrid_runner.telemetry.metrics.values import merged
from hybrid_runner.telemetry.tracing.current import instrumentation_suppressed
from hybrid_runner.telemetry.tracing.export import spans_dropped
from hybrid_runner.worker.identity import Identity
from hybrid_runner.worker.report.job_counts import JobCounts
from hybrid_runner.worker.report.job_log import EVERY, JobLog, tell_start
from hybrid_runner.worker.report.snapshot import snapshot
from hybrid_runner.worker.report.status import WorkerStatus
from hybrid_runner.worker.shutdown import Budget, Shutdown
from hybrid_runner.worker.tasks import Tasks
from hybrid_runner.worker.wiring import Reports, wire

log = logging.getLogger("hybrid_runner.worker")


class Worker:
    """Claims from its queues and runs what it claims, until it is stopped."""

    def __init__(
        self,
        dsn: str,
        settings: Settings,
        registry: Registry,
        queues: Mapping[str, int],
        worker_id: str,
    ) -> None:
        self._dsn = dsn
        self._settings = settings
        self._registry = registry
        self._slots = dict(queues)
        self._identity = Identity(worker_id, settings.work.lease)
        self._tasks = Tasks(lambda: self.id)
        counters = Counters(queues, [(kind.queue, kind.name) for kind in registry], spans_dropped)
        for kind in registry:
            if kind.memory is not None:
                counters.waiting.start_series(kind.name, counted_fields(kind.memory.adapter))
        self._reports = Reports(JobCounts(), counters, JobLog(show_first=is_watched()))
        self._stopping = False

    @property
    def id(self) -> str:
        """The id in the table of workers. It changes if other workers declared this one dead."""
        return self._identity.id

    async def start(self) -> None:
        """Open the queues, register, and start all loops; raises when Postgres refuses."""
        settings, registry = self._settings, self._registry
        self._station, self._reactions, progress, self._saves, waker, callbacks, row_beats = wire(
            self._dsn, settings, registry, self._slots, self._identity, self._tasks, self._reports
        )
        usual = Keep(
            settings.retention.keep_completed,
            settings.retention.keep_failed,
            settings.retention.keep_cancelled,
        )
        try:
            with instrumentation_suppressed():
                await self._station.register(
                    settings.polling.hybrid_poll_cap,
                    registry.keeps(usual),
                    registry.declared(),
                    registry.schedules,
                )
                await callbacks.learn(self._station.connections.settles)
        except BaseException:
            await self._station.retract()
            raise
        station, reactions, start_loop = self._station, self._reactions, self._tasks.loop
        told = reactions.on_batch_settled, reactions.on_room
        start_loop("settler", partial(station.settler.usual.run, *told))
        start_loop("row settler", partial(station.settler.of_rows.run, *told))
        start_loop("progress", progress.run)
        start_loop("saves", self._saves.run)
        start_loop("waker", waker.run)
        start_loop("listener", partial(station.listener.run, reactions.on_turn))
        for name, queue in station.queues.items():
            start_loop(f"claimer of {name}", queue.claimer.run)
            start_loop(f"poller of {name}", queue.poller.run)
        self._tasks.every("row heartbeats", settings.work.row_heartbeat, row_beats.beat)
        self._tasks.every("job log", EVERY, self._reports.job_log.summarise)
        self._identity.allow_claims()
        station.membership.start(reactions)
        tell_start(self.id, self._slots, registry, settings.work.thread_slots)

    async def stop(self, grace: timedelta | None = None) -> None:
        """Stop within the grace and a few seconds: see `shutdown.py`."""
        if self._stopping:
            return
        self._stopping = True
        self._tasks.expect_ends()
        budget = Budget(self._settings.work.grace if grace is None else grace)
        log.info(
            "worker %s stops: %d jobs are running",
            self.id,
            len(self._station.executor.running),
            extra=log_event("worker.stopping"),
        )
        with instrumentation_suppressed():
            await Shutdown(self._station, self._tasks, self._reports.job_log, budget).run()
        self._saves.close()  # threads that go on may wait for it
        log.info("worker %s has stopped", self.id, extra=log_event("worker.stopped"))

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    # --- what others see

    def status(self) -> WorkerStatus:
        return snapshot(
            self._station,
            self._reports.job_counts,
            stopping=self._stopping,
            ended_loops=self._tasks.ended,
            metric_values=merged(
                [
                    self._reports.counters.metric_values(),
                    *(report.metric_values() for report in self._registry.reports),
                ]
            ),
        )

    async def hearing(self) -> None:
        """Wait until the listener is connected and hears rings."""
        await self._station.listener.until_hearing()

    async def settled(self, count: int) -> None:
        """Wait until so many jobs have ended in this worker, in any final state."""
        await self._reports.job_counts.until_ended(count)

    async def idle(self) -> None:
        """Wait until there is no reason to look, nothing runs and all outcomes are written."""
        await self._station.idle()
