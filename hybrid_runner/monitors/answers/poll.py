"""One poll of services that share an address: one request, and each service's own reading of it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import aiohttp
from yarl import URL

from hybrid_runner.durations import duration_text
from hybrid_runner.errors import ConfigurationError
from hybrid_runner.model.monitors import Polled, Service
from hybrid_runner.monitors.answers.dependencies import Parsed, parse_dependencies
from hybrid_runner.monitors.answers.expect import Node, compile_expect, leaves
from hybrid_runner.monitors.answers.failures import PollFailed, poll_failed
from hybrid_runner.monitors.answers.fetch import REDIRECTS, Move, Request, fetch
from hybrid_runner.monitors.answers.headers import Filled, check_headers, fill_headers
from hybrid_runner.monitors.answers.judging import Answer, check_expected
from hybrid_runner.monitors.answers.mapping import compile_mapping
from hybrid_runner.monitors.answers.reading import Reading
from hybrid_runner.monitors.answers.secrets import Secret
from hybrid_runner.monitors.answers.session import Phases
from hybrid_runner.monitors.answers.storable import one_line
from hybrid_runner.monitors.answers.urls import check_url


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A service of which all that is stored can be used."""

    service: Service
    reading: Reading | None
    """None: another format than `mapping`."""
    expected: Node | None


async def poll_group(
    session: aiohttp.ClientSession,
    services: Sequence[Service],
    *,
    now: datetime,
    secrets: Mapping[str, Secret] | None = None,
    move: Move | None = None,
) -> list[Polled]:
    """What each service's poll found, in the order of the services: their `group_key`s are equal.

    Whatever they answer, and whatever is stored of them, is no exception: it is a failed poll with
    its reason. `now` is Postgres's clock. `move` waits until a redirect's next address may be
    asked. Only a cancellation passes through.
    """
    results: dict[int, Polled] = {}
    prepared: list[_Prepared] = []
    for service in services:
        try:
            prepared.append(_prepare(service))
        except Exception as error:
            results[service.id] = _failed(service, _of_definition(error), 0)
    if prepared:
        for polled in await _poll(session, prepared, now, secrets or {}, move):
            results[polled.service_id] = polled
    return [results[service.id] for service in services]


async def _poll(
    session: aiohttp.ClientSession,
    prepared: Sequence[_Prepared],
    now: datetime,
    secrets: Mapping[str, Secret],
    move: Move | None,
) -> list[Polled]:
    """One request, and what it means for each."""
    phases = Phases()
    began = time.perf_counter()
    try:
        request = _request(prepared, secrets, move)
        answer = await fetch(session, request, phases)
    except Exception as error:
        failed = poll_failed(error)
        took = round((time.perf_counter() - began) * 1000)
        polls = [_failed(each.service, failed, took) for each in prepared]
    else:
        polls = [_judged(each, answer, request.headers, now) for each in prepared]
    return [_with_phases(polls[0], phases), *polls[1:]]


def _prepare(service: Service) -> _Prepared:
    """Editors may have stored anything, by ways around the triggers."""
    check_url(service.url)
    if service.headers is not None:
        check_headers(service.headers)
    reading = None
    if service.format == "mapping":
        if service.mapping is None:
            raise ConfigurationError('mapping is missing, and the format is "mapping"')
        reading = compile_mapping(service.mapping)
    elif service.format not in {"dependencies", "status"}:
        raise ConfigurationError(f"format {str(service.format)[:50]!r} is unknown")
    expected = None if service.expect is None else compile_expect(service.expect)
    return _Prepared(service, reading, expected)


def _request(
    prepared: Sequence[_Prepared], secrets: Mapping[str, Secret], move: Move | None
) -> Request:
    first = prepared[0].service
    try:
        url = URL(first.url).with_fragment(None)
        url.origin()
    except (ValueError, TypeError) as error:
        raise PollFailed("definition", f"url cannot be used: {error}") from None
    return Request(
        url=url,
        headers=fill_headers(first.headers or {}, secrets, url),
        follow=first.follow,
        timeout=max(each.service.timeout for each in prepared),
        reads_body=any(map(_reads_body, prepared)),
        move=move,
    )


def _judged(each: _Prepared, answer: Answer, headers: Filled, now: datetime) -> Polled:
    service = each.service
    try:
        parsed = _parsed(each, answer, now)
    except Exception as error:
        failed = poll_failed(error, headers.hide_text)
        return _failed(service, failed, answer.latency_ms, answer.certificate_ends_at)
    return Polled(
        service_id=service.id,
        url=service.url,
        latency_ms=answer.latency_ms,
        items=parsed.items,
        warnings=parsed.warnings,
        certificate_ends_at=answer.certificate_ends_at,
    )


def _parsed(each: _Prepared, answer: Answer, now: datetime) -> Parsed:
    service = each.service
    if answer.latency_ms > service.timeout.total_seconds() * 1000:  # another one's is longer
        raise PollFailed("timeout", f"no answer within {duration_text(service.timeout)}")
    if not 200 <= answer.status <= 299 and not _decides_status(each):
        raise _no_success(answer)
    if each.expected is not None:
        check_expected(each.expected, answer, now)
    if each.reading is not None:
        return each.reading.read(answer.json())
    if service.format == "dependencies":
        return parse_dependencies(answer.json())
    return Parsed(())


def _reads_body(each: _Prepared) -> bool:
    expected = () if each.expected is None else leaves(each.expected)
    return each.service.format != "status" or any(leaf.kind == "body" for leaf in expected)


def _decides_status(each: _Prepared) -> bool:
    """Where nothing is read of the body, `expect` may want another status than 2xx."""
    return (
        each.service.format == "status"
        and each.expected is not None
        and any(leaf.kind == "status" for leaf in leaves(each.expected))
    )


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
