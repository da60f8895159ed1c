"""docs/metrics.md, its table written from telemetry/metrics/instruments.py: `python -m
tests.docs.metrics_page`.
"""

from __future__ import annotations

from pathlib import Path

from hybrid_runner.supervisor.reports import LONGEST_SILENCE
from hybrid_runner.telemetry.metrics.instrument import MOST_SERIES, Instrument
from hybrid_runner.telemetry.metrics.instruments import INSTRUMENTS

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"

_HEAD = """\
# Metrics

A worker shows its metrics at `GET /metrics`, on the port of its [other pages](http.md), as Prometheus reads them (text format
0.0.4). The page is made from memory, by a thread of its own: no lost database and no handler that holds up the event loop delays
it.

The table is written from `hybrid_runner/telemetry/metrics/instruments.py` by `python -m tests.docs.metrics_page`; a test keeps it
current.

| name | kind | labels | what it is |
|---|---|---|---|
"""

_FOOT = f"""
## Reading them

- **Looks per minute**: `60 * sum(rate(hybrid_runner_looks_total[5m]))`, every query for due jobs that Postgres answered: what others
  call polls per minute. Fallback polls alone: `60 * sum(rate(hybrid_runner_polls_total[5m]))`.
- **Jobs found per look**: `sum(rate(hybrid_runner_claim_batch_jobs_sum[5m])) /
  sum(rate(hybrid_runner_claim_batch_jobs_count[5m]))`.
- **Looks that found something**: `sum(rate(hybrid_runner_looks_total{{outcome="found"}}[5m])) /
  sum(rate(hybrid_runner_looks_total[5m]))`. An empty look is no failure: in a fleet most rings wake more than one worker.
- **Pickup**: `histogram_quantile(0.99, sum by (le, way) (rate(hybrid_runner_pickup_seconds_bucket[5m])))`. Retries and jobs that
  were put back count from when they were due again.
- **Throughput**: `sum by (kind, outcome) (rate(hybrid_runner_run_duration_seconds_count[5m]))`.

The ways are `ring`, `look`, `timer`, `later`, `sweep`, `help`, `expired` and `listener`; [how a job is
found](architecture.md#how-a-job-is-found) says what they are.

No label grows without end: queues and kinds are those that workers know. Beyond {MOST_SERIES} combinations in one metric, new
ones are counted together, with `other` in each label. Counters that are labelled by queue or by kind begin with 0 when the worker
starts, so that the first event shows in a rate; series with other labels appear with their first event.

## The queues: one worker measures for all

`hybrid_runner_queue_*` and `hybrid_runner_horizon_age_seconds` are about the database, not about the worker that shows them. One
worker of the fleet measures every 10 s, and goes on for as long as it lives; all others show no such series. When it stops,
another takes over with its next heartbeat; when it dies, after 30 s. Whoever loses this duty shows nothing from that moment on,
and whoever cannot reach Postgres nothing after 25 s. Read them with `max`, so that it does not matter who it is:

```promql
max by (queue, state) (hybrid_runner_queue_jobs)
max by (queue) (hybrid_runner_queue_oldest_due_seconds)
```

Depths are counted up to 10,000 a queue (less, but at least 1,000, when there are more than ten queues) and estimated by the
planner beyond that, from the statistics of the last ANALYZE; an estimate is never below what was counted. Measured with 1,000,000
queued jobs on 2 cores: 4 ms for one queue, 11 to 50 ms for 50 queues with 10 priorities each. The next measurement comes no
sooner than 20 times what the last one took, also when that one failed; who fails three times in a row leaves it to another. Of
more than 300 queues the last ones are shown together as `other`.

`running` is what the heartbeats said, so up to 10 s old: no index of what runs is kept, since every claim would pay for it. `sum
by (queue) (hybrid_runner_running)` is fresher, if all workers are scraped. A queue in which jobs are due and
`hybrid_runner_queue_workers` is 0 is one that nobody works on.

`hybrid_runner_horizon_age_seconds` knows transactions by the second, replication slots and standbys to within ten minutes. It
sees the sessions that the owner of the schema may see: `GRANT pg_read_all_stats` to it for those of others.

`hybrid_runner_notify_queue_used_ratio` is near 0 unless a session that listens stays in a transaction: see
[the alert](alerts.md#hybridrunnernotifyqueuefills).

## Attached tables

One worker of the fleet looks after rows of attached tables, and only that one shows `hybrid_runner_late_rows`,
`hybrid_runner_late_rows_oldest_seconds` and `hybrid_runner_refused_rows`: read them with `max`. A row is late for moments whenever its
application writes it at the same time as a worker does: only the oldest says whether something is wrong. In
`hybrid_runner_late_rows_written_total` each try counts, so that one row which is held for a minute gives a hundred `locked`.
`hybrid_runner_row_repairs_total` should stay at 0: where it does not, triggers were off, or somebody writes the running word.

## Several processes

With `worker --processes N` the parent shows one page for all: counters and histograms are added up, and kept when a process dies,
so that they never go down (what it counted in its last second may be lost); gauges are added up too, but for `hearing` (the
lowest) and `consecutive_errors` and `consecutive_empty_polls` (the highest). A process that has died, or has said nothing for
{LONGEST_SILENCE:.0f} s, has no gauges.

## By OTLP

The same metrics, with the same names, go to an OpenTelemetry collector when `OTEL_METRICS_EXPORTER=otlp` or when
`OTEL_EXPORTER_OTLP_ENDPOINT` (or `OTEL_EXPORTER_OTLP_METRICS_ENDPOINT`) is set and `OTEL_METRICS_EXPORTER` is not: every 60 s, or
as `OTEL_METRIC_EXPORT_INTERVAL` (milliseconds) says, and once more at the end. `OTEL_METRICS_EXPORTER=none` or `prometheus` sends
nothing. Counters are cumulative. With `OTEL_EXPORTER_OTLP_PROTOCOL=grpc` they go by gRPC, if
`hybrid-runner[grpc]` is installed. Each process sends its own, as `service.instance.id`. A collector that is
away costs one log line a minute. Where Prometheus scrapes the page and also gets what the collector sends, each metric is there
twice: turn one of the two off.

## What it costs

Counting costs 0.6 µs a job; with what the log sums up it is 1.2 µs (2.2 before both went by the batch). A scrape of a worker with
200 kinds in 50 queues (900 kB) took 10 ms at the median while it was idle, and 14 to 17 ms while all of them were drained at 20,000
jobs/s, 35 to 45 ms at the 99th percentile (in turns with the code before: 28 to 34, and 74 to 86); with 5 kinds in one queue 5
ms, and 23 ms at the 99th percentile. On 2 cores, with Postgres and the scraper beside it.
"""


def page() -> str:
    """The page as it should be."""
    return _HEAD + "\n".join(map(_row, INSTRUMENTS)) + "\n" + _FOOT


def _row(instrument: Instrument) -> str:
    labels = ", ".join(f"`{label}`" for label in instrument.labels)
    return f"| `{instrument.name}` | {instrument.kind.value} | {labels} | {instrument.help} |"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
