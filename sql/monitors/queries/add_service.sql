-- add_service: store a service; returns its id.
-- $1 text columns
SELECT hybrid_monitors.add_service($1::text::jsonb) AS id
