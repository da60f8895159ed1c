-- why: a bounded repetition costs the regular expressions five times as much, and checks run again at every claim and settle
-- locks: ACCESS EXCLUSIVE on jobs for a moment, then SHARE UPDATE EXCLUSIVE while its rows are read

ALTER TABLE hybrid_runner.jobs
    DROP CONSTRAINT jobs_queue_is_1_to_48_of_letters_digits_and_punctuation,
    DROP CONSTRAINT jobs_kind_is_1_to_128_of_letters_digits_and_punctuation,
    ADD CONSTRAINT jobs_queue_is_1_to_48_of_letters_digits_and_punctuation
        CHECK (octet_length(queue) <= 48 AND queue ~ '^[A-Za-z0-9_][A-Za-z0-9_.:/-]*$') NOT VALID,
    ADD CONSTRAINT jobs_kind_is_1_to_128_of_letters_digits_and_punctuation
        CHECK (octet_length(kind) <= 128 AND kind ~ '^[A-Za-z0-9_][A-Za-z0-9_.:/-]*$') NOT VALID;
ALTER TABLE hybrid_runner.jobs
    VALIDATE CONSTRAINT jobs_queue_is_1_to_48_of_letters_digits_and_punctuation,
    VALIDATE CONSTRAINT jobs_kind_is_1_to_128_of_letters_digits_and_punctuation;
