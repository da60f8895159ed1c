"""Makes new jobs of the arguments of `enqueue`; checks all that can be checked without Postgres."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields as fields_of
from dataclasses import replace
from itertools import groupby
from typing import Any

from hybrid_runner.durations import parse_duration, parse_positive
from hybrid_runner.errors import ConfigurationError, EnqueueError, KeyTaken, RunnerError
from hybrid_runner.handlers.argument_keys import key_of_job
from hybrid_runner.handlers.key_use import PLAIN_USE, KeyUse, check_key_use
from hybrid_runner.handlers.kind import JobKind
from hybrid_runner.handlers.members import takes_no_list
from hybrid_runner.handlers.new_job_checks import (
    bytes_of,
    bytes_of_job,
    check_fields,
    check_has_data,
    check_key,
    check_kind,
    check_limits,
    check_may_follow,
    check_ranges,
    not_storable,
)
from hybrid_runner.handlers.registry import Registry
from hybrid_runner.jsontext import NotStorable, encode
from hybrid_runner.model.jobs import NewJob
from hybrid_runner.storage.alike import Alike, alike

MOST_AT_ONCE = 100_000
"""Jobs of one `enqueue_many`."""

MOST_BYTES_AT_ONCE = 1_000_000_000
"""Bytes of their payloads: on a message of a gibibyte Postgres ends the connection."""

KeyOf = Callable[[Any], str | None]
Find = Callable[[str], JobKind[Any, Any] | None]
"""Gives the kind of a name, if its code is at hand."""

_DEFAULTS = {field.name: field.default for field in fields_of(NewJob)}
_WHEN = {"run_at": "delay", "delay": "run_at"}


def new_job(
    find: Find,
    kind: JobKind[Any, Any] | str,
    payload: Any,
    options: Mapping[str, Any],
    use: KeyUse = PLAIN_USE,
) -> NewJob:
    """Make one job; ConfigurationError says what is wrong."""
    known, name = _known(find, kind)
    fields = _as_stored(known, name, options)
    check_has_data(known, fields.get("data"))
    if use.collects:
        payload = _as_items(known, payload)
    [text] = _texts(known, name, [payload])
    if known is not None and "key" not in fields:
        fields["key"] = key_of_job(known, text, collects=use.collects)
    job = NewJob(name, text, **fields)
    check_fields(job)
    check_key_use(use, job, job.key)
    return job


def new_follow_up(
    find: Find, kind: JobKind[Any, Any] | str, payload: Any, options: Mapping[str, Any]
) -> NewJob:
    """Make a job that is stored with the end of another one."""
    job = new_job(find, kind, payload, options)
    check_ranges(job)
    return job


def follow_ups(find: Find, jobs: Iterable[NewJob]) -> tuple[NewJob, ...]:
    """Jobs that a handler made itself, or in another process: checked, each with its kind's
    queue.
    """
    checked = tuple(_follow_up(find, job) for job in jobs)
    check_may_follow(len(checked), sum(map(bytes_of_job, checked)))
    return checked


def _follow_up(find: Find, job: NewJob) -> NewJob:
    known = find(job.kind)
    if job.queue is None and known:
        job = replace(job, queue=known.queue)
    check_fields(job)
    _check_texts([job.payload], 0)
    for text, what in ((job.payload, "the payload"), (job.data or "null", "the data")):
        if said := not_storable(text, what):
            raise ConfigurationError(f"{job.kind}: {said}")
    check_ranges(job)
    if known:
        check_limits(known, job.max_attempts, job.timeout)
        check_has_data(known, job.data)
        if job.key is None and known.unique is not None:
            job = replace(job, key=key_of_job(known, job.payload))
    return job


def new_jobs(
    registry: Registry,
    kind: JobKind[Any, Any] | str,
    payloads: Iterable[Any],
    key: KeyOf | None,
    options: Mapping[str, Any],
    use: KeyUse = PLAIN_USE,
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
    known, name = _known(registry.get, kind)
    fields = _as_stored(known, name, options)
    pattern = NewJob(name, **fields)
    check_fields(pattern)
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
            groups += _completed(registry, known, items, asked, start, use)
        else:
            check_has_data(known, pattern.data)
            texts = _located_texts(known, name, items, start, use)
            keys = _keys(key, items, start) if key else _own_keys(known, texts, None, start, use)
            groups.append(Alike(pattern, texts, keys))
        start += len(items)
    _check_key_uses(use, groups)
    _check_size(groups)
    return groups


def located(error: RunnerError, groups: Sequence[Alike]) -> RunnerError:
    """The error of a bulk call, naming the item that caused it where that can be told."""
    if isinstance(error, KeyTaken):
        items = [where for where, _, key in _items(groups) if key and _quoted(key) in str(error)]
        return KeyTaken(f"{', '.join(items)}: {error}") if items else error
    for where, payload, _ in _items(groups):
        if said := not_storable(payload):
            return type(error)(f"{where}: {said}")
    return error


def _is_ready(item: Any) -> bool:
    return isinstance(item, NewJob)


def _known(find: Find, kind: object) -> tuple[JobKind[Any, Any] | None, str]:
    if isinstance(kind, JobKind):
        return kind, kind.name
    if not isinstance(kind, str):
        raise ConfigurationError(
            f"enqueue takes a kind's name or a handler of @app.job(…), not {type(kind).__name__}"
        )
    check_kind(kind)
    return find(kind), kind


def _as_stored(
    known: JobKind[Any, Any] | None, name: str, options: Mapping[str, Any]
) -> dict[str, Any]:
    """The options as fields of a NewJob; its queue is the handler's unless another one is given."""
    stored = {"queue": known.queue if known else None, **options}
    for what in ("delay", "timeout"):
        if what in stored:
            stored[what] = parse_duration(stored[what])
    for what in ("max_duration", "finish_within"):
        if what in stored:
            stored[what] = parse_positive(what, stored[what])
    if "data" in stored:
        write = known.write_memory if known else encode
        try:
            stored["data"] = write(stored["data"], "the data")
        except NotStorable as error:
            raise ConfigurationError(f"{name}: {error}") from None
    if known:
        check_limits(known, stored.get("max_attempts"), stored.get("timeout"))
    return stored


def _completed(
    registry: Registry,
    known: JobKind[Any, Any] | None,
    jobs: Sequence[NewJob],
    options: Mapping[str, Any],
    start: int,
    use: KeyUse,
) -> list[Alike]:
    """NewJobs of the caller, completed by the options, the handler's queue and its keys."""
    groups = []
    for pattern, payloads, keys in alike(jobs):
        try:
            job = _with_options(pattern, options) if options else pattern
            if job.queue is None:
                theirs = known if known and known.name == job.kind else registry.get(job.kind)
                job = replace(job, queue=theirs.queue if theirs else None)
            check_fields(job)
            if theirs := registry.get(job.kind):
                check_limits(theirs, job.max_attempts, job.timeout)
                check_has_data(theirs, job.data)
        except ConfigurationError as error:
            raise ConfigurationError(f"{_where(start, pattern.key)}: {error}") from None
        if keys:
            _check_keys(keys, start)
        _check_texts(payloads, start)
        groups.append(Alike(job, payloads, _own_keys(theirs, payloads, keys, start, use)))
        start += len(payloads)
    return groups


def _own_keys(
    known: JobKind[Any, Any] | None,
    texts: Sequence[str],
    given: Sequence[str | None] | None,
    start: int,
    use: KeyUse,
) -> Sequence[str | None] | None:
    """The keys, with those that the kind makes of payloads without one, if it does."""
    if known is None or known.unique is None:
        return given
    keys = list(given or [None] * len(texts))
    for n, text in enumerate(texts):
        try:
            keys[n] = keys[n] or key_of_job(known, text, collects=use.collects)
        except ConfigurationError as error:
            raise ConfigurationError(f"{_where(start + n, None)}: {error}") from None
    return keys


def _check_key_uses(use: KeyUse, groups: Sequence[Alike]) -> None:
    if use == PLAIN_USE:
        return
    position = 0
    for pattern, payloads, keys in groups:
        for key in keys or [None] * len(payloads):
            try:
                check_key_use(use, pattern, key)
            except ConfigurationError as error:
                raise ConfigurationError(f"{_where(position, key)}: {error}") from None
            position += 1


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
            check_key(key)
        except ConfigurationError as error:
            raise ConfigurationError(f"{_where(position, None)}: {error}") from None


def _check_texts(payloads: Sequence[object], start: int) -> None:
    for position, payload in enumerate(payloads, start):
        if not isinstance(payload, str):
            said = f"the payload of a NewJob is JSON text, not {type(payload).__name__}"
            raise ConfigurationError(f"{_where(position, None)}: {said}")


def _located_texts(
    known: JobKind[Any, Any] | None, name: str, payloads: Sequence[Any], start: int, use: KeyUse
) -> list[str]:
    if use.collects:
        payloads = [_located_items(known, payload, n) for n, payload in enumerate(payloads, start)]
    try:
        return _texts(known, name, payloads)
    except ConfigurationError:
        for position, payload in enumerate(payloads, start):
            try:
                _texts(known, name, [payload])
            except ConfigurationError as error:
                raise ConfigurationError(f"{_where(position, None)}: {error}") from None
        raise


def _located_items(known: JobKind[Any, Any] | None, payload: Any, position: int) -> list[Any]:
    try:
        return _as_items(known, payload)
    except ConfigurationError as error:
        raise ConfigurationError(f"{_where(position, None)}: {error}") from None


def _as_items(known: JobKind[Any, Any] | None, payload: Any) -> list[Any]:
    """What is to be collected: a list is one of items, anything else is an item."""
    if known is not None and takes_no_list(known.payload):
        raise ConfigurationError(
            f"{known.name} takes no list: to collect items, annotate its payload as list[…]"
        )
    items = list(payload) if type(payload) in (list, tuple) else [payload]
    if not items:
        raise ConfigurationError("collect needs at least one item")
    return items


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


def _check_size(groups: Sequence[Alike]) -> None:
    size = sum(
        sum(map(bytes_of, group.payloads)) + bytes_of(group.pattern.data or "") for group in groups
    )
    if size > MOST_BYTES_AT_ONCE:
        raise EnqueueError(
            f"{size:,} bytes of payloads at once are too many: send at most {MOST_BYTES_AT_ONCE:,}"
            " a call"
        )
