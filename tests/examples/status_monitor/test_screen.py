"""What the example shows on a terminal."""

from __future__ import annotations

import re
from typing import Any

import pytest

from examples.status_monitor.application import Event, State
from examples.status_monitor.view import Seen, in_words, mark, screen


def state(name: str = "orders", **more: Any) -> State:
    values: dict[str, Any] = {
        "active": True,
        "is_polled": True,
        "ok": True,
        "latency_ms": 3,
        "breaker": "closed",
        "error": None,
        "warnings": [],
        "dependencies": 5,
        "unhealthy": 0,
    }
    return State(name, **(values | more))


@pytest.mark.parametrize(
    ("more", "sign", "says"),
    [
        ({}, "●", "5/5 up 3 ms"),
        ({"unhealthy": 1}, "●", "4/5 up 3 ms"),
        ({"warnings": ["a", "b"]}, "!", "5/5 up, 2 warnings"),
        ({"ok": False, "error": "no answer"}, "✗", "no answer"),
        ({"ok": False, "error": "no", "breaker": "open"}, "○", "no"),
        ({"active": False}, "-", "paused"),
        ({"is_polled": False, "ok": None}, "?", "not asked yet"),
    ],
)
def test_each_service_has_a_sign(more: dict[str, Any], sign: str, says: str) -> None:
    assert mark(state(**more))[::2] == (sign, says)


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (20, 5), (300, 100)])
def test_the_screen_fits_the_terminal(size: tuple[int, int]) -> None:
    seen = Seen()
    change = Event(
        1, "status:change", "orders", {"dependencyName": "x", "currentHealthy": True}, ""
    )
    for _ in range(60):
        seen.take(change)
    states = [
        state(f"service-{number}", error="e" * 500, ok=number % 2 == 0) for number in range(40)
    ]
    lines = screen(states, seen, ["moved"], 3, *size)
    assert len(lines) <= size[1]
    assert all(len(plain(line)) <= size[0] for line in lines)


def plain(line: str) -> str:
    return re.sub(r"\x1b\[\d+m", "", line)


def test_an_error_cannot_move_the_cursor_of_who_reads_it() -> None:
    assert "\x1b" not in mark(state(ok=False, error="\x1b[2Jgone")).says


def test_polls_are_no_news_and_what_is_not_told_says_so() -> None:
    assert in_words(Event(1, "poll:complete", "orders", {}, None)) is None
    down = Event(2, "service:down", "orders", {"error": "no answer"}, "maintenance")
    assert in_words(down) == "orders: is down: no answer (not told: maintenance)"
