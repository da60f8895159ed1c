-- refusal_of_parent: what is wrong with the service that another one depends on, in one line; NULL:
-- nothing. Two transactions may make a circle together: whoever follows these links counts them.
CREATE OR REPLACE FUNCTION hybrid_monitors.refusal_of_parent(id bigint, parent bigint) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    link bigint := refusal_of_parent.parent;
    links integer := 0;
BEGIN
    IF link = refusal_of_parent.id THEN
        RETURN 'depends_on must be another service than itself';
    ELSIF NOT EXISTS (SELECT FROM hybrid_monitors.services AS s WHERE s.id = link) THEN
        RETURN format('depends_on must be the id of another service, and there is none with %s', link);
    END IF;
    LOOP
        SELECT s.depends_on INTO link FROM hybrid_monitors.services AS s WHERE s.id = link;
        EXIT WHEN link IS NULL;
        links := links + 1;
        IF link = refusal_of_parent.id THEN
            RETURN format('depends_on makes a circle: %s depends on this one', refusal_of_parent.parent);
        ELSIF links > 100 THEN
            RETURN 'depends_on has more than 100 services above it: make the chain shorter';
        END IF;
    END LOOP;
    RETURN NULL;
END
$$;
