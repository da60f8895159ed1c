-- word: as a column of this type holds it; read and written by the type itself, by no cast.
SELECT format('%s', CAST(<<word>> AS <<type>>)) AS word
