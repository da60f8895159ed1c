-- remove_service: delete the service of this name; the id that it had, no row: there was none.
-- $1 text name
DELETE FROM hybrid_monitors.services AS s WHERE s.name = $1 RETURNING s.id
