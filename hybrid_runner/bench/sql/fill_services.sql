-- fill_services: services that monitors poll.
-- $1 text[] urls, $2 float8 seconds
INSERT INTO hybrid_monitors.services (name, url, every)
SELECT 'service ' || number, url, make_interval(secs => $2)
FROM unnest($1::text[]) WITH ORDINALITY AS given (url, number)
