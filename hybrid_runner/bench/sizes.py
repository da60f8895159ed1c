"""How many of everything: full sizes for figures that mean something, quick ones to see that it
runs.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Sizes:
    """Counts; the names of seconds say so."""

    rounds: int = 3
    """How often what is compared alternates; the median counts."""
    drain_jobs: int = 50_000
    pickups: int = 300
    paced_rates: tuple[int, ...] = (100, 1_000, 5_000)
    paced_seconds: float = 8.0
    paced_connections: int = 16
    trickle_jobs: int = 333
    """Each comes due about once a second."""
    trickle_seconds: float = 5.0
    waiting_jobs: int = 10_000
    waiting_every: tuple[float, ...] = (30.0, 3.0)
    """Seconds from one look of such a job to its next."""
    waiting_seconds: float = 10.0
    monitor_services: int = 10_000
    monitor_hosts: int = 50
    monitor_every: float = 30.0
    """Seconds from one poll of a service to its next."""
    monitor_seconds: float = 30.0
    killed_rate: int = 300
    killed_seconds: float = 60.0
    producer_clients: tuple[int, ...] = (4, 32)
    producer_seconds: float = 5.0
    producer_rounds: int = 2
    horizon_jobs: int = 300_000
    backlog_jobs: int = 1_000_000
    backlog_pickups: int = 200
    attached_rows: int = 20_000
    held_rows: int = 50
    """Rows that an application has open, of so many that are worked on."""
    held_of: int = 500
    held_jobs: int = 2_000
    held_seconds: float = 30.0
    beat_jobs: int = 5_000_000
    beats: int = 300
    idle_seconds: float = 60.0
    bulk_jobs: int = 100_000
    memory_jobs: tuple[int, ...] = (1_000, 10_000)
    forged_floods: int = 10
    """Jobs while as many forged notifications come as one connection can send."""
    fleet_workers: int = 100
    fleet_inserts: int = 20


FULL = Sizes()
QUICK = Sizes(
    rounds=1,
    drain_jobs=10_000,
    pickups=50,
    paced_seconds=1.0,
    trickle_seconds=1.0,
    waiting_jobs=1_000,
    waiting_every=(3.0,),
    waiting_seconds=1.0,
    monitor_services=500,
    monitor_hosts=10,
    monitor_every=5.0,
    monitor_seconds=5.0,
    killed_seconds=10.0,
    producer_seconds=0.6,
    producer_rounds=1,
    horizon_jobs=20_000,
    backlog_jobs=50_000,
    backlog_pickups=20,
    attached_rows=2_000,
    held_rows=10,
    held_of=100,
    held_jobs=200,
    held_seconds=2.0,
    beat_jobs=50_000,
    beats=30,
    idle_seconds=3.0,
    bulk_jobs=10_000,
    memory_jobs=(1_000,),
    forged_floods=3,
    fleet_workers=20,
    fleet_inserts=5,
)
