"""Where jobs speak to, for tests of what runs them."""

from __future__ import annotations

from collections.abc import Awaitable

from hybrid_runner.model.claims import Claim
from hybrid_runner.waiting.callback_tokens import JobCallbacks
from hybrid_runner.worker.run.progress import stored_elsewhere


class QuietPort:
    """Takes all that jobs say, and does nothing with it."""

    def report(self, _claim: Claim, _text: str) -> Awaitable[None]:
        return stored_elsewhere()

    def save(self, claim: Claim, text: str) -> Awaitable[None]:
        claim.data = text
        return stored_elsewhere()

    async def take(self, _claim: Claim, _key: str, _call: int) -> None:
        return None

    def find(self, _kind: str) -> None:
        return None

    def callbacks(self, job_id: int) -> JobCallbacks:
        return JobCallbacks(job_id, b"secret of a test", "")
