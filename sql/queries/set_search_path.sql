-- set_search_path: for the rest of the transaction.
-- $1 text path
SELECT set_config('search_path', $1, true) AS path
