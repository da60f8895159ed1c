-- missing_jobs: what of an application's query has no live job: of each row the key that is made of
-- it, its columns as a payload, and the column `data`, if there is one, as memory. A key is made of
-- texts and names of columns in turns, a text first; it is NULL where one of the columns has no
-- value.
-- In random order, so that rows of which no job can be made keep no others from their turn. At most
-- 32 MiB come at once, whatever rows carry.
-- STABLE: the query runs in this function's snapshot, and can write nothing itself.
CREATE OR REPLACE FUNCTION hybrid_runner.missing_jobs(query text, key_parts text[], most integer)
RETURNS TABLE (key text, payload text, data text)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RETURN QUERY EXECUTE format(
        $sql$
        SELECT w.key, w.payload, w.data
        FROM (
            SELECT
                m.key, m.payload, m.data,
                sum(octet_length(m.payload) + coalesce(octet_length(m.data), 0)) OVER (
                    ROWS UNBOUNDED PRECEDING
                ) AS bytes
            FROM (
                SELECT
                    k.key, (r.columns - 'data')::text AS payload,
                    nullif(r.columns -> 'data', 'null')::text AS data
                FROM (SELECT to_jsonb(found.*) AS columns FROM (
%s
                ) AS found) AS r
                CROSS JOIN LATERAL (
                    SELECT
                        CASE WHEN count(p.text) = count(*) THEN string_agg(p.text, '' ORDER BY p.n) END
                    FROM (
                        SELECT
                            u.n, CASE WHEN u.n %% 2 = 1 THEN u.part ELSE r.columns ->> u.part END AS text
                        FROM unnest($1) WITH ORDINALITY AS u (part, n)
                    ) AS p
                ) AS k (key)
                WHERE NOT EXISTS (SELECT FROM hybrid_runner.jobs AS j WHERE j.key = k.key)
                ORDER BY random()
                LIMIT $2
            ) AS m
        ) AS w
        WHERE w.bytes <= 33554432
        $sql$,
        missing_jobs.query
    ) USING missing_jobs.key_parts, missing_jobs.most;
END
$$;
