"""Ticks are fired in time by whoever lives, and each rule of the order is there for a fault that is
seen without it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from random import Random

import pytest

from hybrid_runner.policy import tick_order
from tests.model.ticks import HEARTBEAT, Change, Held, Seen, Story, Ticking

AT_ONCE = 0.01
"""Seconds that the statements of this model take together."""
GUARANTEE = HEARTBEAT * 1.05 + AT_ONCE
FLEET = [f"worker-{number}" for number in range(16)]
IN_ORDER = sorted(FLEET, key=lambda worker: tick_order.place(worker, FLEET))
EACH_SECOND = [float(tick) for tick in range(20, 100)]


def play(story: Story) -> Seen:
    seen = Ticking(story).play()
    assert seen.fired.keys() == {*story.ticks, *(change.tick for change in story.changes)}
    return seen


def latest(seen: Seen, ticks: Iterable[float]) -> float:
    return max(seen.late(tick) for tick in ticks)


def stories(what: int) -> Iterator[Story]:
    """Fleets of every size in which about half of the workers die, with ticks of every distance,
    rings that nobody hears, and timers that are late.
    """
    for seed in range(300):
        chance = Random(f"{what} {seed}")
        workers = FLEET[: chance.randint(1, 16)]
        survivor = chance.choice(workers)
        every = chance.choice((0.3, 1.0, 7.0, 33.0))
        yield Story(
            workers,
            [20 + every * tick for tick in range(int(150 / every))],
            200,
            dies={
                worker: chance.uniform(0, 150)
                for worker in workers
                if worker != survivor and chance.random() < 0.5
            },
            changes=[
                Change(at, at + chance.choice((0.0, 0.5, 5.0)), frozenset(workers))
                for at in [chance.uniform(20.5, 150) for _ in range(5)]
            ],
            late_timers={worker: chance.choice((0.0, 0.02, -0.02)) for worker in workers},
            slow_answers={worker: chance.choice((0.002, 0.8)) for worker in workers},
            seed=seed,
        )


def test_while_a_worker_lives_no_tick_is_later_than_a_heartbeat() -> None:
    """Whoever dies when, whatever rings are lost."""
    for story in stories(1):
        seen = play(story)
        late = {tick: seen.late(tick) for tick in seen.fired}
        assert max(late.values()) <= GUARANTEE + 0.8, (story, late)
        assert min(late.values()) >= 0


def test_while_nobody_dies_every_tick_is_fired_at_once_also_without_a_ring() -> None:
    for size in range(1, 17):
        assert latest(play(Story(FLEET[:size], EACH_SECOND, 110)), EACH_SECOND) <= AT_ONCE


def test_a_new_schedule_is_fired_at_once_if_its_ring_is_heard() -> None:
    for size in range(1, 17):
        changes = [Change(at, at + 0.4) for at in (30.0, 33.3, 41.7)]
        seen = play(Story(FLEET[:size], [], 60, changes=changes))
        assert latest(seen, seen.fired) <= AT_ONCE


@pytest.mark.parametrize(("dead", "late"), [(1, tick_order.STAGGER[1]), (2, tick_order.STAGGER[2])])
def test_the_death_of_whoever_is_first_costs_a_moment(dead: int, late: float) -> None:
    """That of the first two a second, until their leases end."""
    dies = dict.fromkeys(IN_ORDER[:dead], 40.5)
    seen = play(Story(FLEET, EACH_SECOND, 140, dies=dies))
    assert latest(seen, EACH_SECOND) <= late + 2 * AT_ONCE
    assert latest(seen, [tick for tick in EACH_SECOND if tick > 90]) <= AT_ONCE


def test_a_fleet_that_begins_anew_fires_with_its_first_heartbeat() -> None:
    ticks = [10.0, 20.0, 30.0]
    seen = play(Story(FLEET, ticks, 100, comes=dict.fromkeys(FLEET, 50.0)))
    assert {seen.fired[tick] for tick in ticks} <= {at for at, _ in seen.looks if at <= 50.1}


def test_three_look_for_a_tick_however_many_workers_there_are() -> None:
    seen = play(Story(FLEET, [50.0, 100.0], 140))
    assert [worker for _, worker in seen.looks] == IN_ORDER[:3] * 2


def test_without_ticks_nobody_looks() -> None:
    assert not play(Story(FLEET, [], 200)).looks


def test_a_row_that_somebody_holds_is_asked_for_a_few_times_between_two_heartbeats() -> None:
    seen = play(Story(FLEET, [20.0], 300, held=[Held(0, 250)]))
    assert seen.late(20.0) <= 230 + GUARANTEE
    assert len(seen.looks) <= 16 * 4 * 25
    assert all(
        sum(at <= look < at + 5 and by == worker for look, by in seen.looks) <= 4
        for at in range(100, 240)
        for worker in FLEET[:3]
    )


# --- each rule is there for a fault that is seen without it


def test_without_looking_when_a_heartbeat_finds_a_late_tick_it_is_never_fired(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = tick_order.pause
    monkeypatch.setattr(
        tick_order, "pause", lambda until, place: whole(until, place) if place < 3 else None
    )
    dies = dict.fromkeys(IN_ORDER[:3], 40.5)
    seen = Ticking(Story(FLEET, EACH_SECOND, 60, dies=dies)).play()
    assert max(seen.fired) < 41


def test_with_another_order_for_each_tick_nobody_knows_of_ticks_between_two_heartbeats(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whoever looks for one learns of the next, and is not the one that looks for that."""
    whole, asked = tick_order.pause, Random(1)
    monkeypatch.setattr(tick_order, "pause", lambda until, _: whole(until, asked.randrange(16)))
    assert latest(play(Story(FLEET, EACH_SECOND, 140)), EACH_SECOND) > 1


def test_without_a_stagger_all_look_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tick_order, "pause", lambda until, _: max(0.0, until) if until else None)
    assert len(play(Story(FLEET, [50.0], 70)).looks) == 16


def test_without_the_second_in_the_order_a_death_costs_a_heartbeat(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tick_order, "STAGGER", (0.0,))
    story = Story(IN_ORDER[:2], EACH_SECOND, 140, dies={IN_ORDER[0]: 40.5})
    assert 2 < latest(play(story), EACH_SECOND) <= GUARANTEE


def test_if_an_old_answer_counted_a_new_schedule_would_wait_for_a_heartbeat(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The answer of a heartbeat that was sent before the change comes after that of the ring."""

    def late() -> float:
        return max(
            Ticking(
                Story(
                    FLEET[:1],
                    [500.0],
                    60,
                    changes=[Change(20 + tick / 4, 21.5 + tick / 4)],
                    slow_answers={FLEET[0]: 1.0},
                )
            )
            .play()
            .late(21.5 + tick / 4)
            for tick in range(80)
        )

    assert late() <= AT_ONCE
    whole = tick_order.TickTimer.learn

    def learn(self: tick_order.TickTimer, until: float | None, place: int, asked_at: float) -> None:
        self._asked_at = float("-inf")
        whole(self, until, place, asked_at)

    monkeypatch.setattr(tick_order.TickTimer, "learn", learn)
    assert late() > 5


def test_without_another_look_after_one_in_vain_a_held_row_waits_for_a_heartbeat(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    story = Story(FLEET[:1], [50.0], 70, held=[Held(49.0, 50.02)])
    assert play(story).late(50.0) < 0.1
    monkeypatch.setattr(tick_order, "IN_VAIN", ())
    assert play(story).late(50.0) > 1
