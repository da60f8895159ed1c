-- partitions: the first ones, so that rounds can begin at once; later ones are made by upkeep. And
-- the duty that measures.
DO $$
BEGIN
    PERFORM hybrid_monitors.make_partitions()
    WHERE NOT EXISTS (SELECT FROM hybrid_monitors.partitions AS p WHERE NOT p.is_default);
    INSERT INTO hybrid_runner.duties (name, every) VALUES ('monitors', '30 seconds')
    ON CONFLICT (name) DO NOTHING;
END
$$;
