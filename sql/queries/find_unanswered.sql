-- find_unanswered: the jobs that release_lost would put back.
-- $1 text queue, $2 text worker_id, $3 int8[] known, $4 int8[] claims
SELECT j.id
FROM hybrid_runner.jobs AS j
WHERE j.queue = $1 AND j.worker_id = $2 AND j.state = 'running'
    AND NOT EXISTS (SELECT FROM unnest($3::int8[], $4::int8[]) AS k (id, claim) WHERE k.id = j.id AND k.claim = j.claim)
