"""POST /signals/{key}: a signal. With the server's token for all jobs that wait for the key; with a
job's callback URL for that job, under one name.
"""

from __future__ import annotations

import asyncio
import logging
import time

import orjson
from aiohttp import web

from hybrid_runner.errors import RunnerError, ValueRefused
from hybrid_runner.jsontext import NotStorable, check
from hybrid_runner.model.signals import LONGEST_KEY, CallbackAnswer
from hybrid_runner.storage import signal_calls
from hybrid_runner.telemetry.log_events import log_event
from hybrid_runner.waiting.callback_tokens import Callback, is_genuine, read_token
from hybrid_runner.web.access import TokenCheck
from hybrid_runner.web.database import PageConnection
from hybrid_runner.web.pages.jobs import unavailable
from hybrid_runner.web.pages.status import as_json

LARGEST_SECRET_AGE = 10.0
"""Seconds after which a token that seems wrong may be due to a new secret, and it is read again."""
_STATUSES: dict[CallbackAnswer, int] = {"sent": 202, "again": 200, "unknown": 404}
_WRONG = "this is no callback of a job here, or no longer; for a key send the token"
_ENDED = "the job of this callback has ended, or is forgotten"
_NO_JSON = 'the body is nothing, or JSON such as {"approved": true}'

log = logging.getLogger("hybrid_runner.web")


class SignalPages:
    """What is sent counts once it is committed."""

    def __init__(self, connection: PageConnection, access: TokenCheck) -> None:
        self._connection = connection
        self._access = access
        self._secret: bytes | None = None
        self._read_at = 0.0
        self._reading = asyncio.Lock()

    def routes(self) -> list[web.AbstractRouteDef]:
        return [web.post("/signals/{key}", self.signal)]

    async def signal(self, request: web.Request) -> web.Response:
        """Send a signal; the body is its payload."""
        text = request.match_info["key"]
        callback = read_token(text)
        if callback is not None and not self._access.brings_token(request):
            return await self._answer(request, callback)
        self._access.require(request)
        return await self._send(request, text)

    async def _send(self, request: web.Request, key: str) -> web.Response:
        if not 1 <= len(key.encode("utf-8", "replace")) <= LONGEST_KEY or "\x00" in key:
            raise web.HTTPBadRequest(
                reason=f"the key of a signal has 1 to {LONGEST_KEY} bytes, and no NUL character"
            )
        payload = await _payload_of(request)
        try:
            number = await signal_calls.send_signal(self._connection, key, payload)
        except ValueRefused as error:
            raise web.HTTPBadRequest(reason=str(error)) from None
        except RunnerError as error:
            raise unavailable(error) from None
        return as_json({"key": key, "outcome": "sent", "id": number}, 202)

    async def _answer(self, request: web.Request, callback: Callback) -> web.Response:
        try:
            if not await self._is_genuine(callback):
                raise web.HTTPUnauthorized(reason=_WRONG)
            payload = await _payload_of(request)
            said = await signal_calls.answer_callback(self._connection, callback, payload)
        except ValueRefused as error:
            raise web.HTTPBadRequest(reason=str(error)) from None
        except RunnerError as error:
            raise unavailable(error) from None
        if said == "unknown":
            raise web.HTTPNotFound(reason=_ENDED)
        if said == "sent":
            log.info(
                "job %d was signalled by its callback %s",
                callback.job_id,
                callback.name,
                extra=log_event("web.callback", job=callback.job_id),
            )
        return as_json({"outcome": said}, _STATUSES[said])

    async def _is_genuine(self, callback: Callback) -> bool:
        """The secret is read when it is needed; again if a code is wrong, but seldom: anybody can
        send wrong ones.
        """
        if self._secret is not None and is_genuine(callback, self._secret):
            return True
        async with self._reading:
            if self._secret is None or time.monotonic() >= self._read_at + LARGEST_SECRET_AGE:
                self._secret = await signal_calls.callback_secret(self._connection)
                self._read_at = time.monotonic()
        return is_genuine(callback, self._secret)


async def _payload_of(request: web.Request) -> str:
    """The body as JSON text; `null` for an empty one."""
    body = await request.read()
    if not body.strip():
        return "null"
    try:
        orjson.loads(body)
        return check(body, "the payload of a signal")
    except orjson.JSONDecodeError:
        raise web.HTTPBadRequest(reason=_NO_JSON) from None
    except NotStorable as error:
        raise web.HTTPBadRequest(reason=str(error)) from None
