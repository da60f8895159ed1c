-- expression_view: keeps what Postgres made of it.
CREATE TEMPORARY VIEW <<name>> AS
SELECT (
<<expression>>
) AS expression
FROM <<relation>> AS <<alias>> CROSS JOIN (SELECT) AS <<beside>>
