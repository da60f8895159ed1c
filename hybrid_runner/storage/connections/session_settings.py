"""What a session is set to, by what it is for."""

from __future__ import annotations

from collections.abc import Mapping

from hybrid_runner.storage.connections import pooler

# A plan that was made while a table was empty is ruinous once it is full: plan each time.
FOR_ALL = {
    "application_name": "hybrid-runner",
    # What others made under a name of ours is not found, not even in a session that a pooler gave
    # to somebody before.
    "search_path": "pg_catalog, pg_temp",
    "plan_cache_mode": "force_custom_plan",
    "jit": "off",
    "default_transaction_isolation": "read committed",
    # The server notices within a minute that this end vanished, and releases its locks; and routers
    # do not forget an idle connection.
    "tcp_keepalives_idle": "30",
    "tcp_keepalives_interval": "10",
    "tcp_keepalives_count": "3",
} | pooler.MARK
"""Settings of every session."""

FOR_CLAIMS = {
    # The claim has one good plan whatever the table holds; planning costs more than running it.
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
}
"""Settings of the session that claims."""


def for_claims(*, flushed: bool) -> dict[str, str]:
    """Settings of the session that claims.

    `flushed`: each claim waits until it is on disk; without, a crash of Postgres may lose a claim,
    and its job is queued again.
    """
    return FOR_CLAIMS | ({} if flushed else {"synchronous_commit": "off"})


FOR_SETTLING = {"lock_timeout": "1s"}
"""Settings of the session that settles: a row that is locked must not hold up the others."""


FOR_SETTLING_ROWS = FOR_SETTLING | {"statement_timeout": "10s"}
"""Settings of the session that settles jobs about rows of attached tables: where such a table takes
longer, its rows are written later.
"""


def for_rows(*, flushed: bool) -> dict[str, str]:
    """Settings of the sessions that show in rows of attached tables that their jobs run; `flushed`
    as of claims: what a crash loses of the one, it may lose of the other.

    A table whose own triggers take longer is left alone for a while.
    """
    return (
        FOR_SETTLING
        # What is asked there has one good plan whatever the tables hold: by the keys of jobs.
        | {
            "statement_timeout": "10s",
            "plan_cache_mode": "force_generic_plan",
            "enable_seqscan": "off",
        }
        | ({} if flushed else {"synchronous_commit": "off"})
    )


FOR_UPKEEP = FOR_SETTLING
"""Settings of the session that does upkeep."""


# What fires schedules plans many small statements, each of which has one good plan.
FOR_TICKS = FOR_UPKEEP | {"plan_cache_mode": "force_generic_plan"}
"""Settings of the session that fires schedules."""


def for_heartbeat(patience: float) -> dict[str, str]:
    """Settings of the heartbeat's session; `patience`: how many seconds a statement may take.

    The server gives up before the worker does, which would have to connect again.
    """
    # Its questions have one good plan whatever the table holds, as claims do.
    return FOR_CLAIMS | {
        "lock_timeout": f"{round(400 * patience)}ms",
        "statement_timeout": f"{round(600 * patience)}ms",
    }


FOR_LISTENING = {"application_name": "hybrid-runner listener", "synchronous_commit": "off"}
"""Settings of the session that listens and moves doorbells: none of that must survive a crash."""


def named(purpose: str, settings: Mapping[str, str]) -> dict[str, str]:
    """The settings, and what the session is for, as pg_stat_activity shows it."""
    return {**settings, "application_name": f"hybrid-runner {purpose}"}
