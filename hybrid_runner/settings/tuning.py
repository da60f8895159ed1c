"""Numbers of the doorbell and of batching, found by measuring.

They are not public: they have no environment variables and may change with any version.
`Runner(tuning=Tuning(…))` is for benchmarks and tests.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Self

from pydantic import Field, model_validator

from hybrid_runner.settings.values import Duration, Section, check_order


class Tuning(Section):
    """The words are explained in docs/how-it-works.md."""

    doorbell_rate: Annotated[float, Field(gt=0)] = 150
    """Jobs per second on a queue from which a worker looks by itself and mutes the doorbell."""
    doorbell_rate_window: Duration = timedelta(milliseconds=100)
    """Over how long the rate of jobs is measured; older jobs count less."""
    mute_lease: Annotated[Duration, Field(le=timedelta(minutes=1))] = timedelta(milliseconds=300)
    """How long one mute keeps inserts from ringing; it ends by itself when the worker dies."""
    mute_renewal: Duration = timedelta(milliseconds=100)
    """How often a worker that looks by itself renews its mute."""
    idle_look_share: Annotated[float, Field(gt=0, le=1)] = 0.25
    """Share of its time that an awake worker may spend on looks that find nothing."""
    idle_look_pause_max: Duration = timedelta(milliseconds=5)
    """Longest pause of an awake worker after a look that found nothing."""
    look_batch_rate: Annotated[float, Field(gt=0)] = 2000
    """Jobs per second from which a worker also pauses after a look that found jobs."""
    look_batch_pause: Duration = timedelta(milliseconds=1)
    """Pause after a look that found jobs, above `look_batch_rate`: the next look finds more."""
    settle_batch_pause: Duration = timedelta(milliseconds=5)
    """Pause before outcomes are written, above `doorbell_rate` jobs per second: batches
    get larger.
    """
    frontier_margin: Duration = timedelta(milliseconds=250)
    """Looks re-read this far back, so that inserts that committed late are still found."""
    sweep_every: Duration = timedelta(milliseconds=100)
    """How often an awake worker looks from the start of its lanes."""
    sweep_cost_factor: Annotated[float, Field(ge=0, le=1000)] = 20
    """The next sweep comes no sooner than this many times what the last one cost."""
    full_help_after: Duration = timedelta(milliseconds=20)
    """How long all slots may be taken before sleeping workers are asked for help."""
    saturated_help_after: Duration = timedelta(milliseconds=250)
    """How long looks may keep coming back full before sleeping workers are asked for help."""
    falling_pause_max: Duration = timedelta(seconds=1)
    """Longest pause between looks while falling asleep, until older transactions have ended."""

    @model_validator(mode="after")
    def _check_pairs(self) -> Self:
        check_order(self, "mute_renewal", "mute_lease")
        return self
