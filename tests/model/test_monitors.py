"""A monitored service under edits, deaths and lost jobs: every interleaving."""

from __future__ import annotations

import pytest

from tests.model.monitors import Rules, explore

PLANS = [
    pytest.param((1,), 0, 0, 0, id="a new service"),
    pytest.param((1, 2, 0), 0, 0, 1, id="another address, and removed"),
    pytest.param((1, 0, 1), 0, 0, 2, id="removed and added while its host gives its job up"),
    pytest.param((1, 2), 1, 1, 0, id="asked for, and a worker dies"),
    pytest.param((1, 0), 0, 2, 0, id="workers that do not know that they are dead"),
    pytest.param((1,), 1, 1, 2, id="a breaker that is probed"),
]


@pytest.mark.parametrize(("edits", "asks", "crashes", "ticks"), PLANS)
def test_no_change_stays_unseen_no_probe_is_sent_twice_and_each_event_is_told_once(
    edits: tuple[int, ...], asks: int, crashes: int, ticks: int
) -> None:
    explored = explore(edits, asks, crashes, ticks)
    assert not explored.story, "\n".join(map(str, explored.story))
    assert explored.worlds > 10


@pytest.mark.parametrize(
    ("rules", "plan", "fault"),
    [
        pytest.param(Rules(signal=False), ((1, 2),), "", id="nobody signals a change"),
        pytest.param(Rules(signal=False), ((1,), 1), "", id="nobody signals who asks"),
        pytest.param(Rules(early=False), ((1, 2),), "", id="a signal during a run is lost"),
        pytest.param(
            Rules(fence=False), ((1,), 0, 1), "told twice", id="a dead worker's round is stored"
        ),
        pytest.param(
            Rules(compare=False), ((1, 2),), "older address", id="the address is not compared"
        ),
        pytest.param(
            Rules(probe_first=False),
            ((1,), 0, 1, 2),
            "two probes",
            id="a probe is written down with its answer",
        ),
        pytest.param(
            Rules(one_job=False), ((1, 2),), "told twice", id="a host has two jobs at a time"
        ),
        pytest.param(
            Rules(open_always=False),
            ((1, 0, 1), 0, 0, 1),
            "",
            id="who adds a service sees a job that is about to end",
        ),
        pytest.param(
            Rules(look_again=False),
            ((1, 0, 1), 0, 0, 1),
            "",
            id="a job ends by what its round saw",
        ),
        pytest.param(
            Rules(wait=False),
            ((1, 0, 1), 0, 0, 1),
            "",
            id="who opens a host sees a job that is ending",
        ),
    ],
)
def test_without_its_rule_there_is_a_fault(
    rules: Rules, plan: tuple[tuple[int, ...]], fault: str
) -> None:
    *_, bad = explore(*plan, rules=rules).story
    assert fault in bad.fault
    assert bool(bad.fault) is bool(fault)
