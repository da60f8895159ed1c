"""A job of a newcomer's kind never waits beside it, in every interleaving."""

from __future__ import annotations

import pytest

from tests.model.newcomers import Rules, explore


@pytest.mark.parametrize("beating", [False, True])
def test_job_of_newcomers_kind_never_waits_beside_it(*, beating: bool) -> None:
    explored = explore(beating=beating)
    assert not explored.story, "\n".join(map(str, explored.story))
    assert explored.worlds > 100


@pytest.mark.parametrize("beating", [False, True])
def test_forged_messages_leave_no_job_waiting(*, beating: bool) -> None:
    explored = explore(2, beating=beating)
    assert not explored.story, "\n".join(map(str, explored.story))
    assert explored.worlds > 5_000


@pytest.mark.parametrize(
    ("rules", "forged"),
    [
        pytest.param(Rules(asks=False), 0, id="it does not ask by a heartbeat"),
        pytest.param(Rules(asks_anew=False), 0, id="an older heartbeat will do"),
        pytest.param(Rules(unmutes=False), 0, id="its mute goes on"),
        pytest.param(Rules(believes_heartbeats_alone=False), 1, id="a message is believed"),
    ],
)
def test_without_its_rule_the_job_waits(rules: Rules, forged: int) -> None:
    assert explore(forged, beating=True, rules=rules).story
