"""GET /jobs/{id}, and what changes a job: cancel and retry."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import fields
from datetime import datetime, timedelta
from typing import Any

import orjson
from aiohttp import web

from hybrid_runner.display import moment_text
from hybrid_runner.errors import DatabaseUnavailable, RunnerError
from hybrid_runner.model.answers import CancelAnswer, RetryAnswer
from hybrid_runner.model.jobs import JobSnapshot, parse_job_id
from hybrid_runner.storage import client_calls, stream_calls
from hybrid_runner.web.access import TokenCheck
from hybrid_runner.web.database import PageConnection
from hybrid_runner.web.pages.status import as_json

HIDDEN = (
    "payload",
    "data",
    "key",
    "enqueued_by",
    "waits_for",
    "result",
    "errors",
    "row_key",
    "table_name",
    "behind",
)
"""Columns that only the token reveals: they may hold anything that an application knows."""
_ANYTHING = ("payload", "data", "result", "errors", "progress", "history")
"""Columns in which SQL may have put what JSON can hold and Python cannot."""
_AS_WE_SHOW_THEM = orjson.OPT_NON_STR_KEYS | orjson.OPT_PASSTHROUGH_DATETIME
_STATUSES: dict[CancelAnswer | RetryAnswer, int] = {
    "unknown": 404,
    "finished": 409,
    "running": 409,
    "key_taken": 409,
    "requested": 202,
}


class JobPages:
    """Every answer is read from the database, the source of truth."""

    def __init__(self, connection: PageConnection, access: TokenCheck) -> None:
        self._connection = connection
        self._access = access

    def routes(self) -> list[web.AbstractRouteDef]:
        return [
            web.get("/jobs/{id}", self.show),
            web.post("/jobs/{id}/cancel", self.cancel),
            web.post("/jobs/{id}/retry", self.retry),
        ]

    async def show(self, request: web.Request) -> web.Response:
        """Every column of the job; its key and what it carries only for the token: without, they
        are not read.
        """
        job_id, granted = job_id_of(request), self._access.is_granted(request)
        try:
            columns = await (self._all_columns if granted else self._public_columns)(job_id)
        except RunnerError as error:
            raise unavailable(error) from None
        if columns is None:
            raise unknown(job_id)
        shown = _shown(columns, hidden=() if granted else HIDDEN)
        return as_json(orjson.Fragment(json_text(shown)), 200)

    async def cancel(self, request: web.Request) -> web.Response:
        """End a queued job, or ask a running one to stop; the body may be {"reason": "…"}."""
        self._access.require(request)
        job_id, reason = job_id_of(request), await _reason_of(request)
        try:
            outcome = await client_calls.cancel_job(self._connection, job_id, reason)
        except RunnerError as error:
            raise unavailable(error) from None
        return _said(job_id, outcome)

    async def retry(self, request: web.Request) -> web.Response:
        """Run a finished job again, or a waiting one now."""
        self._access.require(request)
        job_id = job_id_of(request)
        try:
            outcome = await client_calls.retry_job(self._connection, job_id)
        except RunnerError as error:
            raise unavailable(error) from None
        return _said(job_id, outcome)

    async def _all_columns(self, job_id: int) -> dict[str, Any] | None:
        job = await client_calls.get_job(self._connection, job_id)
        if job is None:
            return None
        columns = {each.name: getattr(job, each.name) for each in fields(job)}
        unreadable = columns.pop("unreadable")
        readable = {name: value for name, value in columns.items() if name not in unreadable}
        return readable | ({"unreadable": unreadable} if unreadable else {})

    async def _public_columns(self, job_id: int) -> dict[str, Any] | None:
        return await client_calls.get_public_job(self._connection, job_id)

    async def snapshot(self, job_id: int) -> JobSnapshot:
        found = await self.snapshots([job_id])
        if not found:
            raise unknown(job_id)
        return found[0]

    async def snapshots(self, ids: Sequence[int]) -> list[JobSnapshot]:
        try:
            return await stream_calls.job_snapshots(self._connection, ids)
        except RunnerError as error:
            raise unavailable(error) from None


def job_id_of(request: web.Request) -> int:
    """The id in the path; 404 for what cannot be one."""
    job_id = parse_job_id(request.match_info["id"])
    if job_id is None:
        raise web.HTTPNotFound(reason="the id of a job is a number")
    return job_id


def unknown(job_id: int) -> web.HTTPNotFound:
    return web.HTTPNotFound(reason=f"there is no job {job_id}, live or archived")


def unavailable(error: RunnerError | None = None) -> web.HTTPServiceUnavailable:
    """An answer without the error itself: it may name hosts, and is in the worker's log."""
    if error is None or isinstance(error, DatabaseUnavailable):
        reason = "the database does not answer now: try again"
    else:
        reason = (
            "the database refuses the question, for want of a right perhaps: the worker's log"
            " says why"
        )
    return web.HTTPServiceUnavailable(reason=reason, headers={"Retry-After": "2"})


def _shown(columns: dict[str, Any], hidden: tuple[str, ...]) -> dict[str, Any]:
    unwritable = (
        name for name in _ANYTHING if name in columns and not can_be_written(columns[name])
    )
    hidden += tuple(unwritable)
    shown = {name: value for name, value in columns.items() if name not in hidden}
    return shown | ({"hidden": hidden} if hidden else {})


def _said(job_id: int, outcome: CancelAnswer | RetryAnswer) -> web.Response:
    if outcome == "unknown":
        raise unknown(job_id)
    return as_json({"id": job_id, "outcome": outcome}, _STATUSES.get(outcome, 200))


async def _reason_of(request: web.Request) -> str | None:
    if not request.can_read_body:
        return None
    try:
        reason = orjson.loads(await request.read()).get("reason")
    except (orjson.JSONDecodeError, AttributeError):
        reason = 0
    if reason is not None and (not isinstance(reason, str) or "\x00" in reason):
        raise web.HTTPBadRequest(
            reason='the body is nothing, or JSON such as {"reason": "no longer wanted"}'
        )
    return reason


def can_be_written(value: object) -> bool:
    """Whether `json_text` can; SQL may have put what JSON can hold and Python cannot."""
    try:
        json_text([[value]])  # as deep as it will stand
    except (TypeError, ValueError, RecursionError):
        return False
    return True


def json_text(body: object) -> bytes:
    """JSON of what came from the database, whatever SQL has put there."""
    try:
        return orjson.dumps(body, default=_other, option=_AS_WE_SHOW_THEM)
    except TypeError:  # numbers beyond 64 bits, or nested too deep for orjson: written by SQL
        return json.dumps(body, default=_other, allow_nan=False).encode()


def _other(value: object) -> float | str:
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, datetime):
        return moment_text(value)
    raise TypeError(f"{type(value).__name__} is not for JSON")
