"""The statements that make a table a source of work, and those that end that.

The templates are in sql/sources; `<<places>>` in them are filled from the source.
"""

from __future__ import annotations

import re

from hybrid_runner.attach.places import value_of
from hybrid_runner.attach.quoting import dollar_quote, identifier
from hybrid_runner.model.sources import Source
from hybrid_runner.storage.queries import template

_PLACE = re.compile(r"<<([^<>]+)>>")
_TRIGGERED = "inserted|updated|deleted|truncated"
_CALLED = "write|rows|want"


def attaching(source: Source) -> tuple[str, ...]:
    """What attaches the table, in one transaction, after its row of hybrid_runner.sources was
    stored; what an earlier call made is replaced. Whoever runs it can act as both owners.
    """
    by_row = "_by_row" if source.by_row else ""
    deletion = source.on_delete == "cancel"
    functions = ["write", "rows", "want", f"inserted{by_row}", "updated"]
    triggers = [f"triggers{by_row}"]
    if deletion:
        functions += [f"deleted{by_row}", "truncated"]
        triggers.append(f"deletion{by_row}")
    return (
        *_acting_as(source.runner_owner),
        *_locking(source.number, source.runner_owner),
        _drop(source.number, f"{_TRIGGERED}|{_CALLED}"),
        _render(source, "outranked"),
        _render(source, "views"),
        *_may_create(source, "GRANT CREATE ON SCHEMA hybrid_runner TO {}"),
        _act_as(source.owner),
        *(_render(source, name) for name in functions),
        _render(source, "callers"),
        *(_render(source, name) for name in triggers),
        _act_as(source.runner_owner),
        *_may_create(source, "REVOKE CREATE ON SCHEMA hybrid_runner FROM {}"),
        _AS_BEFORE,
    )


def dropping_triggers(number: int, runner_owner: str) -> tuple[str, ...]:
    """What ends that rows become jobs: the functions of the triggers go, and the triggers with
    them, on whatever table they are by now.
    """
    return (
        *_acting_as(runner_owner),
        *_locking(number, runner_owner),
        _drop(number, _TRIGGERED),
        _AS_BEFORE,
    )


def dropping_rest(number: int, runner_owner: str) -> tuple[str, ...]:
    """What drops all that is left."""
    prefix = f"hybrid_runner.source_{int(number)}"
    return (
        *_acting_as(runner_owner),
        _drop(number, f"{_TRIGGERED}|{_CALLED}"),
        f"DROP VIEW IF EXISTS {prefix}_jobs, {prefix}_changes, {prefix}_late CASCADE",
        _AS_BEFORE,
    )


_AS_BEFORE = (
    "SELECT pg_catalog.set_config('role',"
    " pg_catalog.current_setting('hybrid_runner.role_before'), true)"
)


def _acting_as(role: str) -> tuple[str, ...]:
    return (
        "SET LOCAL search_path = pg_catalog, pg_temp",
        "SELECT set_config('hybrid_runner.role_before', current_setting('role'), true)",
        _act_as(role),
    )


def _act_as(role: str) -> str:
    return f"SET LOCAL ROLE {identifier(role)}"


def _locking(number: int, runner_owner: str) -> tuple[str, ...]:
    return _fill(template("lock"), {"number": str(int(number))}), _act_as(runner_owner)


def _may_create(source: Source, statement: str) -> tuple[str, ...]:
    """Functions can only belong to who may make some in their schema, be it for a moment."""
    if source.owner == source.runner_owner:
        return ()
    return (statement.format(identifier(source.owner)),)


def _drop(number: int, parts: str) -> str:
    values = {"prefix": f"source_{int(number)}", "parts": parts}
    return _fill(template("drop"), values)


def _render(source: Source, name: str) -> str:
    text = template(name)
    places = {place for place in _PLACE.findall(text) if place != "quote"}
    return _fill(text, {place: value_of(source, place) for place in places})


def _fill(text: str, values: dict[str, str]) -> str:
    filled = values | {"quote": dollar_quote(*values.values())}
    return _PLACE.sub(lambda place: filled[place[1]], text)
