"""What the looks of one queue found and cost in the last minute. Time is an argument."""

from __future__ import annotations

from dataclasses import dataclass

STEP = 5.0
STEPS = 12
"""A minute in steps of 5 seconds; the oldest step is dropped as a whole."""


@dataclass(frozen=True, slots=True)
class LastMinute:
    """One queue's looks of the last minute, as /health shows them; sweeps and fallback polls are
    looks too.
    """

    looks_per_minute: int = 0
    jobs_found_per_look: float = 0.0
    claim_success_rate: float = 1.0
    """The share of looks that Postgres answered."""
    claim_latency_ms: float = 0.0
    """The mean time of a look."""
    longest_claim_ms: float = 0.0


QUIET = LastMinute()
"""No look was made."""


@dataclass(slots=True)
class _Piece:
    number: int = -1
    answered: int = 0
    failed: int = 0
    found: int = 0
    seconds: float = 0.0
    longest: float = 0.0


class LookCounter:
    """Counts looks in steps of 5 seconds, so that each costs a few additions."""

    def __init__(self) -> None:
        self._pieces = [_Piece() for _ in range(STEPS)]

    def answered(self, found: int, seconds: float, now: float) -> None:
        """A look ended."""
        piece = self._piece(now)
        piece.answered += 1
        piece.found += found
        piece.seconds += seconds
        piece.longest = max(piece.longest, seconds)

    def failed(self, now: float) -> None:
        """A look got no answer, or a refusal."""
        self._piece(now).failed += 1

    def seen(self, now: float) -> LastMinute:
        """The numbers of the last minute."""
        oldest = int(now / STEP) - STEPS
        pieces = [piece for piece in list(self._pieces) if piece.number > oldest]
        answered, failed = (
            sum(piece.answered for piece in pieces),
            sum(piece.failed for piece in pieces),
        )
        if not answered + failed:
            return QUIET
        return LastMinute(
            looks_per_minute=answered + failed,
            jobs_found_per_look=round(
                sum(piece.found for piece in pieces) / (answered + failed), 3
            ),
            claim_success_rate=round(answered / (answered + failed), 4),
            claim_latency_ms=round(
                1000 * sum(piece.seconds for piece in pieces) / max(1, answered), 3
            ),
            longest_claim_ms=round(1000 * max(piece.longest for piece in pieces), 3),
        )

    def _piece(self, now: float) -> _Piece:
        number = int(now / STEP)
        piece = self._pieces[number % STEPS]
        if piece.number != number:
            piece = self._pieces[number % STEPS] = _Piece(number)
        return piece
