-- expression: read twice, so that nothing but one expression fits.
SELECT (
<<expression>>
) AS expression, ((
<<expression>>
)) AS again
FROM <<relation>> AS <<alias>> CROSS JOIN (SELECT) AS <<beside>>
