-- answer_of_poll: whether a service is still asked for, whether there is such a service, and where
--   it stands.
-- $1 int8 service_id
SELECT
    EXISTS (SELECT FROM hybrid_monitors.asked AS a WHERE a.service_id = $1) AS is_pending,
    EXISTS (SELECT FROM hybrid_monitors.services AS s WHERE s.id = $1) AS is_there,
    (
        SELECT row_to_json(t)::text FROM hybrid_monitors.standings AS t
        WHERE t.service_id = $1 AND t.is_started
    ) AS standing
