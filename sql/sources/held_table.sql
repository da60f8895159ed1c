-- held_table: to prepare it keeps others from altering the table for the rest of the transaction.
SELECT FROM <<relation>>
