-- remove_schedule: forget a schedule; false if there is none of that name.
-- $1 text name
SELECT hybrid_runner.unschedule($1)
