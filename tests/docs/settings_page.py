"""docs/settings.md, written from hybrid_runner/settings: `python -m tests.docs.settings_page`."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from hybrid_runner.settings import PREFIX, SECTIONS
from hybrid_runner.settings.values import Section

PAGE = Path(__file__).parents[2] / "docs" / "settings.md"

_HEAD = """\
# Settings

Written from `hybrid_runner/settings/sections.py` by `python -m tests.docs.settings_page`; a test keeps it current.

Each is an argument of `Runner` and a variable in the environment; an argument wins, an empty variable counts as absent.
Durations are seconds as a number, `"30s"`, `"5m"`, `"1h30m"` or a `timedelta`. A wrong value is a `ConfigurationError` that
names the setting; a variable `HYBRID_RUNNER_…` that is no setting is a warning when `worker` or `migrate` starts.

In Python each is read in its section: `app.settings.work.slots`.
"""

_COLUMNS = """\
| argument | environment | default | what it is |
|---|---|---|---|
"""

_FOOT = """
## Notes

- `worker_id` is read from `WORKER_ID` when `HYBRID_RUNNER_WORKER_ID` is not set. Absent both, a worker is called
  `<host>-<pid>-<random>`.
- A short `lease` finds dead workers sooner, and takes slow ones for dead: frozen machines, a network that is away. What they ran
  then runs twice. `heartbeat` need not be changed with it: a worker speaks at least three times in a lease.
- `dsn` may name several servers ([failover.md](failover.md)) or a pooler ([poolers.md](poolers.md)).
- The fallback poll multiplies its pause by `poll_factor` after each empty poll, from the base to the cap, and goes back to
  the base when work is found. The `hybrid_` pair holds while rings arrive, the other one while they do not.
- The embedded Postgres looks for its programs in `HYBRID_RUNNER_POSTGRES_BIN` (a folder with `postgres` and `initdb`), then
  in the wheel that `hybrid-runner[embedded]` installs, then by `pg_config`, then in `/usr/lib/postgresql`.
- Without `data_dir` its data is in `$XDG_DATA_HOME/hybrid-runner/postgres`, or `~/.local/share/hybrid-runner/postgres`, or
  on macOS `~/Library/Application Support/hybrid-runner/postgres`.
- The embedded Postgres's folder must be this user's own or root's: who can write the settings of a Postgres can run programs as the
  user who starts it.
- Started by root, the embedded Postgres runs in a user namespace, without root's rights over processes and the network, but its files
  are root's, and what its SQL may read and write, root may: `COPY … FROM PROGRAM` is a program of root's. Where the system allows no
  user namespaces, as in most containers, it refuses to start: run as a user of your own, or set `dsn`.
- `http_host` and `http_port` are for `hybrid-runner worker` and `Runner.run_worker`; [http.md](http.md) says what is served.
- The `OTEL_*` variables are those of OpenTelemetry: see [Tracing](tracing.md). Without an endpoint nothing is sent.
- The numbers of the doorbell and of batching are no settings: they have no variables, and may change with any version.
  `hybrid_runner/settings/tuning.py` says what each is; `Runner(tuning=Tuning(…))` is for benchmarks and tests.
"""


def page() -> str:
    """The page as it should be."""
    return _HEAD + "".join(_table(*each) for each in SECTIONS) + _FOOT


def _table(attribute: str, section: type[Section]) -> str:
    rows = [
        f"| `{name}` | `{PREFIX}{name.upper()}` | {_default(name, field.default)}"
        f" | {field.description} |\n"
        for name, field in section.model_fields.items()
    ]
    return f"\n## {attribute.capitalize()}\n\n{section.__doc__}\n\n{_COLUMNS}" + "".join(rows)


def _default(name: str, value: object) -> str:
    if name == "process_slots":
        return "one per CPU"
    match value:
        case None:
            return "none"
        case timedelta():
            return f"`{_duration(value)}`"
        case _:
            return f"`{value}`"


def _duration(value: timedelta) -> str:
    seconds = value.total_seconds()
    minutes, rest = divmod(seconds, 60)
    return f"{minutes:g}m" if minutes and not rest else f"{seconds:g}s"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
