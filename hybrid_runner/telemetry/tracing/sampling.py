"""Which jobs are traced: the configured sampler decides once per job, and every worker comes to the
same decision.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import SpanKind

from hybrid_runner.model.claims import Claim
from hybrid_runner.telemetry.tracing.current import span_context
from hybrid_runner.telemetry.tracing.trace_ids import (
    GOLDEN,
    LOW,
    TraceContext,
    is_unsampled,
    job_trace,
    low_half,
    parse,
    root_span_id,
)

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.sampling import Sampler

_ALL = 2**64
_ROOT = re.compile(
    r"(?:ParentBased\{root:)?(AlwaysOnSampler|AlwaysOffSampler|TraceIdRatioBased\{([0-9.e-]+)\})"
)
_USUAL_PARENTS = "remoteParentSampled:AlwaysOnSampler,remoteParentNotSampled:AlwaysOffSampler,"


class Sampling:
    """Decides by the provider's sampler. Those that the standard variables can name are recognised
    by their descriptions, so that a decision is a comparison and not a call.
    """

    def __init__(self, sampler: Sampler) -> None:
        self._sampler = sampler
        self._bound: int | None = None
        self._follows = False
        description = sampler.get_description()
        root = _ROOT.match(description)
        follows = description.startswith("ParentBased{")
        if root is not None and (not follows or _USUAL_PARENTS in description):
            self._follows = follows
            self._bound = {"AlwaysOnSampler": _ALL, "AlwaysOffSampler": 0}.get(root[1])
            if self._bound is None:
                self._bound = round(float(root[2]) * _ALL)

    def sampled(self, claims: Sequence[Claim]) -> list[Claim]:
        """The claims of a batch whose jobs are traced."""
        bound = self._bound
        if bound is None:
            return [claim for claim in claims if self._ask(claim)]
        # low_half() written out: a call for every job would cost more.
        return [
            claim
            for claim in claims
            if (
                claim.id * GOLDEN & LOW < bound
                if claim.traceparent is None
                else self._continues(claim, bound)
            )
        ]

    def is_sampled(self, claim: Claim) -> bool:
        return bool(self.sampled((claim,)))

    def is_run_sampled(self, claim: Claim, trace_id: int) -> bool:
        """Whether a run of the job that has a trace of its own is traced."""
        if self._bound is not None:
            return trace_id & _ALL - 1 < self._bound
        return self._ask_for(claim, None, trace_id)

    def _continues(self, claim: Claim, bound: int) -> bool:
        if self._follows and is_unsampled(claim.traceparent):
            return False
        context = parse(claim.traceparent)
        if context is None:
            return low_half(claim.id) < bound
        if self._follows or _is_decided(claim, context):
            return context.sampled
        return context.trace_id & _ALL - 1 < bound

    def _ask(self, claim: Claim) -> bool:
        """Ask the sampler itself: one of the application's own."""
        context, own = parse(claim.traceparent), job_trace(claim)
        if context is not None and _is_decided(claim, context):
            return context.sampled
        parent = (
            None
            if context is None
            else trace.set_span_in_context(trace.NonRecordingSpan(span_context(context)))
        )
        return self._ask_for(claim, parent, own.trace_id)

    def _ask_for(self, claim: Claim, parent: Context | None, trace_id: int) -> bool:
        attributes = {
            "messaging.system": "hybrid_runner",
            "messaging.destination.name": claim.queue,
        }
        result = self._sampler.should_sample(
            parent, trace_id, f"job {claim.kind}", SpanKind.INTERNAL, attributes
        )
        return result.decision.name == "RECORD_AND_SAMPLE"


def _is_decided(claim: Claim, context: TraceContext) -> bool:
    """Whether the context holds the decision of an earlier attempt, written by a worker that put
    the job back.
    """
    return context.span_id == root_span_id(context.trace_id, claim.id)
