#!/bin/sh
# Jobs from a shell: one row, one call with a key, many at once, and one that is undone with its transaction.
# Needs: psql, and HYBRID_RUNNER_DSN, a Postgres after `hybrid-runner migrate`.
set -eu
: "${HYBRID_RUNNER_DSN:?set it to a Postgres in which hybrid-runner migrate was run}"

psql "$HYBRID_RUNNER_DSN" --no-psqlrc --quiet --tuples-only --no-align --set ON_ERROR_STOP=1 <<'SQL'
INSERT INTO hybrid_runner.jobs (kind, payload) VALUES ('receipt', '{"order": 1}') RETURNING id;

SELECT hybrid_runner.enqueue('receipt', '{"order": 2}', key => 'receipt:2', priority => 0, delay => '1 second');

INSERT INTO hybrid_runner.jobs (kind, payload)
SELECT 'receipt', jsonb_build_object('order', number) FROM generate_series(3, 10) AS number;

BEGIN;
SELECT hybrid_runner.enqueue('receipt', '{"order": 11}');
ROLLBACK;
SQL
