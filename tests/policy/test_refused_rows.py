"""Whose fault a refusal is: no job may be charged for what is wrong with the server."""

from __future__ import annotations

import pytest

from hybrid_runner.errors import (
    ConnectionLost,
    DatabaseUnavailable,
    NoConnection,
    RunnerError,
    SchemaMissing,
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
