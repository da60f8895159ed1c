"""A job that waits for a signal is never left waiting once one is committed: every interleaving."""

from __future__ import annotations

import pytest

from tests.model.signals import Rules, explore

WAYS = pytest.mark.parametrize(
    "takes_all", [pytest.param(False, id="snooze"), pytest.param(True, id="repeat")]
)


@WAYS
@pytest.mark.parametrize(("signals", "timeouts"), [(1, 2), (2, 1), (3, 0)])
def test_no_signal_is_lost_and_none_is_given_twice(
    signals: int, timeouts: int, *, takes_all: bool
) -> None:
    explored = explore(signals, timeouts=timeouts, rules=Rules(takes_all=takes_all))
    assert not explored.story, explored.story
    assert explored.worlds > 500


@WAYS
@pytest.mark.parametrize(("signals", "crashes", "timeouts"), [(2, 1, 0), (1, 2, 1)])
def test_nor_when_workers_die_and_somebody_looks_once_in_a_while(
    signals: int, crashes: int, timeouts: int, *, takes_all: bool
) -> None:
    rules = Rules(guarantee=True, takes_all=takes_all)
    explored = explore(signals, crashes, timeouts, rules)
    assert not explored.story, explored.story


@WAYS
@pytest.mark.parametrize(
    "rules",
    [
        pytest.param(
            Rules(ring_after_commit=False), id="whoever signals wakes before it has committed"
        ),
        pytest.param(Rules(number_after_commit=False), id="a signal is numbered by its INSERT"),
        pytest.param(
            Rules(look_after_number=False), id="the statement that numbers it wakes the job, too"
        ),
        pytest.param(
            Rules(look_after_commit=False), id="the job is put back and nobody looks afterwards"
        ),
        pytest.param(
            Rules(remember_each=False), id="of what was given the highest number is remembered"
        ),
        pytest.param(
            Rules(ring_for_locked=False), id="who came too late to wake it had a lock and is quiet"
        ),
    ],
)
def test_without_its_rule_a_signal_is_lost(rules: Rules, *, takes_all: bool) -> None:
    *_, bad = explore(2, rules=rules._replace(takes_all=takes_all)).story
    assert not bad.fault


def test_highest_numbers_would_do_if_signals_were_committed_in_their_order() -> None:
    """One signal alone cannot be passed by another."""
    assert not explore(1, rules=Rules(remember_each=False)).story


def test_a_death_between_the_commit_and_the_look_is_what_the_guarantee_is_for() -> None:
    assert explore(1, crashes=1).story
    assert not explore(1, crashes=1, rules=Rules(guarantee=True)).story


@WAYS
@pytest.mark.parametrize(
    ("rules", "crashes", "fault"),
    [
        pytest.param(
            Rules(guarantee=True, remember_the_wait=False),
            1,
            "lost with the attempt",
            id="an attempt that begins again takes anew",
        ),
        pytest.param(
            Rules(guarantee=True, compare_versions=False),
            0,
            "woken for nothing",
            id="a job is woken that was put back since",
        ),
        pytest.param(
            Rules(guarantee=True, only_for_signals=False),
            0,
            "woken for nothing",
            id="a job is woken without a signal",
        ),
        pytest.param(
            Rules(number_once=False),
            0,
            "numbered before it was stored",
            id="a signal is numbered again",
        ),
        pytest.param(
            Rules(wake_for_numbered=False),
            0,
            "woken for nothing",
            id="a job is woken for a signal without a number",
        ),
        pytest.param(
            Rules(take_unnumbered=False),
            0,
            "its time-out came",
            id="an attempt is given numbered signals only",
        ),
        pytest.param(
            Rules(guarantee=True, not_once_given=False),
            1,
            "cut short",
            id="a job is woken that was given its signal and failed",
        ),
    ],
)
def test_without_its_rule_a_job_is_given_the_wrong_thing(
    rules: Rules, crashes: int, fault: str, *, takes_all: bool
) -> None:
    timeouts = int(not rules.take_unnumbered)
    *_, bad = explore(2, crashes, timeouts, rules._replace(takes_all=takes_all)).story
    assert fault in bad.fault
