"""The live view as lines of text, drawn from the figures; nothing here touches a terminal."""

from __future__ import annotations

from hybrid_runner.cli.demo.figures import Figures
from hybrid_runner.cli.output import clip, paint, visible_length
from hybrid_runner.display import percentile

SPARKS = "▁▂▃▄▅▆▇█"
EDGES = (0.5, 1.0, 2.0, 5.0, 20.0)
LABELS = ("under 0.5 ms", "0.5 to 1 ms", "1 to 2 ms", "2 to 5 ms", "5 to 20 ms", "over 20 ms")
_WIDEST = 118


def draw(figures: Figures, width: int, height: int, *, coloured: bool, until: float) -> list[str]:
    """A screen of exactly `height` lines, none wider than `width`."""
    inner = min(width, _WIDEST) - 2
    gap = [""] if height >= 28 else []
    body = [
        _spread(
            paint("hybrid_runner demo", "bold", on=coloured),
            _clock(figures, until, coloured=coloured),
            inner,
        ),
        *gap,
        *_producer(figures, inner, coloured=coloured),
        "",
        *_counts(figures, inner, coloured=coloured),
        "",
        *_pickups(figures, inner, height, coloured=coloured),
        *gap,
        paint("what happened", "dim", on=coloured),
    ]
    room = height - len(body) - 1
    events = list(figures.events)[-room:] if room > 0 else []
    body += [
        f"{paint(f'{at:5.1f} s', 'dim', on=coloured)}  {clip(text, inner - 9)}"
        for at, text in events
    ]
    body = body[: height - 1]
    body += [""] * (height - 1 - len(body))
    body.append(paint("q ends it", "dim", on=coloured))
    return [f" {line}" for line in body]


def _clock(figures: Figures, until: float, *, coloured: bool) -> str:
    return paint(f"{min(figures.elapsed, until):4.1f} of {until:.0f} s", "dim", on=coloured)


def _producer(figures: Figures, inner: int, *, coloured: bool) -> list[str]:
    what = (
        "another process, which knows nothing but SQL:"
        if figures.producing
        else "the other process has ended"
    )
    return [
        paint(what, "dim", on=coloured),
        paint(clip(figures.statement, inner), "cyan", on=coloured),
        paint(clip(figures.latest and f"-> {figures.latest}", inner), "green", on=coloured),
    ]


def _counts(figures: Figures, inner: int, *, coloured: bool) -> list[str]:
    settled = figures.settled
    parts = [
        ("arrived", figures.sent, "blue"),
        ("queued", figures.live["queued"], "blue"),
        ("running", figures.live["running"], "yellow"),
        ("done", figures.done, "green"),
        ("retried", settled.get("retry", 0), "red"),
        ("snoozed", settled.get("snooze", 0), "cyan"),
    ]
    cell = min(16, max(9, inner // len(parts)))
    return [
        paint("".join(name.rjust(cell) for name, _, _ in parts), "dim", on=coloured),
        "".join(
            paint(f"{number:,}".rjust(cell), colour, on=coloured) for _, number, colour in parts
        ),
    ]


def _pickups(figures: Figures, inner: int, height: int, *, coloured: bool) -> list[str]:
    pickups = figures.single()
    head = "from INSERT to handler"
    if pickups:
        head += f"   p50 {percentile(pickups, 0.5):.1f} ms   p99 {percentile(pickups, 0.99):.1f} ms"
    lines = [
        paint(head, "bold", on=coloured),
        paint(sparkline(pickups, inner), "green", on=coloured),
    ]
    if height >= 20:
        lines += [
            f"{label:>12}  {bar}"
            for label, bar in zip(LABELS, histogram(pickups, inner - 20), strict=True)
        ]
    if figures.burst is not None:
        lines.append(clip(f"the burst: {describe_burst(figures)}", inner))
    return lines


def describe_burst(figures: Figures) -> str:
    """How fast the jobs of one INSERT were done."""
    burst = figures.burst
    if burst is None:
        return "not seen"
    return (
        f"{burst.jobs:,} jobs from INSERT to archive in {burst.seconds:.2f} s,"
        f" {burst.jobs / burst.seconds:,.0f} jobs/s"
    )


def sparkline(values: list[float], width: int) -> str:
    """The newest values, each as a bar of one character; a fast one is low."""
    shown = values[-width:]
    return "".join(
        SPARKS[sum(value > edge for edge in (0.5, 0.75, 1, 1.5, 2, 5, 20))] for value in shown
    )


def histogram(values: list[float], width: int) -> list[str]:
    """A bar and a number for each of LABELS."""
    counts = [0] * len(LABELS)
    for value in values:
        counts[sum(value >= edge for edge in EDGES)] += 1
    longest = max(*counts, 1)
    return [
        f"{'█' * round(count / longest * max(1, width - 6))} {count or ''}".strip()
        for count in counts
    ]


def _spread(left: str, right: str, width: int) -> str:
    return left + " " * max(1, width - visible_length(left) - visible_length(right)) + right
