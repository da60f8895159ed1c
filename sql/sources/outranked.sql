-- outranked: comes when what an earlier call made is gone, before anything of the owner is read.
DO <<quote>>
BEGIN
    IF hybrid_runner.outranks_owner(<<number>>) THEN
        RAISE 'a superuser runs no code of the table''s owner: run this as %', <<runner_owner_word>>;
    END IF;
END
<<quote>>;
