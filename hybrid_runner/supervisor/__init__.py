"""Several worker processes that look like one.

    fleet.py       the parent: starts the processes, passes signals on, answers the pages, and knows
                   when all have ended
    member.py      one place in the fleet: keeps a process running, with a new one after each death
    process.py     one worker process: a fresh interpreter, its reports, how it ended
    restarts.py    how long to pause before the next start
    reports.py     one /health and one /ready for all
    supervised.py  the child's side: its orders, its reports, and its end when the parent has gone

Between parent and child is one socket pair. The child writes JSON lines, one report a second. The
parent writes nothing; it alone holds its end, so whenever it ends, in whatever way, the child sees
the end of the stream. SIGTERM and SIGINT ask a child for an orderly end, however many come;
SIGQUIT, which the parent sends from its own second signal on, ends it at once.
"""
