-- update_service: change these columns of the service of this name; its id, NULL: there is none.
-- $1 text name, $2 text columns
SELECT hybrid_monitors.update_service($1, $2::text::jsonb) AS id
