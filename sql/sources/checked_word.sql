-- checked_word: whether a CHECK constraint of one column lets it pass.
SELECT (<<condition>>) IS NOT FALSE AS passes
FROM (SELECT CAST(<<word>> AS <<type>>) AS <<column>>) AS tested
