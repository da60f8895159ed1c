-- delete_unreported_ends: ends that no worker has reported in so long: none of this fleet traces.
-- $1 int8 most, $2 interval older_than
DELETE FROM hybrid_runner.unreported_ends AS e
WHERE e.id IN (
    SELECT due.id FROM hybrid_runner.unreported_ends AS due
    WHERE due.ended_at <= clock_timestamp() - $2::interval
        AND (
            due.taken_at IS NULL -- as ask_news.sql has it
            OR due.taken_at NOT BETWEEN clock_timestamp() - interval '1 minute' AND clock_timestamp() + interval '1 second'
        )
    ORDER BY due.id
    LIMIT $1
    FOR UPDATE SKIP LOCKED
)
