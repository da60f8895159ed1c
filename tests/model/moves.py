"""What can happen next: to the producers' jobs, to one worker from outside, and what the worker
does itself.

A worker's transitions are those that run in production. What they ask for is performed here, one
write or read of what is shared at a time, and answered.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

from hybrid_runner.policy.doorbell import (
    Answer,
    Check,
    Checked,
    Doorbell,
    ListenerLost,
    Look,
    Looked,
    Marked,
    MarkInFlight,
    Mode,
    Mute,
    Muted,
    MuteMode,
    Open,
    Opened,
    Pause,
    Reason,
    Wait,
    Woken,
)
from tests.model.worlds import (
    DEAD,
    IN_FLIGHT,
    WAITING,
    Bell,
    Chances,
    Job,
    Life,
    ListenerState,
    Phase,
    Rules,
    Scene,
    Worker,
)


class Move(NamedTuple):
    """What follows. `own`: it comes by itself, without a briskness, a slowness or a user that
    nobody promises.
    """

    scene: Scene
    worker: Worker
    own: bool = True
    ring: Reason | None = None
    """What every other worker hears."""
    claims: bool = False


class Moves:
    """The moves of one worker, seen from its place among the others."""

    def __init__(self, doorbell: Doorbell, chances: Chances, rules: Rules) -> None:
        self._step = doorbell.step
        self._chances = chances
        self._rules = rules

    # --- producers

    def of_producers(self, scene: Scene) -> Iterator[tuple[Scene, Reason | None]]:
        """Every next step of a transaction that inserts, and whom it rings for."""
        for job in dict.fromkeys(scene.jobs):  # equal ones do the same
            match job[0]:
                case Phase.NEW:
                    phase = Phase.QUIET if scene.bell is Bell.MUTED else Phase.RINGING
                    yield _moved(scene, job, phase), None
                case Phase.QUIET | Phase.RINGING:
                    ring = Reason.RING if job[0] is Phase.RINGING else None
                    yield _moved(scene, job, Phase.COMMITTED), ring
                    if self._chances.late_commits:
                        yield _moved(scene, job, Phase.LATE), ring

    # --- from outside

    def of(self, scene: Scene, worker: Worker, place: int, *, others_sleep: bool) -> Iterator[Move]:
        """Everything that can happen to this worker, and what it does."""
        if worker.life is Life.ALIVE:
            yield from self._handler_ends(scene, worker)
            yield from self._heartbeat(scene, worker)
            yield from self._crash(scene, worker, place)
            yield from self._leaves(scene, worker, place)
            yield from self._listener(scene, worker)
        if worker.life is not Life.DEAD:
            yield from self._acts(scene, worker, place, others_sleep=others_sleep)

    def _handler_ends(self, scene: Scene, worker: Worker) -> Iterator[Move]:
        if worker.running:
            ended = worker._replace(free=worker.free + 1, running=worker.running - 1)
            was_full = worker.step[0].mode in (Mode.FULL, Mode.DEAF)
            yield Move(scene, heard(ended, Reason.SLOT) if was_full else ended, own=False)

    def _heartbeat(self, scene: Scene, worker: Worker) -> Iterator[Move]:
        crashed = scene.crashes < self._chances.crashes
        if scene.bell is Bell.RUN_OUT and (crashed or self._chances.heartbeats):
            yield Move(scene, heard(worker, Reason.EXPIRED), own=crashed)
        is_overdue = any(phase in WAITING for phase, _ in scene.jobs)
        if crashed and self._rules.overdue and is_overdue and worker.step[0].mode is Mode.ASLEEP:
            yield Move(scene, heard(worker, Reason.SWEEP))

    def _crash(self, scene: Scene, worker: Worker, place: int) -> Iterator[Move]:
        if scene.crashes:
            after = _without(scene, place)._replace(crashes=scene.crashes - 1)
            yield Move(after, DEAD, own=False)
            if (
                worker.stage
            ):  # the server may end the statement that was sent, or end it with the session
                yield Move(
                    after, worker._replace(free=0, running=0, flag=None, life=Life.DYING), own=False
                )

    def _leaves(self, scene: Scene, worker: Worker, place: int) -> Iterator[Move]:
        """Stopped between two actions; whoever may have muted the bell opens it and rings for help,
        in one statement.
        """
        if scene.leaves and not worker.stage:
            after = _without(scene, place)._replace(leaves=scene.leaves - 1)
            if self._rules.leaving_is_told and worker.step[0].mode in (
                Mode.AWAKE,
                Mode.FULL,
                Mode.FALLING,
            ):
                yield Move(after._replace(bell=Bell.OPEN), DEAD, own=False, ring=Reason.HELP)
            else:
                yield Move(after, DEAD, own=False)

    def _listener(self, scene: Scene, worker: Worker) -> Iterator[Move]:
        match worker.listening:
            case ListenerState.HEARS if scene.losses:
                yield Move(
                    scene._replace(losses=scene.losses - 1),
                    worker._replace(listening=ListenerState.BROKEN, listed=False),
                    own=False,
                )
            case ListenerState.BROKEN:  # it rings itself now and then, and misses that ring
                yield Move(
                    scene,
                    _flagged(worker._replace(listening=ListenerState.LOST), Reason.LISTENER),
                )
            case ListenerState.LOST:
                yield Move(
                    scene,
                    _flagged(worker._replace(listening=ListenerState.HEARS), Reason.LISTENER),
                )

    # --- what it does

    def _acts(
        self, scene: Scene, worker: Worker, place: int, *, others_sleep: bool
    ) -> Iterator[Move]:
        action = worker.step[1]
        match action:
            case Wait(pause):
                yield from self._wakes(scene, worker, pause, place)
            case Look(sweep):
                yield from self._looks(scene, worker, place, sweep=sweep)
            case _ if worker.listening is not ListenerState.HEARS and worker.life is Life.ALIVE:
                yield self._answered(
                    scene, _flagged(worker, Reason.LISTENER), place, ListenerLost()
                )
            case Mute(mute_mode, leave_sleepers):
                yield self._mutes(
                    scene,
                    worker,
                    place,
                    mute_mode,
                    leave_sleepers=leave_sleepers,
                    others_sleep=others_sleep,
                )
            case Open(join_sleepers):
                yield self._opens(scene, worker, place, join_sleepers=join_sleepers)
            case MarkInFlight():
                yield self._answered(_witnessed(scene, place), worker, place, Marked(1))
            case Check():
                in_flight = any(bits >> place & 1 for _, bits in scene.jobs)
                yield self._answered(scene, worker, place, Checked(ended=not in_flight))

    def _wakes(self, scene: Scene, worker: Worker, pause: Pause, place: int) -> Iterator[Move]:
        unrenewed = pause is Pause.RENEWAL and not self._rules.full_renews
        if worker.flag is None and (pause is Pause.NEVER or unrenewed):
            return
        woken = Woken(
            worker.flag or Reason.PAUSE,
            hearing=worker.listening is not ListenerState.LOST,
            free=worker.free > 0,
        )
        lowered = worker._replace(flag=None) if self._rules.lower_before_look else worker
        if not self._rules.stay_until_muting:
            lowered = lowered._replace(listed=False)
        yield self._answered(scene, lowered, place, woken)

    def _looks(self, scene: Scene, worker: Worker, place: int, *, sweep: bool) -> Iterator[Move]:
        lowered = worker if self._rules.lower_before_look else worker._replace(flag=None)
        # Own: nobody promises that jobs come briskly, and a sweep is allowed sooner or later.
        brisk = [(False, False, False), (True, False, False), (True, True, False)]
        brisk += [(True, True, True)] if self._chances.saturation else []
        sweeps = (True, False) if sweep and self._chances.late_commits else (sweep,)
        for swept, (is_brisk, renew, saturated) in product(sweeps, brisk):
            after, busy, found = _claimed(
                scene, lowered, late=swept or not self._chances.late_commits
            )
            answer = Looked(found, not busy.free, swept, is_brisk, renew, saturated)
            move = self._answered(after, busy, place, answer)
            yield move._replace(own=not is_brisk and swept is sweep, claims=found)

    def _opens(self, scene: Scene, worker: Worker, place: int, *, join_sleepers: bool) -> Move:
        opened = scene._replace(bell=Bell.OPEN) if self._rules.open_when_falling else scene
        if join_sleepers and worker.stage == 0:
            if self._rules.join_before_opening:
                return Move(scene, worker._replace(stage=1, listed=True))
            return Move(opened, worker._replace(stage=1))
        if join_sleepers and not self._rules.join_before_opening:
            return self._answered(scene, worker._replace(listed=True), place, Opened())
        return self._answered(opened, worker, place, Opened())

    def _mutes(
        self,
        scene: Scene,
        worker: Worker,
        place: int,
        mute_mode: MuteMode,
        *,
        leave_sleepers: bool,
        others_sleep: bool,
    ) -> Move:
        """One statement: others see at its end that the row is gone, and the bell at once."""
        leaves = leave_sleepers and self._rules.leave_when_muting
        left = worker._replace(listed=worker.listed and not leaves)
        muted = scene._replace(bell=Bell.MUTED)
        match worker.stage:
            case 0 if self._rules.mute_before_reading:
                return Move(muted, worker._replace(stage=1))
            case 0:
                return Move(scene, worker._replace(stage=2 if others_sleep else 3))
            case 1 if mute_mode is MuteMode.LOOKING or not others_sleep:
                return self._answered(scene, left, place, Muted(undone=False))
            case 1:
                # It has seen a sleeper, and acts on it later.
                return Move(scene, worker._replace(stage=4))
            case 2 if mute_mode is not MuteMode.LOOKING:
                return Move(muted, worker._replace(stage=4))
            case 2 | 3:
                return self._answered(muted, left, place, Muted(undone=False))
            case 4 if mute_mode is MuteMode.FULL:
                return Move(scene._replace(bell=Bell.OPEN), worker._replace(stage=5))
            case _:
                move = self._answered(scene, heard(left, Reason.HELP), place, Muted(undone=True))
                return move._replace(ring=Reason.HELP)

    def _answered(self, scene: Scene, worker: Worker, place: int, answer: Answer) -> Move:
        """The statement is over; the transition says what comes next."""
        if worker.life is Life.DYING:
            return Move(_without(scene, place), DEAD)
        step = self._step(worker.step[0], answer)
        after = scene if step[0].below is not None else _without(scene, place)
        return Move(after, worker._replace(step=step, stage=0))


def heard(worker: Worker, reason: Reason) -> Worker:
    """The worker after a ring, if one can reach it."""
    is_local = reason in (Reason.SLOT, Reason.EXPIRED, Reason.SWEEP)
    return (
        _flagged(worker, reason)
        if worker.life is Life.ALIVE and (is_local or worker.listening is ListenerState.HEARS)
        else worker
    )


def _flagged(worker: Worker, reason: Reason) -> Worker:
    return worker._replace(flag=reason if worker.flag is None else max(worker.flag, reason))


def _claimed(scene: Scene, worker: Worker, *, late: bool) -> tuple[Scene, Worker, bool]:
    """One look: as many jobs as there are free slots; the late ones last, so that they are left
    behind.
    """
    visible = [
        job for job in scene.jobs if job[0] is Phase.COMMITTED or (late and job[0] is Phase.LATE)
    ]
    taken, jobs = visible[: worker.free], list(scene.jobs)
    for job in taken:
        jobs.remove(job)
    busy = worker._replace(free=worker.free - len(taken), running=worker.running + len(taken))
    return scene._replace(jobs=tuple(jobs)), busy, bool(taken)


def _moved(scene: Scene, job: Job, phase: Phase) -> Scene:
    jobs = list(scene.jobs)
    jobs.remove(job)
    awaited_by = job[1] if phase in IN_FLIGHT else 0
    return scene._replace(jobs=tuple(sorted([*jobs, (phase, awaited_by)])))


def _witnessed(scene: Scene, place: int) -> Scene:
    return scene._replace(
        jobs=tuple(sorted((p, b | 1 << place if p in IN_FLIGHT else b) for p, b in scene.jobs))
    )


def _without(scene: Scene, place: int) -> Scene:
    """Nobody at this place waits for transactions any more."""
    if not any(bits >> place & 1 for _, bits in scene.jobs):
        return scene
    return scene._replace(
        jobs=tuple(sorted((phase, bits & ~(1 << place)) for phase, bits in scene.jobs))
    )
