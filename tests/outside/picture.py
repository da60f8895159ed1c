"""Draws the trace of a journey as Jaeger's API tells it: `python -m tests.outside.picture
docs/pictures/trace.png`.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

from matplotlib.figure import Figure

from hybrid_runner.embedded import use_embedded
from hybrid_runner.storage.connections.connection import connect
from hybrid_runner.storage.migrations import migrate
from tests.outside.journey import Journey, travelled
from tests.support import jaeger as jaegers
from tests.support import opentelemetry_collector as collectors
from tests.support.jaeger import Span

COLOURS = {"job": "#4b5563", "wait": "#d1a054", "run": "#2f7d6b", "delay": "#a9b1bb"}
FAILED = "#b3413a"


def draw(journey: Journey, path: Path) -> None:
    """A line for each span, below each other as they began."""
    spans = sorted(
        journey.spans, key=lambda span: (span.parent_id != journey.parent_id, span.start, span.end)
    )
    began = min(span.start for span in spans)
    longest = (max(span.end for span in spans) - began) / 1e6
    figure = Figure(figsize=(12, 0.42 * len(spans) + 1.2), dpi=110, layout="constrained")
    axes = figure.add_subplot()
    for row, span in enumerate(spans):
        start, length = (span.start - began) / 1e6, (span.end - span.start) / 1e6
        failed = span.status == "error"
        axes.barh(
            row,
            max(length, longest / 400),
            left=start,
            height=0.55,
            color="#b3413a" if failed else COLOURS[span.name.split()[0]],
        )
        is_late = start + length > 0.62 * longest
        place = start - 0.006 * longest if is_late else start + length + 0.006 * longest
        axes.text(
            place,
            row,
            said(span),
            va="center",
            ha="right" if is_late else "left",
            fontsize=8,
            color="#374151",
        )
    axes.set_yticks(
        range(len(spans)),
        [("" if span.parent_id == journey.parent_id else "    ") + span.name for span in spans],
    )
    axes.set_ylim(len(spans) - 0.4, -0.6)
    axes.set_xlim(-0.01 * longest, 1.04 * longest)
    axes.set_xlabel("ms since the INSERT")
    axes.set_title(f"trace {journey.trace_id}", fontsize=10, loc="left", family="monospace")
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.tick_params(axis="y", length=0, labelsize=9)
    for label in axes.get_yticklabels():
        label.set_horizontalalignment("left")
    axes.tick_params(axis="y", pad=105)
    figure.savefig(path)


def said(span: Span) -> str:
    """What its line says beside it."""
    attributes, word = span.attributes, span.name.split()[0]
    lasted = f"{(span.end - span.start) / 1e6:.1f} ms"
    match word:
        case "job":
            return ""
        case "wait":
            taken = span.events[0][1]
            return (
                f"{lasted}, found by {taken['hybrid_runner.way']}, claimed by"
                f" {taken['hybrid_runner.worker.id']}"
            )
        case "run":
            why = f": {span.status_message}" if span.status_message else ""
            where = span.resource["service.instance.id"]
            return (
                f"{lasted} on {where}, attempt {attributes['hybrid_runner.attempt']},"
                f" {attributes['hybrid_runner.outcome']}{why}"
            )
        case _:
            return f"{lasted}, {attributes['hybrid_runner.delay.why']}"


async def journey(folder: Path) -> Journey:
    """On an embedded Postgres, through the shipped configuration."""
    server = await asyncio.to_thread(use_embedded, folder / "postgres")
    try:
        connection = await connect(server.dsn)
        await migrate(connection)
        with jaegers.started() as jaeger, collectors.started(jaeger.grpc_endpoint) as collector:
            result = await travelled(server.dsn, connection, folder, collector.endpoint, jaeger)
        await connection.close()
        return result
    finally:
        server.close()


def main() -> int:
    """Make one journey and draw it."""
    with tempfile.TemporaryDirectory() as folder:
        draw(asyncio.run(journey(Path(folder))), Path(sys.argv[1]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
