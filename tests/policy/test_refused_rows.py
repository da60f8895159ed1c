"""Whose fault a refusal is: no job may be charged for what is wrong with the server."""

from __future__ import annotations

import pytest

from hybrid_runner.errors import (
    ConnectionLost,
    DatabaseUnavailable,
    EnqueueError,
    NoConnection,
    RowLocked,
    RunnerError,
    SchemaMissing,
    StatementAborted,
    ValueRefused,
)
from hybrid_runner.policy.refused_rows import Fault, fault_of


@pytest.mark.parametrize(
    "error",
    [
        NoConnection("Postgres refused the login"),
        SchemaMissing("run `hybrid-runner migrate`"),
        DatabaseUnavailable("Postgres does not answer"),
        ConnectionLost("it was ended"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_any_statement_would_meet_is_no_fault_of_a_row(error: RunnerError) -> None:
    assert fault_of(error) is Fault.OUTAGE


@pytest.mark.parametrize("error_type", [StatementAborted, RowLocked])
def test_what_this_statement_alone_meets_is_no_outage(error_type: type[RunnerError]) -> None:
    assert fault_of(error_type("it took too long")) is Fault.STATEMENT


@pytest.mark.parametrize(
    ("error_type", "sqlstate", "fault"),
    [
        (ValueRefused, "22012", Fault.UNKNOWN),
        (ValueRefused, "54001", Fault.UNKNOWN),
        (EnqueueError, "23514", Fault.UNKNOWN),
        (DatabaseUnavailable, "53400", Fault.STATEMENT),
        (StatementAborted, "53200", Fault.STATEMENT),
        (ConnectionLost, "57P01", Fault.OUTAGE),
    ],
)
def test_what_fails_in_the_function_of_somebody_is_no_fault_of_a_row(
    error_type: type[RunnerError], sqlstate: str, fault: Fault
) -> None:
    error = error_type("in a trigger")
    error.sqlstate, error.in_foreign_function = sqlstate, True
    assert fault_of(error) is fault
