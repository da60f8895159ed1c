"""How far back a heartbeat looks for jobs that nobody took."""

from __future__ import annotations

from hybrid_runner.policy.lookback import Lookback, Lookbacks

HEALTHY = 0.0001


def asked(lookbacks: Lookbacks, dear: dict[Lookback, float], seconds: int) -> list[Lookback]:
    """What is asked by a heartbeat every ten seconds."""
    said = []
    for now in range(0, seconds, 10):
        lookback = lookbacks.choose(now)
        said.append(lookback)
        lookbacks.took(lookback, 1, dear.get(lookback, HEALTHY), now)
    return said


def test_on_a_healthy_table_it_always_looks_back_to_the_start() -> None:
    assert set(asked(Lookbacks(), {}, 600)) == {Lookback.ALL}


def test_once_old_entries_are_many_it_looks_back_a_little_and_seldom_to_the_start() -> None:
    said = asked(Lookbacks(), {Lookback.ALL: 0.072}, 3600)
    assert set(said) == {Lookback.ALL, Lookback.RECENT}
    assert said.count(Lookback.ALL) <= 12


def test_once_young_entries_are_many_too_it_seldom_looks_back_at_all() -> None:
    dear = {Lookback.ALL: 0.3, Lookback.RECENT: 0.3}
    said = asked(Lookbacks(), dear, 3600)
    assert said.count(Lookback.NONE) > 0.9 * len(said)
    assert said[-70:].count(Lookback.ALL) >= 1
    assert said[-70:].count(Lookback.RECENT) >= 1


def test_one_slow_answer_changes_nothing() -> None:
    """It may have been a lock, a cold cache or a busy processor."""
    lookbacks = Lookbacks()
    lookbacks.took(Lookback.ALL, 1, HEALTHY, 0)
    lookbacks.took(Lookback.ALL, 1, 5.0, 10)
    assert lookbacks.choose(20) is Lookback.ALL


def test_many_queues_may_take_longer() -> None:
    lookbacks = Lookbacks()
    for now in range(0, 100, 10):
        assert lookbacks.choose(now) is Lookback.ALL
        lookbacks.took(Lookback.ALL, 100, 0.005, now)
