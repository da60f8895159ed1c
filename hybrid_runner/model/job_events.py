"""One change of a job, as those who follow it are told."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import orjson

from hybrid_runner.display import moment_text
from hybrid_runner.jsontext import decode
from hybrid_runner.model.jobs import JobSnapshot

JobEventName = Literal[
    "queued",
    "running",
    "progress",
    "cancelling",
    "snoozed",
    "retried",
    "completed",
    "failed",
    "cancelled",
]


@dataclass(frozen=True)
class JobEvent:
    """What has happened, and where the job stands since."""

    name: JobEventName
    job: JobSnapshot

    @property
    def progress(self) -> Any:
        """How far its handler said it is: `{"fraction": …, "message": …}`."""
        return decode(self.job.progress)

    def as_sse(self, number: int | None = None) -> bytes:
        """As a server-sent event; its id is the job's version if no other is given."""
        return b"event: %b\nid: %d\ndata: %b\n\n" % (
            self.name.encode(),
            self.job.version if number is None else number,
            self._data,
        )

    @cached_property
    def _data(self) -> bytes:
        """JSON that all who are sent this event share."""
        job = self.job
        shown = job._asdict() | {"run_at": moment_text(job.run_at)}
        if job.progress is not None:
            # as it is: SQL may have put in what no encoder here can write
            shown["progress"] = orjson.Fragment(job.progress)
        return orjson.dumps(shown)
