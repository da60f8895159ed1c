"""The transitions that run in production, in every interleaving: no committed job is left to the
fallback poll.
"""

from __future__ import annotations

from functools import cache

import pytest

from hybrid_runner.policy.doorbell import Mode, Pause, Wait
from tests.model.explorer import Explored, Explorer
from tests.model.worlds import Chances


@cache
def explore(slots: tuple[int, ...], producers: int, chances: Chances) -> Explored:
    """The full protocol."""
    return Explorer(slots, producers, chances).explore()


def explained(explored: Explored) -> str:
    """How it came to the loss, for whoever reads the failure."""
    return "\n".join(["a committed job is left behind:", *explored.story])


@pytest.mark.parametrize(
    ("slots", "producers", "at_least"),
    [((1, 1), 3, 60_000), ((1, 2), 3, 100_000), ((2, 2), 3, 40_000), ((1, 1, 1), 2, 100_000)],
    ids=str,
)
def test_no_committed_job_waits_beside_a_free_slot(
    slots: tuple[int, ...], producers: int, at_least: int
) -> None:
    explored = explore(slots, producers, Chances())
    assert not explored.bad, explained(explored)
    assert explored.worlds > at_least


@pytest.mark.parametrize(
    ("slots", "chances", "at_least"),
    [
        pytest.param((1, 2), Chances(crashes=1), 30_000, id="a worker dies at any moment"),
        pytest.param(
            (1, 2),
            Chances(losses=1),
            100_000,
            id="a listener is lost, noticed or not, and comes back",
        ),
        pytest.param((1, 2), Chances(leaves=1), 10_000, id="a worker is stopped at any moment"),
        pytest.param(
            (1, 1), Chances(heartbeats=True), 40_000, id="a mute runs out under a slow owner"
        ),
        pytest.param(
            (1, 2),
            Chances(late_commits=True),
            20_000,
            id="transactions commit behind the frontier, and sweeps are too dear",
        ),
        pytest.param((1, 2), Chances(saturation=True), 40_000, id="looks keep coming back full"),
    ],
)
def test_not_even_when(slots: tuple[int, ...], chances: Chances, at_least: int) -> None:
    explored = explore(slots, 2, chances)
    assert not explored.bad, explained(explored)
    assert explored.worlds > at_least


def test_every_mode_and_every_pause_is_walked_through() -> None:
    steps = {worker.step for worker in explore((1, 2), 2, Chances(losses=1)).workers}
    assert {state.mode for state, _ in steps} == set(Mode)
    assert {action.pause for _, action in steps if isinstance(action, Wait)} == set(Pause)
