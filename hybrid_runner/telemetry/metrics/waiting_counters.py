"""Counts what values in the memories of waiting jobs do, and budgets that are used up."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from hybrid_runner.jsontext import decode
from hybrid_runner.model.jobs import State
from hybrid_runner.model.settlements import Finished, Settlement, word_of
from hybrid_runner.model.signals import Given
from hybrid_runner.model.uses import Use, Uses
from hybrid_runner.telemetry.metrics import instruments as table
from hybrid_runner.telemetry.metrics.instrument import OTHER
from hybrid_runner.telemetry.metrics.series import Counter
from hybrid_runner.telemetry.metrics.values import MetricValues

_BUDGETS: Final = ("max_snoozes", "max_duration", "finish_by")
_COMPLETED: Final = State.COMPLETED.value


class WaitingCounters:
    """Written in the worker's loop; read from any thread."""

    def __init__(self) -> None:
        self._opened = Counter(table.GATES_OPENED)
        self._endings = Counter(table.GATE_ENDINGS)
        self._confirmations = Counter(table.CONFIRMATIONS)
        self._tries = Counter(table.TRIES)
        self._budgets = Counter(table.BUDGETS_USED_UP)
        self._wakes = Counter(table.WAKES)
        self.all: tuple[Counter, ...] = (
            self._wakes,
            self._opened,
            self._endings,
            self._confirmations,
            self._tries,
            self._budgets,
        )

    def start_series(self, kind: str, uses: Iterable[tuple[Use, str]]) -> None:
        """Begin at 0: rates need that."""
        for use, field in uses:
            self._add(kind, field, use, 0)
            if use == "opened":
                self._endings.add((kind, field), 0)

    def count_uses(self, settlement: Settlement, uses: Uses) -> None:
        """Count what the values of one job did at its last look."""
        kind, last_opened = settlement.claim.kind, None
        for (use, field), times in uses.copy().items():  # in the order of the handler
            self._add(kind, field, use, times)
            if use == "opened":
                last_opened = field or OTHER
        if last_opened is not None and word_of(settlement) == _COMPLETED:
            self._endings.add((kind, last_opened))

    def count_wake(self, kind: str, given: Given) -> None:
        """Count an attempt that was woken."""
        self._wakes.add((kind, "timeout" if given.signal_id is None else "signal"))

    def count_failure(self, failed: Finished) -> None:
        """Count it if it failed because a budget was used up."""
        if (budget := _budget_of(failed.error)) is not None:
            self._budgets.add((failed.claim.kind, budget))

    def metric_values(self) -> MetricValues:
        """A copy of all values; from any thread."""
        return {each.instrument.name: each.read() for each in self.all}

    def _add(self, kind: str, field: str, use: Use, times: int) -> None:
        field = field or OTHER
        match use:
            case "opened":
                self._opened.add((kind, field), times)
            case "seen" | "confirmed":
                self._confirmations.add((kind, field, use), times)
            case "again" | "used_up":
                self._tries.add((kind, field, use), times)


def _budget_of(error: str | None) -> str | None:
    """Which budget's end this error is."""
    if error is None:
        return None
    if '"type":"FinishByPassed"' in error:
        return "finish_by"
    if '"type":"BudgetUsedUp"' not in error:
        return None
    budget = str(decode(error)["message"]).partition(" ")[0]
    return budget if budget in _BUDGETS else None
