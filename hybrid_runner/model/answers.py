"""What Postgres answers to the calls that store and change jobs."""

from __future__ import annotations

from typing import Literal

EnqueueAnswer = Literal["inserted", "exists", "replaced", "follows", "collected"]
"""exists: another job has the key, and nothing was stored; replaced: the job that waits got the new
values; follows: it waits for the end of the one that has the key; collected: its items were added
to the job that waits.
"""

CancelAnswer = Literal["cancelled", "requested", "finished", "unknown"]
"""requested: the job runs, and its worker was told to stop it; finished: it had ended before."""

RetryAnswer = Literal["queued", "running", "key_taken", "unknown"]
"""queued: it runs again, or now if it was waiting; running: cancel it first; key_taken: another
live job has its key.
"""

AmendAnswer = Literal["amended", "stale", "running", "finished", "unknown"]
"""stale: somebody changed the job since that version."""
