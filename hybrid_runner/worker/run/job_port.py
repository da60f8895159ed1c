"""What jobs say while their handlers run, in the worker's own process."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

from hybrid_runner.handlers.kind import JobKind
from hybrid_runner.handlers.registry import Registry
from hybrid_runner.model.claims import Claim
from hybrid_runner.model.signals import Given
from hybrid_runner.waiting.callback_tokens import JobCallbacks
from hybrid_runner.worker.run.callbacks import Callbacks
from hybrid_runner.worker.run.progress import ProgressWriter
from hybrid_runner.worker.run.saves import Saves
from hybrid_runner.worker.waits.taker import SignalTaker


class WorkerPort:
    """The `JobPort` of jobs in the loop and in threads; that of a process ends here."""

    def __init__(
        self,
        progress: ProgressWriter,
        saves: Saves,
        signals: SignalTaker,
        registry: Registry,
        callbacks: Callbacks,
    ) -> None:
        self._progress = progress
        self._saves = saves
        self._signals = signals
        self._registry = registry
        self._callbacks = callbacks

    def report(self, claim: Claim, text: str) -> Awaitable[None]:
        return self._progress.report(claim, text)

    def save(self, claim: Claim, text: str) -> Awaitable[None]:
        return self._saves.save(claim, text)

    def take(self, claim: Claim, key: str, call: int) -> Awaitable[Given | None]:
        return self._signals.take(claim, key, call)

    def find(self, kind: str) -> JobKind[Any, Any] | None:
        return self._registry.get(kind)

    def callbacks(self, job_id: int) -> JobCallbacks:
        return self._callbacks.of(job_id)
