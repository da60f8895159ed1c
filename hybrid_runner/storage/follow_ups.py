"""Outcomes that leave follow-ups: jobs that are stored by the statement that writes the outcome."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta

import orjson

from hybrid_runner.errors import ValueRefused
from hybrid_runner.model.jobs import NewJob
from hybrid_runner.model.settlements import Finished, Repeated

_COLUMNS = ("kind", "queue", "key", "priority", "max_attempts", "traceparent", "max_snoozes")
_TIMES = ("run_at", "finish_by", "start_by")
_DURATIONS = ("delay", "timeout", "max_duration", "finish_within")


def follow_up_texts(
    batch: Sequence[Finished | Repeated], traceparents: Sequence[str | None] | None
) -> list[str]:
    """The follow-ups of a batch as sql/functions/store_follow_ups.sql takes them; those that say
    nothing of a trace are in that of the job they follow.
    ValueRefused if one cannot be written.
    """
    try:
        return [
            _text(
                settlement, job, traceparents[n] if traceparents else settlement.claim.traceparent
            )
            for n, settlement in enumerate(batch)
            for job in settlement.follow_ups
        ]
    except (TypeError, ValueError) as error:
        raise ValueRefused(f"what should follow cannot be written as JSON: {error}") from None


def _text(settlement: Finished | Repeated, job: NewJob, traceparent: str | None) -> str:
    claim = settlement.claim
    columns = {name: getattr(job, name) for name in _COLUMNS}
    columns["traceparent"] = job.traceparent or traceparent
    columns |= dict(_moments(job)) | dict(_durations(job))
    columns["payload"] = orjson.Fragment(job.payload)
    if job.data is not None:
        columns["data"] = orjson.Fragment(job.data)
    columns = {name: value for name, value in columns.items() if value is not None}
    return orjson.dumps({"follows": claim.id, "claim": claim.number} | columns).decode()


def _moments(job: NewJob) -> Iterator[tuple[str, str]]:
    for name in _TIMES:
        if (moment := getattr(job, name)) is not None:
            yield name, moment.isoformat()


def _durations(job: NewJob) -> Iterator[tuple[str, str]]:
    for name in _DURATIONS:
        if (duration := getattr(job, name)) is not None:
            # Without days, which are longer or shorter when clocks change; and PostgreSQL 14 takes
            # no more than two thousand million of anything.
            hours, rest = divmod(duration, timedelta(hours=1))
            yield name, f"{hours} hours {rest.seconds} seconds {rest.microseconds} microseconds"
