-- mend_set_back: Postgres's clock was set back, or this is a server whose clock is behind: services
-- of this host were polled in what is the future now. They would be due when that comes; instead
-- each gets its moment in its interval, and what lies ahead is taken for now.
CREATE OR REPLACE FUNCTION hybrid_monitors.mend_set_back(
    host text, place double precision, looked timestamptz
) RETURNS void
LANGUAGE sql SET search_path = pg_catalog, pg_temp
AS $$
    UPDATE hybrid_monitors.standings AS t SET
        due_at = least(
            t.due_at,
            hybrid_monitors.moment_of(
                s.id, s.every, mend_set_back.place, mend_set_back.looked)),
        -- not least(), which makes a time of what is NULL
        polled_at = CASE WHEN t.polled_at > mend_set_back.looked
            THEN mend_set_back.looked ELSE t.polled_at END,
        since = CASE WHEN t.since > mend_set_back.looked
            THEN mend_set_back.looked ELSE t.since END,
        contrary_since = CASE WHEN t.contrary_since > mend_set_back.looked
            THEN mend_set_back.looked ELSE t.contrary_since END,
        opened_at = CASE WHEN t.opened_at > mend_set_back.looked
            THEN mend_set_back.looked ELSE t.opened_at END
    FROM hybrid_monitors.services AS s
    WHERE t.host = mend_set_back.host AND s.id = t.service_id
$$;
