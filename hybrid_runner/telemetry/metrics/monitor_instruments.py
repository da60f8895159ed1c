"""The metrics about monitored services; part of the table in instruments.py."""

from __future__ import annotations

from typing import Final

from hybrid_runner.telemetry.metrics.instrument import (
    FAST,
    Instrument,
    Merge,
    counter,
    gauge,
    histogram,
)

MONITOR_POLLS = counter(
    "monitor_polls",
    "{poll}",
    ("outcome",),
    "Polls of monitored services, by what came of them: ok; http (a status that is not 2xx),"
    " timeout, dns, tls, refused, network, redirect, address, too_large, parse, expect, secret or"
    " definition, all of which are failed polls; missed, the whole worker had no network, or too"
    " many hosts hang, which counts as no failure.",
    "C2",
)
MONITOR_POLL_DURATION = histogram(
    "monitor_poll_duration_seconds",
    "s",
    ("phase",),
    "How long requests to services took, by phase: resolve (the name), connect (TLS included),"
    " first_byte and body; a request that several services share counts once.",
    "C2",
    FAST,
)
MONITOR_HOST_WAIT = histogram(
    "monitor_host_wait_seconds",
    "s",
    (),
    "How long polls waited for a place, since so many requests to their host were on their way.",
    "C5",
    FAST,
)
MONITOR_COALESCED = counter(
    "monitor_coalesced_polls",
    "{poll}",
    (),
    "Polls that needed no request of their own: another service has the same address.",
    "C6",
)
MONITOR_EVENTS = counter(
    "monitor_events",
    "{event}",
    ("kind",),
    "Events of monitored services that were stored, by kind.",
    "C12",
)

# What one worker of the fleet measures for all: read with max.

MONITOR_SERVICES = gauge(
    "monitor_services",
    "{service}",
    ("breaker",),
    "Active services by the state of their breaker: closed, open or half_open.",
    "C3",
    Merge.HIGHEST,
)
MONITOR_DOWN = gauge(
    "monitor_services_down", "{service}", (), "Active services that are down.", "C9", Merge.HIGHEST
)
MONITOR_WARNED = gauge(
    "monitor_services_warned",
    "{service}",
    (),
    "Active services of whose last answer a part was not understood: a mapping has stopped fitting,"
    " perhaps.",
    "C7",
    Merge.HIGHEST,
)
MONITOR_LATE = gauge(
    "monitor_services_late",
    "{service}",
    (),
    "Active services whose next poll was due more than 10 s ago.",
    "C1",
    Merge.HIGHEST,
)
MONITOR_LATE_OLDEST = gauge(
    "monitor_services_late_oldest_seconds",
    "s",
    (),
    "For how long the poll has been due that has been so for longest; 0 if none is late.",
    "C1",
    Merge.HIGHEST,
)
MONITOR_UPKEEP_AGE = gauge(
    "monitor_upkeep_age_seconds",
    "s",
    (),
    "How long ago the upkeep of monitors ended: partitions, roll-up, retention.",
    "C11",
    Merge.HIGHEST,
)

INSTRUMENTS: Final = tuple(
    value for value in tuple(globals().values()) if isinstance(value, Instrument)
)
