"""The settings as arguments, for type checkers."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, TypedDict

from pydantic import SecretStr

from hybrid_runner.durations import Duration
from hybrid_runner.settings.tuning import Tuning


class SettingOptions(TypedDict, total=False):
    """Arguments of `Runner` and `Runner.use` beside `dsn`; None counts as not given."""

    listen_dsn: str | None
    data_dir: Path | str | None
    start_timeout: Duration | None
    worker_id: str | None
    slots: int | None
    thread_slots: int | None
    process_slots: int | None
    payload_mib: int | None
    heartbeat: Duration | None
    lease: Duration | None
    row_heartbeat: Duration | None
    timeout_grace: Duration | None
    stall_after: Duration | None
    grace: Duration | None
    flush_claims: bool | None
    poll_base: Duration | None
    poll_cap: Duration | None
    poll_factor: float | None
    hybrid_poll_base: Duration | None
    hybrid_poll_cap: Duration | None
    row_check: Duration | None
    keep_completed: Duration | None
    keep_failed: Duration | None
    keep_cancelled: Duration | None
    http_host: str | None
    http_port: int | None
    http_token: SecretStr | str | None
    http_readers: int | None
    http_connections: int | None
    http_hosts: str | None
    http_origins: str | None
    http_url: str | None
    http_status: str | None
    log_level: Literal["debug", "info", "warning", "error"] | None
    log_format: Literal["auto", "console", "json", "app"] | None
    log_payloads: bool | None
    poll_max_concurrent_per_host: int | None
    monitors_tick: Duration | None
    monitors_breaker_failures: int | None
    monitors_breaker_cooldown: Duration | None
    monitors_backoff: Duration | None
    monitors_backoff_cap: Duration | None
    monitors_refuse: Literal["private"] | None
    monitors_allow: str | None
    monitors_keep_polls: bool | None
    tuning: Tuning | None
