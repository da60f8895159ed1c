"""Every error this package raises, on one screen. Each message is one line that says what to do.

RunnerError
├── ConfigurationError      settings, handler targets, names: fix the call or the environment
│   └── OpenInAnotherLoop   a Runner is open in one event loop at a time: make one for each
├── DatabaseError           Postgres said no, for good: fix the server, the role or the schema
│   ├── ValueRefused        this value cannot be stored
│   ├── NoConnection        it lets nobody in with this DSN
│   ├── SchemaMissing       run `hybrid-runner migrate`
│   ├── SchemaTooNew        upgrade hybrid-runner
│   └── SchemaUnreleased    drop the schema and start anew
├── DatabaseUnavailable     Postgres does not answer now: try again later
│   ├── NoAnswer            no answer came in time: the network may have lost it
│   ├── ConnectionLost      the server or the network ended this connection: open another
│   ├── StatementAborted    it ended this statement alone: a time-out, a deadlock, no memory
│   └── RowLocked           another transaction has locked the row
│       └── KeyHeld         an open transaction has stored a job with the key of a follow-up
├── EnqueueError            the job was not accepted; nothing was stored
│   └── KeyTaken            a live job holds the key (on_conflict="error")
├── JobNotFound             no such job, live or archived
├── JobFailed               raised by `handle.wait()`: the job ended as failed
├── JobCancelled            raised by `handle.wait()`: the job ended as cancelled
├── WaitTimeout             raised by `handle.wait(timeout=…)`: not finished yet
├── SignalRefused           raised by `job.signal(type=…)`: its payload does not fit the type
└── StaleClaim              this attempt no longer owns the job: stop working on it
"""

from __future__ import annotations


class RunnerError(Exception):
    """Base of everything raised on purpose; `str()` is one line for a person."""

    sqlstate: str = ""
    """What Postgres called it; empty if Postgres did not say it."""
    in_foreign_function: bool = False
    """Whether it was raised in a function that is not of hybrid_runner: in a trigger's, most
    likely.
    """


class ConfigurationError(RunnerError):
    """A setting, a name or a handler target is wrong."""


class OpenInAnotherLoop(ConfigurationError):
    """The runner was used in one event loop while it is open in another."""

    def __init__(self) -> None:
        super().__init__(
            "this Runner is open in another event loop: use it there, close it there first, or make"
            " a Runner for each loop (in a plain `def` handler: `async with Runner(app.dsn) as"
            " own`)"
        )

    def __reduce__(self) -> tuple[type[OpenInAnotherLoop], tuple[()]]:
        return type(self), ()


class DatabaseError(RunnerError):
    """Postgres refused, and asking again will not help."""


class ValueRefused(DatabaseError):
    """Postgres refused this value; the same call with another one would succeed."""


class NoConnection(DatabaseError):
    """Postgres refused the connection: nothing was asked of it."""


class SchemaMissing(DatabaseError):
    """The database has no hybrid_runner schema, or an older one than this version needs."""


class SchemaTooNew(DatabaseError):
    """The database was migrated by a newer hybrid-runner."""


class SchemaUnreleased(DatabaseError):
    """The database was migrated by an unreleased version, from which none can be migrated."""


class DatabaseUnavailable(RunnerError):
    """Postgres does not answer now; the same call may work later."""


class NoAnswer(DatabaseUnavailable):
    """No answer came in time; other connections that were opened before may be dead as well."""


class ConnectionLost(DatabaseUnavailable):
    """The connection was ended in the middle of its work; the next one may well last."""


class StatementAborted(DatabaseUnavailable):
    """Postgres ended this statement and answers others: it took too long, met another one, or
    needed more memory than there was.
    """


class RowLocked(DatabaseUnavailable):
    """Another transaction holds a lock for longer than this session waits."""


class KeyHeld(RowLocked):
    """An open transaction has stored a job with the key of a follow-up: nothing was written."""


class EnqueueError(RunnerError):
    """A job was not accepted; nothing was stored."""


class KeyTaken(EnqueueError):
    """A live job already holds the key."""


class SignalRefused(RunnerError):
    """The payload of a signal does not fit the type that was asked for: see who sent it. Another
    call of `job.signal` waits for the next one.
    """


class JobNotFound(RunnerError):
    """No job with that id, live or archived."""


class JobFailed(RunnerError):
    """The awaited job ended as failed; the fields are about its last attempt."""

    def __init__(
        self, job_id: int, kind: str, error_type: str, message: str, attempts: int
    ) -> None:
        super().__init__(job_id, kind, error_type, message, attempts)
        self.job_id = job_id
        self.kind = kind
        self.error_type = error_type
        """The name of the exception's class; `Fail` or `Retry` when the handler said that;
        `PayloadRefused`, `PayloadUnreadable`, `DataRefused`, `ResultRefused`, `OutcomeRefused`,
        `FinishByPassed`, `BudgetUsedUp` or `HandlerNotFound` when the job failed without a word of
        its handler; `WorkerLost` when its worker died.
        """
        self.message = message
        self.attempts = attempts

    def __str__(self) -> str:
        said = [self.error_type, self.message]
        if self.error_type in ("Fail", "Retry") and self.message:  # its handler's own words
            said = [self.message]
        reason = ": ".join(dict.fromkeys(part for part in said if part)) or "no reason was recorded"
        return f"job {self.job_id} ({self.kind}) failed: {reason}"


class JobCancelled(RunnerError):
    """The awaited job ended as cancelled."""

    def __init__(self, job_id: int, kind: str, reason: str) -> None:
        super().__init__(job_id, kind, reason)
        self.job_id = job_id
        self.kind = kind
        self.reason = reason
        """Empty when nobody gave one."""

    def __str__(self) -> str:
        reason = self.reason or "no reason was recorded"
        return f"job {self.job_id} ({self.kind}) was cancelled: {reason}"


class WaitTimeout(RunnerError, TimeoutError):
    """The awaited job did not finish in time; the job goes on."""


class StaleClaim(RunnerError):
    """This attempt no longer owns the job; nothing was written."""
