-- has_monitors: whether this database has monitors to look at.
SELECT to_regclass('hybrid_monitors.overview') IS NOT NULL AS is_there
