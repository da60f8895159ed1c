"""The benchmark: what the runner costs and how fast it is. Each figure stands beside a reference
that was measured in the same run.

Who does what:
    database.py   the Postgres that is measured on: emptied between scenarios, and put back
    sizes.py      how many of everything: full, or cut down
    child.py      a program in a process of its own, asked by lines
    stopwatch.py  what such a program records of its handlers, and how it answers
    worker.py     such a program: a worker as users run it, whose handlers record the time
    bare.py       such a program: the shortest loop that claims, runs and archives, as a reference
    services.py   such a program: healthy services on many hosts, as cheap as they can be
    monitoring.py such a program: polls them, in one of three ways
    producer.py   such a program: single-row INSERTs at a pace
    collector.py  such a program: takes spans and counts their bytes
    pgbench.py    single-row INSERTs as fast as so many clients can
    processor.py  processor time and memory of processes
    scenarios/    one module each: `measure(database, sizes, tell)` returns a Result
    sql/          the statements of all these, read by texts.py
    results.py    what a scenario returns
    table.py      the results as rows of text, and plots.py as pictures
    running.py    runs the chosen scenarios
"""
