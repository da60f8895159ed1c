"""hybrid-runner sources."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import fields

from hybrid_runner.cli.names import kind_name
from hybrid_runner.cli.output import ago, as_text, print_json, print_table
from hybrid_runner.cli.parsing import Parser, add_common
from hybrid_runner.cli.session import opened, run
from hybrid_runner.display import harmless
from hybrid_runner.model.source_views import SourceView
from hybrid_runner.model.sources import Columns, Words

_LIST = ("ID", "STATE", "TABLE", "KIND", "QUEUE", "QUEUED", "RUNNING", "LATE", "NOTE")
_IN_ORDER = [field.name for what in (Words, Columns) for field in fields(what)]
"""Postgres keeps them by their length."""


def configure(parser: Parser) -> None:
    commands = parser.add_commands()

    listing = commands.add_parser(
        "list",
        help="the attached tables",
        description="The attached tables. Without `list`, too.",
    )
    for either in (parser, listing):
        add_common(either)
        either.run_by(lambda arguments: run(_list(arguments)))

    show = commands.add_parser(
        "show",
        help="everything about one of them",
        description="Everything about one attached table.",
    )
    _add_table(show)
    add_common(show)
    show.run_by(lambda arguments: run(_show(arguments)))


def _add_table(parser: Parser) -> None:
    parser.add_argument("table", metavar="TABLE", help="the table, or the number of the source")
    parser.add_argument(
        "--kind", type=kind_name, help="which one, if the table is attached for several kinds"
    )


async def _list(arguments: argparse.Namespace) -> int:
    async with opened(arguments) as app:
        views = await app.sources()
    if arguments.json:
        print_json([_plain(view) for view in views])
    elif views:
        print_table(_LIST, [_row(view) for view in views], [_colour(view) for view in views])
    else:
        print("no table is attached")
    return 0


async def _show(arguments: argparse.Namespace) -> int:
    async with opened(arguments) as app:
        view = await app.source(arguments.table, kind=arguments.kind)
    if arguments.json:
        print_json(_plain(view))
        return 0
    for name, value in _lines(view):
        print(f"{name:<12} {harmless(value)}")
    return 0


def _text(value: object) -> str:
    if isinstance(value, dict):
        given = [name for name in _IN_ORDER if value.get(name) is not None]
        return ", ".join(f"{name} {as_text(value[name])}" for name in given)
    return value if isinstance(value, str) else as_text(value)


def _plain(view: SourceView) -> dict[str, object]:
    return {"table": view.table, **vars(view), "complaints": view.complaints}


def _row(view: SourceView) -> tuple[str, ...]:
    counts = (str(view.queued), str(view.running), str(view.late))
    note = "; ".join(view.complaints) or view.note or ""
    return (
        str(view.id),
        _state(view),
        harmless(view.table),
        view.kind,
        view.queue,
        *counts,
        harmless(note),
    )


def _state(view: SourceView) -> str:
    if view.detaching_at is not None:
        return "detaching"
    if view.named_now is None:
        return "gone"
    if view.late and len(view.complaints) == 1:
        return "late"
    return "faulty" if view.complaints else "attached"


def _colour(view: SourceView) -> str:
    return {"attached": "green", "detaching": "yellow"}.get(_state(view), "red")


def _lines(view: SourceView) -> Iterator[tuple[str, str]]:
    yield "source", str(view.id)
    yield "table", view.table
    yield "state", _state(view)
    yield "kind", view.kind
    yield "queue", view.queue
    yield "owner", view.owner
    yield "attached", f"{ago(view.attached_at)} by {view.attached_by}"
    yield "jobs", f"{view.queued} queued, {view.running} running"
    if view.late:
        yield "late", f"{view.late} rows, the oldest {ago(view.oldest_late)}"
    for name, value in view.definition.items():
        if name not in ("table", "kind", "queue") and value is not None and value is not False:
            yield name, _text(value)
    yield "triggers", ", ".join(view.triggers) or "none"
    for line in (*view.complaints, *([view.note] if view.note else [])):
        yield "note", line
