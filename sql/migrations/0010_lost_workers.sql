-- why: workers that die are noticed by the others, and what they ran is found by one rule: no living worker has that claim
-- locks: ACCESS EXCLUSIVE on workers for a moment; it has a row per worker

ALTER TABLE hybrid_runner.workers
    -- claims below it were made by an earlier worker of the same name
    ADD COLUMN first_claim bigint NOT NULL DEFAULT 0,
    -- since when it was never silent for long itself; who was cannot tell silence of others from its own
    ADD COLUMN steady_since timestamptz NOT NULL DEFAULT '-infinity',
    -- a number for the kinds that it knows; those of one queue who know others must not speak for each other
    ADD COLUMN kinds text NOT NULL DEFAULT '',
    ADD COLUMN dead_at timestamptz,
    ADD COLUMN rescued_at timestamptz;

-- What has to be done once in a while by whichever worker's heartbeat comes first; nobody holds an office that could fall vacant.
CREATE TABLE hybrid_runner.chores (
    name text PRIMARY KEY,
    pause interval NOT NULL,
    taken_at timestamptz NOT NULL DEFAULT '-infinity'
);
INSERT INTO hybrid_runner.chores (name, pause) VALUES ('partitions', '1 hour'), ('lost', '10 minutes');
