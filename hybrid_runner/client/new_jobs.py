"""Makes new jobs of the arguments of `enqueue`; checks all that can be checked without Postgres."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields as fields_of
from dataclasses import replace
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import groupby
from typing import Any

import orjson

from hybrid_runner.durations import parse_duration
from hybrid_runner.errors import ConfigurationError, EnqueueError, KeyTaken, RunnerError
from hybrid_runner.handlers.kind import NAME, JobKind, check_queue
from hybrid_runner.handlers.registry import Registry
from hybrid_runner.jsontext import NotStorable, check, encode
from hybrid_runner.model.jobs import NewJob
from hybrid_runner.storage.alike import Alike, alike

MOST_AT_ONCE = 100_000
"""Jobs of one `enqueue_many`."""

MOST_BYTES_AT_ONCE = 1_000_000_000
"""Bytes of their payloads: on a message of a gibibyte Postgres ends the connection."""

KeyOf = Callable[[Any], str | None]

_DEFAULTS = {field.name: field.default for field in fields_of(NewJob)}
_WHEN = {"run_at": "delay", "delay": "run_at"}


def new_job(
    registry: Registry, kind: JobKind[Any, Any] | str, payload: Any, options: Mapping[str, Any]
) -> NewJob:
    """Make one job; ConfigurationError says what is wrong."""
    known, name = _known(registry, kind)
    fields = _as_stored(known, name, options)
    [text] = _texts(known, name, [payload])
    job = NewJob(name, text, **fields)
    _check(job)
    return job


def new_jobs(
    registry: Registry,
    kind: JobKind[Any, Any] | str,
    payloads: Iterable[Any],
    key: KeyOf | None,
    options: Mapping[str, Any],
) -> list[Alike]:
    """Make many jobs, in their order; neighbours that are alike are one group."""
    given = list(payloads)
    if len(given) > MOST_AT_ONCE:
        raise EnqueueError(
            f"{len(given):,} jobs at once are too many: send at most {MOST_AT_ONCE:,} a call"
        )
    if key is not None and not callable(key):
        raise ConfigurationError(
            "enqueue_many takes as `key` a function that makes one of a payload"
        )
    known, name = _known(registry, kind)
    fields = _as_stored(known, name, options)
    pattern = NewJob(name, **fields)
    _check(pattern)
    groups: list[Alike] = []
    start = 0
    for ready, together in groupby(given, _is_ready):
        items = list(together)
        if ready:
            asked = (
                fields
                if options.get("queue")
                else {k: v for k, v in fields.items() if k != "queue"}
            )
            groups += _completed(registry, known, items, asked, start)
        else:
            texts = _located_texts(known, name, items, start)
            groups.append(Alike(pattern, texts, key and _keys(key, items, start)))
        start += len(items)
    _check_size(groups)
    return groups


def located(error: RunnerError, groups: Sequence[Alike]) -> RunnerError:
    """The error of a bulk call, naming the item that caused it where that can be told."""
    if isinstance(error, KeyTaken):
        items = [where for where, _, key in _items(groups) if key and _quoted(key) in str(error)]
        return KeyTaken(f"{', '.join(items)}: {error}") if items else error
    for where, payload, _ in _items(groups):
        if said := _not_storable(payload):
            return type(error)(f"{where}: {said}")
    return error


def _is_ready(item: Any) -> bool:
    return isinstance(item, NewJob)


def _known(registry: Registry, kind: object) -> tuple[JobKind[Any, Any] | None, str]:
    if isinstance(kind, JobKind):
        return kind, kind.name
    if not isinstance(kind, str):
        raise ConfigurationError(
            f"enqueue takes a kind's name or a handler of @app.job(…), not {type(kind).__name__}"
        )
    _check_kind(kind)
    return registry.get(kind), kind


def _as_stored(
    known: JobKind[Any, Any] | None, name: str, options: Mapping[str, Any]
) -> dict[str, Any]:
    """The options as fields of a NewJob; its queue is the handler's unless another one is given."""
    stored = {"queue": known.queue if known else "default", **options}
    for what in ("delay", "timeout"):
        if what in stored:
            stored[what] = parse_duration(stored[what])
    if "data" in stored:
        try:
            stored["data"] = encode(stored["data"], "the data")
        except NotStorable as error:
            raise ConfigurationError(f"{name}: {error}") from None
    if known:
        _check_limits(known, stored.get("max_attempts"), stored.get("timeout"))
    return stored


def _check_limits(
    known: JobKind[Any, Any], max_attempts: int | None, timeout: timedelta | None
) -> None:
    """A worker would cut them down without a word."""
    if known.limits == "default":
        return
    for what, asked, most in (
        ("max_attempts", max_attempts, known.max_attempts),
        ("timeout", timeout, known.timeout),
    ):
        if asked is not None and most is not None and asked > most:  # type: ignore[operator]
            raise ConfigurationError(
                f"kind {known.name!r} allows a {what} of {most} at most, not {asked}: raise it in"
                f' @app.job(…), or write limits="default" there'
            )


def _completed(
    registry: Registry,
    known: JobKind[Any, Any] | None,
    jobs: Sequence[NewJob],
    options: Mapping[str, Any],
    start: int,
) -> list[Alike]:
    """NewJobs of the caller, completed by the options and the handler's queue."""
    groups = []
    for pattern, payloads, keys in alike(jobs):
        try:
            job = _with_options(pattern, options) if options else pattern
            if job.queue is None:
                theirs = known if known and known.name == job.kind else registry.get(job.kind)
                job = replace(job, queue=theirs.queue if theirs else "default")
            _check(job)
            if theirs := registry.get(job.kind):
                _check_limits(theirs, job.max_attempts, job.timeout)
        except ConfigurationError as error:
            raise ConfigurationError(f"{_where(start, pattern.key)}: {error}") from None
        if keys:
            _check_keys(keys, start)
        _check_texts(payloads, start)
        groups.append(Alike(job, payloads, keys))
        start += len(payloads)
    return groups


def _with_options(job: NewJob, options: Mapping[str, Any]) -> NewJob:
    for name, value in options.items():
        own = getattr(job, name)
        if own not in (_DEFAULTS[name], value):
            raise ConfigurationError(f"{name} is {own!r} in this NewJob and {value!r} beside it")
        other = _WHEN.get(name)
        if other is not None and getattr(job, other) is not None:
            raise ConfigurationError(f"{other} is given in this NewJob and {name} beside it")
    return replace(job, **options)


def _keys(key: KeyOf, payloads: Sequence[Any], start: int) -> list[str | None]:
    keys = []
    for position, payload in enumerate(payloads, start):
        try:
            keys.append(key(payload))
        except Exception as error:
            error.add_note(f"raised by key(payloads[{position}])")
            raise
    _check_keys(keys, start)
    return keys


def _check_keys(keys: Sequence[str | None], start: int) -> None:
    for position, key in enumerate(keys, start):
        try:
            _check_key(key)
        except ConfigurationError as error:
            raise ConfigurationError(f"{_where(position, None)}: {error}") from None


def _check_texts(payloads: Sequence[object], start: int) -> None:
    for position, payload in enumerate(payloads, start):
        if not isinstance(payload, str):
            said = f"the payload of a NewJob is JSON text, not {type(payload).__name__}"
            raise ConfigurationError(f"{_where(position, None)}: {said}")


def _located_texts(
    known: JobKind[Any, Any] | None, name: str, payloads: Sequence[Any], start: int
) -> list[str]:
    try:
        return _texts(known, name, payloads)
    except ConfigurationError:
        for position, payload in enumerate(payloads, start):
            try:
                _texts(known, name, [payload])
            except ConfigurationError as error:
                raise ConfigurationError(f"{_where(position, None)}: {error}") from None
        raise


def _texts(known: JobKind[Any, Any] | None, name: str, payloads: Iterable[Any]) -> list[str]:
    try:
        if known:
            return known.encode_all(payloads)
        return [encode(payload, "the payload") for payload in payloads]
    except NotStorable as error:
        raise ConfigurationError(f"{name}: {error}") from None


def _items(groups: Sequence[Alike]) -> Iterable[tuple[str, str, str | None]]:
    """Each job's position in the call, its payload and its key."""
    position = 0
    for group in groups:
        for n, payload in enumerate(group.payloads):
            key = group.keys[n] if group.keys else None
            yield _where(position, key), payload, key
            position += 1


def _where(position: int, key: str | None) -> str:
    return f"payloads[{position}]" + (f" (key {key!r})" if key else "")


def _quoted(key: str) -> str:
    """As Postgres writes it in `key 'k' is held by live job 7`."""
    doubled = key.replace("'", "''")
    return f"key '{doubled}' "


def _not_storable(payload: str) -> str | None:
    try:
        check(payload.encode(), "the payload")
        orjson.loads(payload)
    except (NotStorable, ValueError) as error:
        return str(error) if isinstance(error, NotStorable) else f"the payload is not JSON: {error}"
    return None


def _check_size(groups: Sequence[Alike]) -> None:
    size = sum(
        sum(map(_bytes, group.payloads)) + _bytes(group.pattern.data or "") for group in groups
    )
    if size > MOST_BYTES_AT_ONCE:
        raise EnqueueError(
            f"{size:,} bytes of payloads at once are too many: send at most {MOST_BYTES_AT_ONCE:,}"
            " a call"
        )


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode(errors="replace"))


def _check(job: NewJob) -> None:
    """Check all fields but the payload."""
    _check_names(job.kind, job.queue or "default")
    _check_key(job.key)
    _check_number("priority", job.priority, 0, 9)
    _check_number("max_attempts", job.max_attempts, 1, 1000)
    _check_type("delay", job.delay, timedelta)
    _check_type("timeout", job.timeout, timedelta)
    _check_type("data", job.data, str)
    if job.timeout is not None and job.timeout <= timedelta(0):
        raise ConfigurationError("timeout must be more than zero")
    _check_moment("run_at", job.run_at)
    _check_moment("finish_by", job.finish_by)
    if job.run_at is not None and job.delay is not None:
        raise ConfigurationError("give run_at or delay, not both")


@lru_cache(maxsize=1024)
def _check_names(kind: str, queue: str) -> None:
    _check_kind(kind)
    check_queue(queue)


def _check_kind(kind: str) -> None:
    if not NAME.fullmatch(kind):
        raise ConfigurationError(
            f"{kind[:60]!r} is not a kind: use 1 to 128 letters, digits and . _ : / -"
        )


def _check_key(key: object) -> None:
    if key is not None and not (isinstance(key, str) and 1 <= len(key.encode()) <= 512):
        raise ConfigurationError("key must be a text of 1 to 512 bytes")


def _check_number(what: str, number: object, low: int, high: int) -> None:
    if number is not None and not (isinstance(number, int) and low <= number <= high):
        raise ConfigurationError(f"{what} must be {low} to {high}, not {number!r}")


def _check_type(what: str, value: object, wanted: type) -> None:
    if value is not None and not isinstance(value, wanted):
        raise ConfigurationError(
            f"{what} of a NewJob is a {wanted.__name__}, not {type(value).__name__}"
        )


def _check_moment(what: str, moment: object) -> None:
    if moment is not None and not (isinstance(moment, datetime) and moment.tzinfo is not None):
        raise ConfigurationError(
            f"{what} must be a datetime with a time zone: use datetime.now(UTC) or .astimezone()"
        )
