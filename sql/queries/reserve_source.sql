-- reserve_source: the number that a table has as a source, or will have (nobody else is given it),
--   and its name as Postgres writes it.
-- $1 text relation, $2 text kind
SELECT coalesce(
    (SELECT s.id FROM hybrid_runner.sources AS s WHERE s.relation = $1::text::regclass AND s.kind = $2),
    nextval('hybrid_runner.sources_id_seq')::int4
) AS id, ($1::text::regclass)::text AS name
