"""Several worker processes that look like one.

    fleet.py       the parent: starts the processes, passes signals on, answers the pages, knows
    when all have gone
    member.py      one place in the fleet: a process, and after its death the next one
    process.py     one life: a fresh interpreter, what it says, how it ended
    restarting.py  how long to pause before the next life
    reports.py     one /health and one /ready for all
    tether.py      the child's side: what it was told at its birth, what it says, and the end when
    the parent has gone

Between the two is one socket pair per child. The child writes a JSON line a second and the parent
writes nothing: only the
parent holds that end, so that its end, in whatever way, is the end of the stream. SIGTERM and
SIGINT ask a child for an end in
order, however often; SIGQUIT, which the parent sends from its own second signal on, ends it at
once.
"""
