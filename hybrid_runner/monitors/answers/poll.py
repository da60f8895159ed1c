"""One poll of services that share an address: one request, and each service's own reading of it."""

from __future__ import annotations

import time
from collections.abc import Container, Sequence
from datetime import datetime

import aiohttp

from hybrid_runner.durations import duration_text
from hybrid_runner.model.monitors import Polled, Service
from hybrid_runner.monitors.answers.dependencies import Parsed, parse_dependencies, remember
from hybrid_runner.monitors.answers.failures import PollFailed, poll_failed
from hybrid_runner.monitors.answers.fetch import REDIRECTS, Move, fetch
from hybrid_runner.monitors.answers.headers import Filled
from hybrid_runner.monitors.answers.judging import Answer, check_expected
from hybrid_runner.monitors.answers.prepared import Preparations, Prepared
from hybrid_runner.monitors.answers.session import Phases
from hybrid_runner.monitors.answers.storable import one_line


async def poll_group(
    session: aiohttp.ClientSession,
    services: Sequence[Service],
    *,
    now: datetime,
    preparations: Preparations | None = None,
    well: Container[int] = (),
    move: Move | None = None,
) -> list[Polled]:
    """What each service's poll found, in the order of the services: their `group_key`s are equal.
    Of those that are `well`, by their ids, items are not read again if they say the same.

    Whatever they answer, and whatever is stored of them, is no exception: it is a failed poll with
    its reason. `now` is Postgres's clock. `move` waits until a redirect's next address may be
    asked. Only a cancellation passes through.
    """
    preparations = preparations or Preparations({})
    results: dict[int, Polled] = {}
    prepared: list[Prepared] = []
    for service in services:
        try:
            prepared.append(preparations.of(service))
        except Exception as error:
            results[service.id] = _failed(service, _of_definition(error), 0)
    if prepared:
        for polled in await _poll(session, prepared, now, preparations, well, move):
            results[polled.service_id] = polled
    return [results[service.id] for service in services]


async def _poll(
    session: aiohttp.ClientSession,
    prepared: Sequence[Prepared],
    now: datetime,
    preparations: Preparations,
    well: Container[int],
    move: Move | None,
) -> list[Polled]:
    """One request, and what it means for each."""
    phases = Phases()
    began = time.perf_counter()
    try:
        request = preparations.request(prepared)
        answer = await fetch(session, request, phases, move)
    except Exception as error:
        failed = poll_failed(error)
        took = round((time.perf_counter() - began) * 1000)
        polls = [_failed(each.service, failed, took) for each in prepared]
    else:
        is_alone = len(prepared) == 1
        polls = [
            _judged(
                each,
                answer,
                request.headers,
                now,
                is_alone=is_alone,
                is_well=is_alone and each.service.id in well,
            )
            for each in prepared
        ]
    return [_with_phases(polls[0], phases), *polls[1:]]


def _judged(
    each: Prepared,
    answer: Answer,
    headers: Filled,
    now: datetime,
    *,
    is_alone: bool,
    is_well: bool,
) -> Polled:
    service = each.service
    try:
        parsed = _parsed(each, answer, now, is_alone=is_alone, is_well=is_well)
    except Exception as error:
        failed = poll_failed(error, headers.hide)
        return _failed(service, failed, answer.latency_ms, answer.certificate_ends_at)
    return Polled(
        service_id=service.id,
        url=service.url,
        latency_ms=answer.latency_ms,
        items=parsed.items,
        warnings=parsed.warnings,
        certificate_ends_at=answer.certificate_ends_at,
        same=parsed.same,
    )


def _parsed(
    each: Prepared, answer: Answer, now: datetime, *, is_alone: bool, is_well: bool
) -> Parsed:
    service = each.service
    if answer.latency_ms > each.timeout * 1000:  # another one's is longer
        raise PollFailed("timeout", f"no answer within {duration_text(service.timeout)}")
    if not 200 <= answer.status <= 299 and not each.decides_status:
        raise _no_success(answer)
    if each.expected is not None:
        check_expected(each.expected, answer, now)
    if each.reading is not None:
        return each.reading.read(answer.json())
    if service.format == "dependencies":
        return _listed(each, answer, is_well=is_well) if is_alone else _read(answer)
    return Parsed(())


def _listed(each: Prepared, answer: Answer, *, is_well: bool) -> Parsed:
    """Nobody else reads this answer."""
    last, standing = each.last, each.service.standing
    if (
        is_well
        and last is not None
        and standing is not None
        and (last.digest, answer.certificate_ends_at)
        == (standing.digest, standing.certificate_ends_at)
    ):
        same = last.read(answer.json())
        if same is not None:
            return Parsed((), same=same)
        answer.read_anew()
    parsed = _read(answer)
    each.last = remember(answer.json(), parsed)
    return parsed


def _read(answer: Answer) -> Parsed:
    return parse_dependencies(answer.json())


def _no_success(answer: Answer) -> PollFailed:
    if answer.status in REDIRECTS:
        location = one_line(answer.headers.get("Location", "nowhere").split("?")[0], 100)
        return PollFailed(
            "redirect",
            f"it answered {answer.status} and sends elsewhere ({location}): poll that, or set"
            " follow",
        )
    return PollFailed("http", f"it answered {answer.status}, no 2xx")


def _of_definition(error: Exception) -> PollFailed:
    if isinstance(error, PollFailed):
        return error
    return PollFailed("definition", str(error))


def _failed(
    service: Service, failed: PollFailed, took: int, ends: datetime | None = None
) -> Polled:
    return Polled(
        service_id=service.id,
        url=service.url,
        latency_ms=took,
        failure=failed.failure,
        error=failed.line,
        certificate_ends_at=ends,
        is_local=failed.is_local,
        is_put_off=failed.is_put_off,
    )


def _with_phases(polled: Polled, phases: Phases) -> Polled:
    polled.phases.update(phases.seconds)
    return polled
