"""F4: which trace a job belongs to is the same for whoever asks, and nobody has to write it down
first.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from opentelemetry.sdk.trace.sampling import (
    ALWAYS_OFF,
    ALWAYS_ON,
    Decision,
    ParentBased,
    Sampler,
    SamplingResult,
    TraceIdRatioBased,
)

from hybrid_runner.model.claims import Claim
from hybrid_runner.telemetry.tracing.sampling import Sampling
from hybrid_runner.telemetry.tracing.trace_ids import (
    TraceContext,
    job_trace,
    low_half,
    parse,
    root_span_id,
)

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
BORN = datetime(2026, 1, 1, tzinfo=UTC)


def claim(job: int = 7, traceparent: str | None = None, **more: object) -> Claim:
    """A claim of a job that was created at the start of the year."""
    made = Claim(
        job,
        "images",
        "thumbnail",
        5,
        "{}",
        None,
        None,
        BORN,
        5,
        None,
        None,
        traceparent,
        1,
        1,
        BORN,
        BORN,
    )
    return replace(made, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"00-{TRACE}-{SPAN}-01", (int(TRACE, 16), int(SPAN, 16), True)),
        (f"00-{TRACE}-{SPAN}-00", (int(TRACE, 16), int(SPAN, 16), False)),
        (f"00-{TRACE}-{SPAN}-03", (int(TRACE, 16), int(SPAN, 16), True)),
        (f"cc-{TRACE}-{SPAN}-01-what-the-future-holds", (int(TRACE, 16), int(SPAN, 16), True)),
        (f"00-{TRACE}-{SPAN}-01-more", None),
        (f"ff-{TRACE}-{SPAN}-01", None),
        (f"00-{'0' * 32}-{SPAN}-01", None),
        (f"00-{TRACE}-{'0' * 16}-01", None),
        (f"00-{TRACE.upper()}-{SPAN}-01", None),
        (f"00-{TRACE}-{SPAN}", None),
        (f" 00-{TRACE}-{SPAN}-01", None),
        ("nonsense", None),
        ("", None),
        (None, None),
    ],
)
def test_a_traceparent_is_read_as_w3c_has_it(
    text: str | None, expected: tuple[int, int, bool] | None
) -> None:
    assert parse(text) == expected


def test_a_context_is_written_as_it_is_read() -> None:
    assert str(parse(f"00-{TRACE}-{SPAN}-01")) == f"00-{TRACE}-{SPAN}-01"


def test_a_job_without_a_trace_has_the_same_one_at_every_attempt_and_in_every_worker() -> None:
    first, later = claim(), claim(attempt=3, number=99, run_at=BORN + timedelta(hours=1))
    assert job_trace(first) == job_trace(later)
    assert job_trace(first).parent_id is None


def test_two_jobs_never_share_a_trace_of_their_own() -> None:
    found = {job_trace(claim(job)).trace_id for job in range(1, 5000)}
    assert len(found) == 4999
    assert (
        job_trace(claim(7, created_at=BORN + timedelta(microseconds=1))).trace_id
        != job_trace(claim(7)).trace_id
    )


def test_a_trace_that_was_written_down_is_continued_without_a_parent() -> None:
    own = job_trace(claim())
    assert (
        job_trace(claim(traceparent=str(TraceContext(own.trace_id, own.root_id, sampled=True))))
        == own
    )


def test_the_root_of_a_job_hangs_under_whoever_enqueued_it() -> None:
    own = job_trace(claim(traceparent=f"00-{TRACE}-{SPAN}-01"))
    assert tuple(own) == (int(TRACE, 16), root_span_id(int(TRACE, 16), 7), int(SPAN, 16))
    assert job_trace(claim(8, f"00-{TRACE}-{SPAN}-01")).root_id != own.root_id


class Moody(Sampler):
    """Of the application's own: it follows nobody, and takes every other trace."""

    def should_sample(self, *args: Any, **_: Any) -> SamplingResult:
        trace_id = args[1]
        return SamplingResult(Decision.RECORD_AND_SAMPLE if trace_id % 2 else Decision.DROP)

    def get_description(self) -> str:
        return "Moody"


YES, NO = f"00-{TRACE}-{SPAN}-01", f"00-{TRACE}-{SPAN}-00"


@pytest.mark.parametrize(
    "sampler",
    [
        ALWAYS_ON,
        ALWAYS_OFF,
        ParentBased(ALWAYS_ON),
        ParentBased(ALWAYS_OFF),
        TraceIdRatioBased(0.25),
        ParentBased(TraceIdRatioBased(0.25)),
        ParentBased(TraceIdRatioBased(1e-05)),
        ParentBased(TraceIdRatioBased(1)),
        ParentBased(ALWAYS_ON, remote_parent_sampled=ALWAYS_OFF),
        Moody(),
    ],
    ids=lambda sampler: sampler.get_description()[:60],
)
def test_the_short_way_decides_as_the_sampler_would(sampler: Sampler) -> None:
    """The standard ones by a comparison, others by asking."""
    sampling = Sampling(sampler)
    odd = (
        "nonsense",
        "nonsense-00",
        f"00-{'0' * 32}-{'0' * 16}-00",
        f"00-{TRACE}-{'0' * 16}-00",
        f"01-{TRACE}-{SPAN}-00",
    )
    claims = [
        claim(job, traceparent) for job in range(1, 200) for traceparent in (None, YES, NO, *odd)
    ]
    assert [sampling._ask(each) for each in claims] == [
        sampling.is_sampled(each) for each in claims
    ]


@pytest.mark.parametrize(
    "sampler",
    [ALWAYS_ON, ALWAYS_OFF, TraceIdRatioBased(0.25), Moody()],
    ids=lambda s: s.get_description(),
)
@pytest.mark.parametrize("sampled", [True, False])
def test_what_was_decided_about_an_earlier_attempt_holds_for_all_whatever_the_sampler(
    sampler: Sampler, sampled: bool
) -> None:
    """The worker that has the next attempt may have other settings."""
    sampling = Sampling(sampler)
    for job in range(1, 50):
        own = job_trace(claim(job))
        back = claim(job, str(TraceContext(own.trace_id, own.root_id, sampled=sampled)))
        assert sampling.is_sampled(back) is sampling._ask(back) is sampled


def test_of_any_run_of_jobs_the_same_share_is_sampled() -> None:
    bound = round(0.01 * 2**64)
    for first in (1, 12_345, 10**9):
        assert 8 <= sum(low_half(job) < bound for job in range(first, first + 1000)) <= 12


def test_what_is_computed_stays_what_it_is_in_every_version() -> None:
    """Workers of several versions share a job: these numbers are a promise."""
    assert tuple(job_trace(claim())) == (
        62879202885450107822496144947235349651,
        7837356191869455638,
        None,
    )
    assert low_half(1) == 0x9E3779B97F4A7C15
