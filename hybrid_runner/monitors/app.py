"""What monitors ask of the application that they are a part of: a `Runner` is one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from hybrid_runner.durations import Duration
from hybrid_runner.handlers.declaration import JobDecorator
from hybrid_runner.handlers.kind import JobKind
from hybrid_runner.handlers.reconciler import Reconciler
from hybrid_runner.handlers.registry import Registry
from hybrid_runner.policy.retry import RetryPolicy
from hybrid_runner.settings import Settings
from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.storage.connections.pool import Pool


class App(Protocol):
    """The part of `Runner` that monitors use."""

    settings: Settings
    registry: Registry

    def job(
        self,
        name: str,
        *,
        queue: str = ...,
        max_attempts: int = ...,
        timeout: Duration | None = ...,
        retry: RetryPolicy = ...,
        keep_completed: Duration | None = ...,
    ) -> JobDecorator:
        """Make a function the handler of a kind."""

    def reconcile(
        self, every: Duration, *, kind: JobKind[Any, Any], key: str
    ) -> Callable[[Callable[[], str]], Reconciler]:
        """Restore jobs of a kind that a query says there should be."""

    async def pool(self) -> Pool:
        """The connections that are shared in the running loop."""

    async def connect(self, wait: Duration | None = None) -> Connection:
        """One new connection."""
