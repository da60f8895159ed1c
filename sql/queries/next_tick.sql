-- next_tick: how long until the earliest schedule is due that may fire; NULL: there is none.
SELECT hybrid_runner.next_tick()
