"""The benchmark: what the runner costs and how fast it is, each figure beside another one of the
same run.

Who does what:
    place.py      the Postgres that is measured on: emptied between scenarios, and put back as it
    was
    sizes.py      how many of everything: full, or cut down
    child.py      a program in a process of its own, asked by lines
    stopwatch.py  what such a program notes of its handlers, and how it answers
    worker.py     such a program: a worker as users run it, whose handlers note the time
    bare.py       such a program: the shortest loop that claims, runs and archives; what we are
    measured against
    producer.py   such a program: single-row INSERTs at a pace
    pgbench.py    single-row INSERTs as fast as so many clients can
    processor.py  processor time and memory of processes
    scenarios/    one module each: `measure(place, sizes, tell)` returns a Result
    sql/          the statements of all these, read by texts.py
    results.py    what a scenario returns
    table.py      the results as rows of text, and plots.py as pictures
    running.py    all that was asked for, one after the other
"""
