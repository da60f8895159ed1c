"""What stands in the places of the templates in sql/sources: a word, or a word and the row that it
is about (`new`, `old`), or more.
"""

from __future__ import annotations

from collections.abc import Callable

from hybrid_runner.attach import keys, written
from hybrid_runner.attach.quoting import identifier, literal
from hybrid_runner.model.sources import Expression, Source

_GUARD = """\
-- Who was given the table decides what is computed here, with the rights of who attached it.
    IF (
        SELECT r.rolsuper AND NOT pg_has_role(c.relowner, r.oid, 'MEMBER')
        FROM pg_class AS c
        JOIN pg_roles AS r ON r.rolname = current_user
        WHERE c.oid = coalesce(pg_partition_root(TG_RELID), TG_RELID)
    ) THEN
        RAISE 'hybrid_runner: a superuser attached %, and owns it no more: attach it anew',
            TG_RELID::regclass;
    END IF;"""
_FROM, _UNTIL = "'1970-01-01 00:00:00+00'", "'9998-12-31 00:00:00+00'"
_COMPARED_AS_THEY_ARE = {"text", "varchar", "bpchar", "enum"}


def value_of(source: Source, place: str) -> str:
    """What stands in this place."""
    what, *about = place.split()
    if what in _OF_SOURCE:
        return _OF_SOURCE[what](source)
    if what in _OF_ROW:
        return _OF_ROW[what](source, *about)
    raise LookupError(f"the templates in sql/sources have no place <<{place}>>")


def _over(expression: Expression | None, alias: str) -> str:
    if expression is None:
        return "false"
    return expression.old if alias == "old" else expression.new


def _word(source: Source, alias: str) -> str:
    """Return SQL for the status, and not for all of what others may write there instead."""
    return f"left({alias}.{identifier(source.status.name)}::text, 1000)"


def _application_path(source: Source) -> str:
    """Where the table's own triggers look for what they name without a schema."""
    own = identifier(source.schema)
    path = f'{own}, "$user", public' if source.search_path is None else source.search_path
    # Where it is not named temporary tables come first: a worker could put one in the way.
    return literal(f"{path}, {own}, pg_temp")


def _concerns_us(source: Source) -> str:
    """An update that makes a row wanted, or its job unwanted, or gives it another key."""
    tests = [
        f"({expression.new}) AND ({expression.old}) IS NOT TRUE"
        for expression in (source.condition, source.cancel)
        if expression is not None
    ]
    return " OR ".join([*tests, keys.key_changed(source.key)])


def _concerns_us_at_once(source: Source) -> str:
    return f"({source.condition.new}) OR ({_over(source.cancel, 'new')})"


def _is_running(source: Source, alias: str) -> str:
    return _has_word(source, alias, source.words.running, source.words.snoozed)


def _is_queued(source: Source, alias: str) -> str:
    return _has_word(source, alias, source.words.queued)


def _has_word(source: Source, alias: str, *words: str | None) -> str:
    word = f"{alias}.{identifier(source.status.name)}"
    if source.status.base not in _COMPARED_AS_THEY_ARE:
        word += "::text"
    return f"{word} IN ({', '.join(map(literal, dict.fromkeys(map(written.needed, words))))})"


def _has_no_job(source: Source, alias: str) -> str:
    key = keys.row_key(source.key, alias)
    # Offset: one look by the index for each row, instead of reading all jobs. A late row may show
    # that it is wanted, or runs, when its job has ended.
    return " AND ".join(
        f"NOT EXISTS (SELECT FROM hybrid_runner.source_{source.number}_{view} AS j"
        f" WHERE j.row_key = {key} OFFSET 0)"
        for view in ("jobs", "late")
    )


def _priority(source: Source, alias: str) -> str:
    if source.priority is None:
        return "5::smallint"
    given = _over(source.priority, alias)
    return f"least(greatest(coalesce(({given}), 5), 0), 9)::smallint"


def _run_at(source: Source, alias: str) -> str:
    if source.run_at is None:
        return "clock_timestamp()"
    given = _over(source.run_at, alias)
    return (
        f"CASE WHEN ({given}) IS NULL THEN clock_timestamp() ELSE"
        f" least(greatest(({given}), {_FROM}::timestamptz), {_UNTIL}::timestamptz) END"
    )


def _payload(source: Source, alias: str) -> str:
    """What the job carries until its row is read."""
    pairs = ", ".join(
        f"{literal(column.name)}, {alias}.{identifier(column.name)}"
        for column in source.key
        if column.base != "bytea"
    )
    return f"jsonb_build_object({pairs})"


def _fresh(source: Source, alias: str) -> str:
    """The row as the handler is given it: JSON as text, since jsonb would have to be printed."""
    if source.payload is not None:
        names = ", ".join(f"{alias}.{identifier(name)}" for name in source.payload)
        return f"(SELECT row_to_json(r.*)::text FROM (SELECT {names}) AS r)"  # noqa: S608 - quoted names
    return f"row_to_json({alias}.*)::text"


def _shows(source: Source, word: str) -> str:
    return written.shows(source.words, _word(source, word) if word == "new" else word)


def _shows_to(source: Source, word: str, seen: str) -> str:
    """Return SQL for the state a writer sees; a status changed by a trigger counts as running."""
    made = f"CASE WHEN a.unshown = {seen} THEN 'other' END"
    return f"coalesce(nullif({_shows(source, word)}, {made}), 'running')"


def _is_undone(source: Source, alias: str) -> str:
    """Whether the row has another word than was assigned."""
    assigned = written.assigned(source)
    return f"(a.state <> 'beat' AND {_word(source, alias)} IS DISTINCT FROM ({assigned}))"


def _stale_at(source: Source, alias: str) -> str:
    """When somebody last said that it runs."""
    times = [
        written.time_of(source.columns[name], alias)
        for name in ("heartbeat_at", "started_at")
        if name in source.columns
    ]
    return f"greatest({', '.join(times)})" if times else "NULL::timestamptz"


def _warn(source: Source, rows: str) -> str:
    """Whoever writes rows that cannot be worked on is told so."""
    if keys.is_short(source.key):
        return "NULL;"
    said = literal(
        f"hybrid_runner: rows of {source.table} whose key is longer than {keys.LONGEST} bytes are"
        " not worked on"
    )
    key = keys.row_key(source.key, "new")
    is_long = f"({source.condition.new}) AND octet_length({key}) > {keys.LONGEST}"
    if rows == "inserted":
        is_long = f"EXISTS (SELECT FROM inserted AS new WHERE {is_long})"
    return f"IF {is_long} THEN RAISE WARNING USING MESSAGE = {said}; END IF;"


_OF_SOURCE: dict[str, Callable[[Source], str]] = {
    "prefix": lambda source: f"source_{source.number}",
    "number": lambda source: str(source.number),
    "relation": lambda source: f"{identifier(source.schema)}.{identifier(source.table)}",
    "relation_word": lambda source: literal(
        f"{identifier(source.schema)}.{identifier(source.table)}"
    ),
    "kind": lambda source: literal(source.kind),
    "queue": lambda source: literal(source.queue),
    "owner": lambda source: identifier(source.owner),
    "runner_owner_word": lambda source: literal(source.runner_owner),
    "application_path": _application_path,
    "guard": lambda source: _GUARD if source.owner_is_superuser else "",
    "key_changed": lambda source: keys.key_changed(source.key),
    "concerns_us": _concerns_us,
    "concerns_us_at_once": _concerns_us_at_once,
    "assignments": written.assignments,
}
_OF_ROW: dict[str, Callable[..., str]] = {
    "row_key": lambda source, alias: keys.row_key(source.key, alias),
    "has_key": lambda source, alias, given: keys.has_key(source.key, alias, given),
    "is_row": lambda source, alias, given: keys.is_row(source.key, alias, given),
    "key_fits": lambda source, alias: keys.key_fits(source.key, alias),
    "condition": lambda source, alias: _over(source.condition, alias),
    "cancel": lambda source, alias: _over(source.cancel, alias),
    "word": _word,
    "shows": _shows,
    "shows_to": _shows_to,
    "is_undone": _is_undone,
    "is_queued": _is_queued,
    "is_running": _is_running,
    "has_no_job": _has_no_job,
    "priority": _priority,
    "run_at": _run_at,
    "payload": _payload,
    "fresh": _fresh,
    "stale_at": _stale_at,
    "warn": _warn,
}
