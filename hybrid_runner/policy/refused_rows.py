"""Whose fault it is that Postgres refuses a statement about jobs."""

from __future__ import annotations

from enum import Enum, auto

from hybrid_runner.errors import (
    ConnectionLost,
    DatabaseUnavailable,
    NoConnection,
    RowLocked,
    RunnerError,
    SchemaMissing,
    StatementAborted,
    ValueRefused,
)

OUT_OF_MEMORY = "53200"
_UNREADABLE = ("54", "XX001")
"""Too large for Postgres itself, or damaged on disk: it can only be deleted."""
_UNFIT = ("22", "23514")
"""Values and limits: the row predates them, or was written past them."""


class Fault(Enum):
    """What is to be done about it."""

    OUTAGE = auto()
    """Nobody's, and others would be refused as well: the same statement may work later."""
    STATEMENT = auto()
    """This statement's alone: it took too long or met another one. It may work later; if it never
    does, one row may be why.
    """
    UNREADABLE_ROW = auto()
    """The row's, and Postgres itself cannot read it."""
    UNFIT_ROW = auto()
    """The row's, but what it carries can be read by SQL."""
    UNKNOWN = auto()
    """A trigger may have raised, a right may be missing: this row's fault if others are taken."""


def fault_of(error: RunnerError) -> Fault:
    """Whose fault a refusal is. An answer that could not be read has no SQLSTATE."""
    state = error.sqlstate
    is_unavailable = isinstance(error, DatabaseUnavailable)
    if error.in_foreign_function and not isinstance(error, ConnectionLost):
        # Whatever it is called: nothing is wrong with the row, and statements that do not call
        # the function are answered.
        return Fault.STATEMENT if is_unavailable else Fault.UNKNOWN
    if state.startswith(_UNREADABLE):
        return Fault.UNREADABLE_ROW
    if state.startswith(_UNFIT):
        return Fault.UNFIT_ROW
    if state == OUT_OF_MEMORY:
        return Fault.UNKNOWN
    if isinstance(error, (StatementAborted, RowLocked)):
        return Fault.STATEMENT
    if is_unavailable or isinstance(error, (NoConnection, SchemaMissing)):
        return Fault.OUTAGE
    is_unreadable_answer = isinstance(error, ValueRefused) and not state
    return Fault.UNFIT_ROW if is_unreadable_answer else Fault.UNKNOWN
