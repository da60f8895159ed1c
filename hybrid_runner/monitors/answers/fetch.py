"""One request, from the name of the host to the end of the body, and the redirects on its way."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, TypeAlias

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from hybrid_runner.durations import duration_text
from hybrid_runner.errors import ConfigurationError
from hybrid_runner.monitors.answers.bodies import unpacked
from hybrid_runner.monitors.answers.failures import PollFailed, poll_failed
from hybrid_runner.monitors.answers.headers import Filled
from hybrid_runner.monitors.answers.judging import Answer
from hybrid_runner.monitors.answers.session import PHASES, CertifiedResponse, Phases
from hybrid_runner.monitors.answers.storable import one_line
from hybrid_runner.monitors.answers.urls import check_url

Move: TypeAlias = Callable[[URL], Awaitable[None]]
"""Waits until this address may be asked, and no other one."""
REDIRECTS: Final = frozenset((301, 302, 303, 307, 308))


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked, and how far it goes."""

    url: URL
    headers: Filled
    follow: int
    timeout: timedelta
    reads_body: bool
    """Somebody wants to know what is in it."""


async def fetch(
    session: aiohttp.ClientSession, request: Request, phases: Phases, move: Move | None = None
) -> Answer:
    """What was answered in time; PollFailed for everything else, and nothing but that."""
    began = time.perf_counter()
    try:
        async with asyncio.timeout(request.timeout.total_seconds()) as limit:
            answer = await _follow(session, request, phases, move)
    except Exception as error:
        if isinstance(error, TimeoutError) and limit.expired():
            if phases.is_waiting:
                failed = PollFailed("timeout", "too many are asked where it was redirected to")
                failed.is_put_off = True
                raise failed from None
            line = f"no answer within {duration_text(request.timeout)} {phases.doing}"
            # Nobody answers for any name: that is rather this side's than the service's fault.
            raise PollFailed("timeout", line, is_local=phases.is_resolving) from None
        raise poll_failed(error, request.headers.hide) from None
    finally:
        phases.end()
    answer.latency_ms = round((time.perf_counter() - began - phases.waited) * 1000)
    return answer


async def _follow(
    session: aiohttp.ClientSession, request: Request, phases: Phases, move: Move | None
) -> Answer:
    if not request.follow:
        return await _get(session, request, request.url, phases)
    url, seen = request.url, {request.url}
    for left in range(request.follow, -1, -1):
        answer = await _get(session, request, url, phases)
        location = answer.headers.get("Location")
        if answer.status not in REDIRECTS or not location:
            return answer
        if not left:
            break
        url = _next(url, location)
        if url in seen:
            raise PollFailed("redirect", f"redirects go in circles: {shown_url(url)} comes again")
        seen.add(url)
        if move is not None:
            with phases.waiting():
                await move(url)
    raise PollFailed("redirect", f"more redirects than it may follow: {request.follow}")


def _next(url: URL, location: str) -> URL:
    try:
        target = url.join(URL(location)).with_fragment(None)
        check_url(str(target))
    except (ConfigurationError, ValueError, TypeError) as error:
        raise PollFailed(
            "redirect", f"it redirects to {one_line(location, 100)!r}: {error}"
        ) from None
    return target


async def _get(
    session: aiohttp.ClientSession, request: Request, url: URL, phases: Phases
) -> Answer:
    PHASES.set(phases)
    phases.begin("connect")
    response = await session.get(url, allow_redirects=False, headers=request.headers.toward(url))
    ends = response.certificate_ends_at if isinstance(response, CertifiedResponse) else None
    hide = request.headers.hide
    headers = CIMultiDict((name, hide(value)) for name, value in response.headers.items())
    answer = Answer(response.status, headers, b"", 0, ends)
    try:
        phases.begin("body")
        if request.reads_body and response.status not in REDIRECTS:
            body = await _read(response)
            answer.body = hide(body.decode("latin-1")).encode("latin-1")  # the same bytes
    except PollFailed as error:
        answer.unread = error
    finally:
        # What is left of the answer is not waited for: the connection ends.
        response.close()
    return answer


async def _read(response: aiohttp.ClientResponse) -> bytes:
    encoding = ",".join(response.headers.getall("Content-Encoding", ()))
    return unpacked(await response.content.read(), encoding)


def shown_url(url: URL) -> str:
    """Without its query, in which there may be keys."""
    return one_line(str(url.with_query(None).with_user(None)), 100)
