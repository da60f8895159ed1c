"""What a session is set to, by what it is for."""

from __future__ import annotations

from collections.abc import Mapping

from hybrid_runner.storage.connections import pooler

# Plans must not depend on when they were made: a plan from the day the table was empty ruins the
# day it is not.
FOR_ALL = {
    "application_name": "hybrid-runner",
    "plan_cache_mode": "force_custom_plan",
    "jit": "off",
    "default_transaction_isolation": "read committed",
    # The server notices within a minute that we are gone without a word, and what we locked; and
    # routers do not forget us.
    "tcp_keepalives_idle": "30",
    "tcp_keepalives_interval": "10",
    "tcp_keepalives_count": "3",
} | pooler.MARK


FOR_CLAIMS = {
    # The claim's plan is the same for any table: planning it each time would cost more than running
    # it.
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
}
"""Settings of a session that claims."""


def for_claims(*, flushed: bool) -> dict[str, str]:
    """The same, and whether each claim waits for the disk: one that is lost in a crash leaves its
    job queued.
    """
    return FOR_CLAIMS | ({} if flushed else {"synchronous_commit": "off"})


FOR_SETTLING = {"lock_timeout": "1s"}
"""Settings of a session that settles: a row that somebody holds must not hold up the others."""

FOR_UPKEEP = FOR_SETTLING
"""Settings of the heartbeat's session."""

FOR_LISTENING = {"application_name": "hybrid-runner listener", "synchronous_commit": "off"}
"""Settings of a session that listens and moves doorbells: nothing there must outlive a crash."""


def named(purpose: str, settings: Mapping[str, str]) -> dict[str, str]:
    """The same, and what the session is for, as pg_stat_activity shows it."""
    return {**settings, "application_name": f"hybrid-runner {purpose}"}
