"""A job that waits for another one's key is never left behind: every interleaving."""

from __future__ import annotations

import pytest

from tests.model.keys import Rules, explore


@pytest.mark.parametrize("calls", [1, 2, 3, 4])
def test_after_the_last_call_a_run_begins_that_sees_it(calls: int) -> None:
    explored = explore(calls)
    assert not explored.story, explored.story
    assert explored.worlds > 10 * 2**calls


@pytest.mark.parametrize("calls", [2, 3])
def test_nor_is_one_left_behind_by_callers_who_roll_back(calls: int) -> None:
    explored = explore(calls, rollbacks=calls, rules=Rules(guarantee=True))
    assert not explored.story, explored.story


def test_a_roll_back_is_what_the_guarantee_is_for() -> None:
    assert explore(2, rollbacks=1).story


@pytest.mark.parametrize(
    "rules",
    [
        pytest.param(Rules(due_when_stored=False), id="what is stored sleeps from the beginning"),
        pytest.param(Rules(due_when_changed=False), id="what is changed sleeps on"),
        pytest.param(Rules(void_claims=False), id="a claim outlives the change of its job"),
        pytest.param(Rules(ask_with_lock=False), id="the holder may end while it is asked for"),
        pytest.param(Rules(look_after_end=False), id="who ends looks before it has ended"),
    ],
)
def test_without_its_rule_a_call_is_lost(rules: Rules) -> None:
    assert explore(3, rules=rules).story
