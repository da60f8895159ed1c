"""What is stored of a service, checked and compiled; and what its last answer was."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from yarl import URL

from hybrid_runner.errors import ConfigurationError
from hybrid_runner.model.monitors import Service
from hybrid_runner.monitors.answers.address_key import GroupKey, group_key
from hybrid_runner.monitors.answers.dependencies import LastAnswer
from hybrid_runner.monitors.answers.expect import Node, compile_expect, leaves
from hybrid_runner.monitors.answers.failures import PollFailed
from hybrid_runner.monitors.answers.fetch import Request
from hybrid_runner.monitors.answers.headers import check_headers, fill_headers
from hybrid_runner.monitors.answers.mapping import compile_mapping
from hybrid_runner.monitors.answers.reading import Reading
from hybrid_runner.monitors.answers.secrets import Secret
from hybrid_runner.monitors.answers.urls import check_url

_MOST: Final = 20_000
"""Services of which it is kept."""
T = TypeVar("T")


@dataclass(slots=True)
class Prepared:
    """A service of which all that is stored can be used."""

    service: Service
    reading: Reading | None
    """None: another format than `mapping`."""
    expected: Node | None
    reads_body: bool
    decides_status: bool
    """Where nothing is read of the body, `expect` may want another status than 2xx."""
    timeout: float
    """Seconds."""
    request: Request | None = None
    """Of this service alone, once it was made."""
    last: LastAnswer | None = None


class Preparations:
    """Keeps what was prepared of services until somebody writes their rows."""

    def __init__(self, secrets: Mapping[str, Secret]) -> None:
        self._secrets = secrets
        self._prepared: dict[int, Prepared] = {}
        self._keys: dict[int, tuple[int, GroupKey]] = {}

    def of(self, service: Service) -> Prepared:
        """ConfigurationError: by SQL, editors may store anything."""
        kept = self._prepared.get(service.id)
        if kept is not None and kept.service.version == service.version is not None:
            kept.service = service
            return kept
        prepared = _prepare(service)
        if service.version is not None:
            _keep(self._prepared, service.id, prepared)
        return prepared

    def key(self, service: Service) -> GroupKey:
        """What makes it one request with others."""
        kept = self._keys.get(service.id)
        if kept is not None and kept[0] == service.version:
            return kept[1]
        key = group_key(service)
        if service.version is not None:
            _keep(self._keys, service.id, (service.version, key))
        return key

    def request(self, prepared: Sequence[Prepared]) -> Request:
        """What is asked for all of them; PollFailed when it cannot be."""
        first = prepared[0]
        if len(prepared) == 1:
            if first.request is None:
                first.request = _request(prepared, self._secrets)
            return first.request
        return _request(prepared, self._secrets)


def _keep(kept: dict[int, T], service_id: int, what: T) -> None:
    kept.pop(service_id, None)
    kept[service_id] = what
    if len(kept) > _MOST:
        del kept[next(iter(kept))]


def _prepare(service: Service) -> Prepared:
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
    wanted = set() if expected is None else {leaf.kind for leaf in leaves(expected)}
    return Prepared(
        service,
        reading,
        expected,
        reads_body=service.format != "status" or "body" in wanted,
        decides_status=service.format == "status" and "status" in wanted,
        timeout=service.timeout.total_seconds(),
    )


def _request(prepared: Sequence[Prepared], secrets: Mapping[str, Secret]) -> Request:
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
        reads_body=any(each.reads_body for each in prepared),
    )
