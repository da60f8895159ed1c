-- ring_for_row_changes: the trigger on row_changes: tell the workers, one of whom takes them.
CREATE OR REPLACE FUNCTION hybrid_runner.ring_for_row_changes() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM hybrid_runner.notify_if_room('hybrid_runner.~sources', 'changes');
    RETURN NULL;
END
$$;
