-- referenced_word: whether the table that a foreign key refers to has it.
SELECT EXISTS (
    SELECT FROM <<relation>> AS r WHERE r.<<column>> = CAST(<<word>> AS <<type>>)
) AS is_there
