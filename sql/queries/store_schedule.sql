-- store_schedule: make a schedule, or change the one of that name; its next tick, NULL if there is
--   none.
-- $1 text name, $2 text kind, $3 text payload, $4 text cron, $5 interval every, $6 timestamptz at
-- $7 text timezone, $8 text queue, $9 int4 priority, $10 int4 max_attempts, $11 interval timeout
-- $12 text overlap, $13 text missed, $14 interval catch_up, $15 interval jitter
-- $16 timestamptz starts_at, $17 timestamptz ends_at
SELECT hybrid_runner.schedule(
    name => $1, kind => $2, payload => $3::text::jsonb, cron => $4, every => $5, at => $6, timezone => $7, queue => $8, priority => $9,
    max_attempts => $10, timeout => $11, overlap => $12, missed => $13, catch_up => $14, jitter => $15, starts_at => $16, ends_at => $17
)
