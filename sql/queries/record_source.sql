-- record_source: write down an attached table under a number that was reserved for it, and under
--   which it stays when it is attached again; no row: it has got another number meanwhile.
-- $1 int4 number, $2 text relation, $3 text kind, $4 text queue, $5 text owner
-- $6 jsonb definition, $7 bool is_reconciled, $8 text note
INSERT INTO hybrid_runner.sources AS s (id, relation, relation_name, kind, queue, owner, definition, is_reconciled, note)
OVERRIDING SYSTEM VALUE
VALUES ($1, $2::text::regclass, ($2::text::regclass)::text, $3, $4, $5, $6, $7, $8)
ON CONFLICT ON CONSTRAINT sources_one_per_table_and_kind DO UPDATE SET
    relation_name = excluded.relation_name, queue = excluded.queue, owner = excluded.owner, definition = excluded.definition,
    is_reconciled = excluded.is_reconciled, note = excluded.note,
    made_by = session_user, made_at = clock_timestamp(), detaching_at = NULL
    WHERE s.id = excluded.id
RETURNING s.id
