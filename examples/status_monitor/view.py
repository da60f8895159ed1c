"""All of it on a terminal: what each service says, and below it what was told."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from typing import NamedTuple

from examples.status_monitor.application import Event, State
from hybrid_runner.display import one_line

_CELL = 38
_COLOURS = {"green": 32, "yellow": 33, "red": 31, "dim": 2, "bold": 1}
_WORDS = {
    "service:down": "is down: {error}",
    "service:up": "is up again",
    "circuit:open": "breaker opens: it is left alone for a while",
    "circuit:close": "breaker closes",
    "service:started": "is polled from now on",
    "service:stopped": "is polled no more",
    "dependency:gone": "no longer mentions {dependencyName}",
}


class Seen:
    """What has happened so far."""

    def __init__(self) -> None:
        self.events: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()
        """Failed polls of each service."""
        self.lines: deque[str] = deque(maxlen=50)

    def take(self, event: Event) -> str | None:
        """The event in words, if it is news."""
        self.events[event.kind] += 1
        if event.kind == "poll:error":
            self.failed[event.service] += 1
        if (words := in_words(event)) is not None:
            self.lines.append(words)
        return words


class Mark(NamedTuple):
    sign: str
    colour: str
    says: str


def in_words(event: Event) -> str | None:
    """None: polls are too many to be told one by one."""
    if event.kind == "status:change":
        payload = event.payload
        words = f"{payload['dependencyName']} is {'up' if payload['currentHealthy'] else 'down'}"
    elif event.kind in _WORDS:
        words = _WORDS[event.kind].format_map(Counter[str]() | event.payload)
    else:
        return None
    quiet = f" (not told: {event.suppressed})" if event.suppressed else ""
    return one_line(f"{event.service}: {words}{quiet}")


def mark(state: State) -> Mark:
    """How it is shown."""
    if not state.active:
        return Mark("-", "dim", "paused")
    if not state.is_polled:
        return Mark("?", "dim", "not asked yet")
    if not state.ok:
        # Left alone for a while: its breaker is open.
        return Mark("✗" if state.breaker == "closed" else "○", "red", one_line(state.error or ""))
    healthy = f"{state.dependencies - state.unhealthy}/{state.dependencies} up"
    if state.warnings:
        count = len(state.warnings)
        return Mark("!", "yellow", f"{healthy}, {count} warning{'s' if count > 1 else ''}")
    return Mark("●", "yellow" if state.unhealthy else "green", f"{healthy} {state.latency_ms} ms")


def screen(
    states: Sequence[State], seen: Seen, edits: Sequence[str], told: int, width: int, height: int
) -> list[str]:
    """Lines for a terminal of that size: services in columns, then the newest news."""
    columns = max(1, width // _CELL)
    cell = max(10, width // columns)
    rows = -(-len(states) // columns)
    lines = [headline(states, seen, told, width), ""]
    for row in range(rows):
        cells = [_cell(state, cell) for state in states[row::rows]]
        lines.append("".join(cells))
    room = height - len(lines) - 2
    if room > 1:
        news = [f"  {line}"[:width] for line in list(seen.lines)[-(room - 1) :]]
        last = f"the shop: {edits[-1]}" if edits else "the shop has not changed its list yet"
        lines += ["", paint(last[:width], "bold"), *news]
    return lines[:height]


def headline(states: Sequence[State], seen: Seen, told: int, width: int) -> str:
    marks = Counter(mark(state).sign for state in states)
    text = (
        f"{len(states)} services: ● {marks['●'] + marks['!']} answer, ✗ {marks['✗']} do not,"
        f" ○ {marks['○']} are left alone; {seen.events['status:change']} changes, {told} told"
    )
    return paint(text[:width], "bold")


def _cell(state: State, width: int) -> str:
    sign, colour, says = mark(state)
    text = f"{state.name:14}{says}"
    text = (text if len(text) < width - 2 else text[: width - 4] + "…").ljust(width - 2)
    return paint(sign, colour) + " " + (paint(text, "dim") if colour == "dim" else text)


def paint(text: str, colour: str) -> str:
    return f"\x1b[{_COLOURS[colour]}m{text}\x1b[0m"
