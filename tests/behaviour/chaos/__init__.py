"""Random faults for as long as wanted, repeatable by a seed, and then the question whether every
promise was kept.

Who does what:
    harness.py    starts all others, waits until the work is done, asks the checker
    postgres.py   the server under test, in a folder, with roles of its own
    fleet.py      worker processes: started, signalled, started again
    newcomers.py  worker processes that come at a bad moment, and go again
    app.py        the handlers; each run writes down that it began, and how it ended
    producer.py   a process that inserts, holds transactions open, rolls back, cancels
    ../rows       an application with a table of its own, whose rows are worked on meanwhile
    orders.py     which jobs it inserts, and how jobs of each kind should end
    faults.py     the plan: which fault when, from the seed alone
    injector.py   carries the plan out
    clock.py      the server's clock, to be set (with libfaketime, which `make tools` fetches)
    full_queue.py how the server's queue of notifications is filled
    journal.py    the files of app and producer, beside the Postgres under test
    records.py    what those files and the tables say, as values
    tables.py     what is in the database in the end
    checker.py    the laws that hold whatever happened
    deaths.py     the law about workers that are declared dead while they live
    report.py     the figures
"""
