-- bulk: many rows in one statement, into the copy without a trigger.
-- $1 text[] payloads
INSERT INTO hybrid_runner_bench.quiet (queue, kind, payload) SELECT 'bench', 'noop', given.payload::jsonb
FROM unnest($1::text[]) AS given (payload)
