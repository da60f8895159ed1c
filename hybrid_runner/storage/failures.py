"""What Postgres and the network can say, translated once into the error tree."""

from __future__ import annotations

import re

import asyncpg

from hybrid_runner.errors import (
    ConfigurationError,
    ConnectionLost,
    DatabaseError,
    DatabaseUnavailable,
    EnqueueError,
    KeyHeld,
    KeyTaken,
    NoAnswer,
    RowLocked,
    RunnerError,
    SchemaMissing,
    StatementAborted,
    ValueRefused,
)

# The same statement may work later: connection lost, resources short, server shutting down,
# read-only during a failover, conflicts.
_TRANSIENT_CLASSES = ("08", "53", "57", "40")
_LOCK_NOT_AVAILABLE = "55P03"
_TRANSIENT_STATES = {"25006", "55006", _LOCK_NOT_AVAILABLE}
_ENDED_CLASS = "08"
_ENDED_STATES = {"57P01", "57P02", "57P05", "25P03", "25P04"}
"""An administrator, a crash or a time-out ended the session."""
_ABORTED_CLASS = "40"
_ABORTED_STATES = {"53200", "57014"}
"""Out of memory, and a statement that took too long or was cancelled by an administrator."""
_VALUE_CLASSES = ("22", "23", "54")
_MISSING_STATES = {"3F000", "42P01", "42883", "42704", "42703"}
# Names have their schemas, since no session of ours has any other in its search path.
_FOREIGN_FUNCTION = re.compile(r'^(PL/\w+|SQL) function "?(?!hybrid_runner\.)', re.MULTILINE)
_CONSTRAINT = re.compile(r"(jobs|archive)_(\w+)")
_LOST = (
    asyncpg.InterfaceError,
    asyncpg.exceptions.ConnectionDoesNotExistError,
    OSError,
    EOFError,
    # No host is what target_session_attrs asks for: a failover is under way.
    asyncpg.exceptions.InternalClientError,
)


_KEY_INDEX = "jobs_one_live_job_per_key"
_ENQUEUE = "function hybrid_runner.enqueue_job"


def translate(error: BaseException) -> RunnerError:
    """The RunnerError that says in one line what happened and what to do."""
    match error:
        case RunnerError():
            return error
        case asyncpg.exceptions.ClientConfigurationError():
            return ConfigurationError(f"the DSN cannot be used: {_line(error)}")
        case asyncpg.exceptions.ProtocolViolationError() if "startup parameter" in str(error):
            return DatabaseError(
                f"the pooler refuses what the DSN asks for: {_line(error)}: take it out of the DSN"
            )
        case asyncpg.PostgresError():
            failure = _about_key(error) or _from_postgres(error)
            failure.sqlstate = str(getattr(error, "sqlstate", "") or "")
            where = getattr(error, "context", None) or ""
            failure.in_foreign_function = _FOREIGN_FUNCTION.search(where) is not None
            return failure
        # Before InterfaceError, which some of these are too: what asyncpg refuses to send, it
        # refuses each time.
        case ValueError() | TypeError() | OverflowError():
            return ValueRefused(f"Postgres cannot take this value: {_line(error)}")
        case TimeoutError():
            return NoAnswer(f"Postgres does not answer in time: {_line(error)}")
        case _ if isinstance(error, _LOST):
            return DatabaseUnavailable(f"Postgres does not answer: {_line(error)}")
        case _:
            return DatabaseError(f"{type(error).__name__}: {_line(error)}")


def _about_key(error: asyncpg.PostgresError) -> RunnerError | None:
    """What an enqueue is told of the key that it asked for."""
    state, line = getattr(error, "sqlstate", ""), _line(error)
    if state == "23505" and getattr(error, "constraint_name", "") == _KEY_INDEX:
        return KeyTaken(f"{line}: wait for it, or choose on_conflict='exists' or 'replace'")
    if state == "42501" and line.startswith("key "):
        return KeyTaken(line)
    if state == _LOCK_NOT_AVAILABLE and getattr(error, "constraint_name", "") == _KEY_INDEX:
        return KeyHeld(f"{line}: the outcome and its follow-ups are stored together once it ends")
    if state == _LOCK_NOT_AVAILABLE and _ENQUEUE in (getattr(error, "context", "") or ""):
        return RowLocked(
            "an open transaction has stored a job with the same key, and has not ended within 5 s:"
            " try again once it has"
        )
    return None


def _from_postgres(error: asyncpg.PostgresError) -> RunnerError:
    state = str(getattr(error, "sqlstate", "") or "")
    line = _line(error)
    if state in _TRANSIENT_STATES | _ENDED_STATES or state[:2] in _TRANSIENT_CLASSES:
        return _unavailable(state)(f"Postgres cannot do this now: {line}")
    if state == "23514":
        return _check_violated(getattr(error, "constraint_name", "") or "", line)
    if state[:2] == "28":
        return DatabaseError(f"Postgres refused the login: {line}")
    if state == "3D000":
        return DatabaseError(f"{line}: create it, or correct the DSN")
    if state == "42501":
        if line.startswith("schedule "):  # it says whose it is
            return DatabaseError(line)
        is_of_owner = line.startswith("must be owner")
        return needs_owner(error) if is_of_owner else _forbidden(line)
    if state in _MISSING_STATES and (missing := _missing(line)) is not None:
        return missing
    if state in ("22P05", "22021"):
        return EnqueueError(_unstorable(error, line))
    if state == "22023":
        return EnqueueError(line)
    said = f"{line} (SQLSTATE {state})"
    return ValueRefused(said) if state[:2] in _VALUE_CLASSES else DatabaseError(said)


def _missing(line: str) -> SchemaMissing | None:
    """What is not there, if it is ours."""
    for schema, command in (
        ("hybrid_monitors", "hybrid-runner monitors migrate"),
        ("hybrid_runner", "hybrid-runner migrate"),
    ):
        if schema in line:
            return SchemaMissing(
                f"the database has no {schema} schema or an old one ({line}): run `{command}` with"
                " the same DSN"
            )
    return None


def _check_violated(constraint: str, line: str) -> EnqueueError:
    named = _CONSTRAINT.fullmatch(constraint)
    if named is None:
        return EnqueueError(f"refused: {line}")
    what = "job" if named[1] == "jobs" else "outcome"
    return EnqueueError(f"the {what} was refused: {named[2].replace('_', ' ')}")


def _unavailable(state: str) -> type[DatabaseUnavailable]:
    if state == _LOCK_NOT_AVAILABLE:
        return RowLocked
    if state in _ENDED_STATES or state[:2] == _ENDED_CLASS:
        return ConnectionLost
    is_aborted = state in _ABORTED_STATES or state[:2] == _ABORTED_CLASS
    return StatementAborted if is_aborted else DatabaseUnavailable


def _unstorable(error: asyncpg.PostgresError, line: str) -> str:
    """A character that the database's encoding does not have, most often NUL."""
    said = f"{line} {getattr(error, 'detail', None) or ''}"
    if "\\u0000" in said or "0x00" in said:
        return "Postgres cannot store a NUL character: remove or escape it"
    return f"{line}: the database's encoding cannot hold it"


def needs_owner(error: BaseException) -> DatabaseError:
    """What only the owner may do: granted rights would not help."""
    return DatabaseError(
        f"{_line(error)}: migrate as the role that owns the schema hybrid_runner (CREATE SCHEMA"
        " hybrid_runner AUTHORIZATION … makes one that does)"
    )


def _forbidden(line: str) -> DatabaseError:
    return DatabaseError(
        f"{line}: grant this role hybrid_runner_worker, _producer or _reader, or use another"
    )


def _line(error: BaseException) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 300 else text[:297] + "..."
