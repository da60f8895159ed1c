-- forge: so many notifications at once; % in the text is another number in each.
-- $1 text channel, $2 text message, $3 int4 first, $4 int4 count
SELECT count(pg_notify($1, replace($2, '%', i::text)))
FROM generate_series($3::int4, $3::int4 + $4::int4 - 1) AS i
