-- callback_secret: the secret with which tokens of callbacks are made.
SELECT c.secret FROM hybrid_runner.callback_secret AS c
