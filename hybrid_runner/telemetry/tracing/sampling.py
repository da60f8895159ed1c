"""Which jobs are traced: the configured sampler decides once per job, and so it is decided in every
worker.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from opentelemetry import trace
from opentelemetry.trace import SpanKind

from hybrid_runner.model.claims import Claim
from hybrid_runner.telemetry.tracing.current import span_context
from hybrid_runner.telemetry.tracing.trace_ids import (
    GOLDEN,
    LOW,
    Context,
    low_half,
    parse,
    root_of,
    says_no,
    trace_of,
)

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.sampling import Sampler

_ALL = 2**64
_ROOT = re.compile(
    r"(?:ParentBased\{root:)?(AlwaysOnSampler|AlwaysOffSampler|TraceIdRatioBased\{([0-9.e-]+)\})"
)
_USUAL_PARENTS = "remoteParentSampled:AlwaysOnSampler,remoteParentNotSampled:AlwaysOffSampler,"


class Sampling:
    """The samplers that the standard variables name are known by their descriptions: a comparison a
    job, not a call.
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

    def picks(self, claims: Sequence[Claim]) -> list[Claim]:
        """Those of a batch that are traced."""
        bound = self._bound
        if bound is None:
            return [claim for claim in claims if self._asked(claim)]
        # low_half() written out: here it is asked for every job.
        return [
            claim
            for claim in claims
            if (
                claim.id * GOLDEN & LOW < bound
                if claim.traceparent is None
                else self._continues(claim, bound)
            )
        ]

    def picked(self, claim: Claim) -> bool:
        """Whether this one is traced."""
        return bool(self.picks((claim,)))

    def _continues(self, claim: Claim, bound: int) -> bool:
        if self._follows and says_no(claim.traceparent):
            return False
        context = parse(claim.traceparent)
        if context is None:
            return low_half(claim.id) < bound
        if self._follows or _is_decided(claim, context):
            return context.sampled
        return context.trace_id & _ALL - 1 < bound

    def _asked(self, claim: Claim) -> bool:
        """A sampler of the application's own."""
        context, own = parse(claim.traceparent), trace_of(claim)
        if context is not None and _is_decided(claim, context):
            return context.sampled
        parent = (
            None
            if context is None
            else trace.set_span_in_context(trace.NonRecordingSpan(span_context(context)))
        )
        attributes = {
            "messaging.system": "hybrid_runner",
            "messaging.destination.name": claim.queue,
        }
        result = self._sampler.should_sample(
            parent, own.trace_id, f"job {claim.kind}", SpanKind.INTERNAL, attributes
        )
        return result.decision.name == "RECORD_AND_SAMPLE"


def _is_decided(claim: Claim, context: Context) -> bool:
    """Whether a worker that put the job back wrote this: the decision of an earlier attempt."""
    return context.span_id == root_of(context.trace_id, claim.id)
