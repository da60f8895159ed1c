-- queue_of: the queue of the kind's handler; `default` if no worker has declared the kind, with a
-- warning if another one was most likely meant: once in a transaction that asks for the same kind
-- again and again.
CREATE OR REPLACE FUNCTION hybrid_runner.queue_of(kind text) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    its_queue text;
    meant text;
BEGIN
    SELECT k.queue INTO its_queue FROM hybrid_runner.kinds AS k WHERE k.name = queue_of.kind;
    IF NOT FOUND AND length(queue_of.kind) <= 128 AND current_setting(
        'hybrid_runner.undeclared_kind', true) IS DISTINCT FROM queue_of.kind THEN
        PERFORM set_config('hybrid_runner.undeclared_kind', queue_of.kind, true);
        meant := hybrid_runner.similar_kind(queue_of.kind);
        IF meant IS NOT NULL THEN
            RAISE WARNING 'no worker has a handler for kind %: did you mean %?',
                quote_literal(queue_of.kind), quote_literal(meant);
        END IF;
    END IF;
    RETURN coalesce(its_queue, 'default');
END
$$;
