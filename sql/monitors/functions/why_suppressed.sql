-- why_suppressed: why nothing bad is told of a service now: maintenance, parent, or NULL. A parent
-- that is down, or one of its parents, up to ten of them.
CREATE OR REPLACE FUNCTION hybrid_monitors.why_suppressed(
    id bigint, depends_on bigint, labels jsonb, quiet_until timestamptz
) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    parent bigint := why_suppressed.depends_on;
    its_parent bigint;
    is_down boolean;
BEGIN
    IF why_suppressed.quiet_until > now() OR EXISTS (
        SELECT FROM hybrid_monitors.windows AS w
        WHERE (w.service_id = why_suppressed.id OR why_suppressed.labels @> w.label)
            AND hybrid_monitors.is_window_open(w.begins, w.ends, w.every, now())
    ) THEN
        RETURN 'maintenance';
    END IF;
    FOR link IN 1..10 LOOP
        EXIT WHEN parent IS NULL;
        SELECT s.depends_on, t.is_down INTO its_parent, is_down
        FROM hybrid_monitors.services AS s
        LEFT JOIN hybrid_monitors.standings AS t ON t.service_id = s.id
        WHERE s.id = parent AND s.active;
        EXIT WHEN NOT FOUND;
        IF is_down THEN
            RETURN 'parent';
        END IF;
        parent := its_parent;
    END LOOP;
    RETURN NULL;
END
$$;
