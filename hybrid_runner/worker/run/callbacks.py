"""What makes the callback URLs of a worker's jobs: the secret of its database."""

from __future__ import annotations

from hybrid_runner.errors import ConfigurationError
from hybrid_runner.storage import signal_calls
from hybrid_runner.storage.connections.statements import Fetches
from hybrid_runner.waiting.callback_tokens import JobCallbacks, secret_of_job


class Callbacks:
    """`url` is the setting `http_url`."""

    def __init__(self, url: str | None) -> None:
        self._site = url or ""
        self._secret: bytes | None = None

    async def learn(self, on: Fetches) -> None:
        """Read the secret; once, when the worker starts."""
        self._secret = await signal_calls.callback_secret(on)

    def of(self, job_id: int) -> JobCallbacks:
        """Those of one job: all that is given to its handler."""
        if self._secret is None:
            raise ConfigurationError("the worker has not started: it knows no callback URLs yet")
        return JobCallbacks(job_id, secret_of_job(self._secret, job_id), self._site)
