-- running: how many jobs are marked as running.
SELECT count(*) FROM hybrid_runner.jobs AS j WHERE j.state = 'running'
